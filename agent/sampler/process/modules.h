/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All mapped modules, each once: files by identity (base/module_id.h), the vDSO, everything else by
 * kind; and the kernel. A module keeps a path for display; module_open() opens the very file that
 * is mapped. A module that nobody maps any more stays until modules_sweep() frees it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id_reader.h"
#include "base/metrics.h"
#include "base/module_id.h"

struct modules;

enum module_kind {
	MODULE_FILE,
	MODULE_VDSO,
	MODULE_ANON, /* memory without a file: JIT code; named by a perf map */
	MODULE_KERNEL, /* the kernel itself, which no process maps: for its index only */
	MODULE_SPECIAL, /* [vsyscall], [uprobes], … : no symbols */
};

/* Numbers have 24 bits: a profile keeps a frame's kind in the other bits of the word. */
enum { MODULE_NUMBER_MAX = (1 << 24) - 1 };

struct module {
	uint32_t number; /* 1 to MODULE_NUMBER_MAX, not reused soon */
	enum module_kind kind;
	struct module_id id;
	char *path; /* as first seen, below that process's root; any bytes but NUL */
	/*
	 * Time of the last sample in it, set by whoever finds it there, CLOCK_MONOTONIC; 0 = never.
	 */
	uint64_t used_ns;

	/* Private to the table. */
	struct module *next_unused;
	uint64_t mark; /* the sweep in which a process was last seen to map it */
};

/* LIMIT: at most MODULE_NUMBER_MAX. */
int modules_create(size_t limit, struct modules **ret_modules);
void modules_destroy(struct modules *m);
/* Returns the module of this kind and identity, created if new; -E2BIG over the limit. */
int modules_get(struct modules *m, enum module_kind kind, const struct module_id *id,
	const char *path, struct module **ret_module);
struct module *modules_find(const struct modules *m, uint32_t number); /* NULL = swept */
size_t modules_count(const struct modules *m);
/*
 * Iterates over all modules, starting with *ITERATOR = 0; NULL at the end. The table must not
 * change meanwhile.
 */
struct module *modules_next(const struct modules *m, size_t *iterator);
/*
 * Frees the modules for which UNUSED returns true; nobody may hold a pointer to one of them.
 * Returns how many were freed.
 */
typedef bool modules_unused_fn(void *context, struct module *module);
size_t modules_sweep(struct modules *m, modules_unused_fn *unused, void *context);

struct mapping;

/* What it takes to open a mapped file; borrowed. */
struct module_opener {
	int proc_fd; /* an open /proc */
	const struct build_id_reader *build_ids;
};

/*
 * Opens the file behind MAPPING of process PID: through /proc/PID/map_files/START-END, else
 * /proc/PID/root + path, else the path in our own root. The file's build ID (or device and inode)
 * and content hash must be those of the mapping's module; *RET_ID is the identity that it was found
 * to have (NULL: not wanted). Only regular files are opened, and a container's links are resolved
 * inside its own root. Returns -ESRCH if the process is gone, -ESTALE if another file is there now,
 * or a transient failure (failure_is_transient()) if that made one of these ways fail.
 */
int module_open(const struct module_opener *opener, uint32_t pid, const struct mapping *mapping,
	struct module_id *ret_id, int *ret_fd);
/* Reads the whole identity of an open file. */
int module_identify(const struct build_id_reader *reader, int fd, struct module_id *ret_id);
