/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is mapped, each once: a file by its identity (base/module_id.h), the vDSO, and the rest by
 * kind. A module remembers a path for people and how to open the very file that is mapped.
 * One that nobody maps any more stays until modules_sweep() is told that it is of no use.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"
#include "base/module_id.h"

struct modules;

enum module_kind {
	MODULE_FILE,
	MODULE_VDSO,
	MODULE_ANON, /* memory without a file: JIT code; named by a perf map */
	MODULE_SPECIAL, /* [vsyscall], [uprobes], … : no symbols */
};

/* Numbers have 24 bits: a profile has another use for the rest of the word. */
enum { MODULE_NUMBER_MAX = (1 << 24) - 1 };

struct module {
	uint32_t number; /* 1 to MODULE_NUMBER_MAX, not soon used again */
	enum module_kind kind;
	struct module_id id;
	char *path; /* as first seen, below that process's root; any bytes but NUL */
	/* Set by who finds it in samples: when it was last in one, CLOCK_MONOTONIC; 0 = never. */
	uint64_t used_ns;

	/* The table's own. */
	struct module *next_unused;
	uint64_t mark; /* the sweep in which a process was last seen to map it */
};

/* LIMIT: at most MODULE_NUMBER_MAX. */
int modules_create(size_t limit, struct modules **ret_modules);
void modules_destroy(struct modules *m);
/* The module of this kind and identity, made if new. -E2BIG over the limit. */
int modules_get(struct modules *m, enum module_kind kind, const struct module_id *id,
	const char *path, struct module **ret_module);
struct module *modules_find(const struct modules *m, uint32_t number); /* NULL = swept */
size_t modules_count(const struct modules *m);
/* Walks all of them; the table must not change meanwhile. Start with *ITERATOR = 0. */
struct module *modules_next(const struct modules *m, size_t *iterator);
/*
 * Forgets the modules that UNUSED returns true for; nobody may hold a pointer to one of those any
 * more. Returns how many went.
 */
typedef bool modules_unused_fn(void *context, struct module *module);
size_t modules_sweep(struct modules *m, modules_unused_fn *unused, void *context);

/*
 * Opens the file behind a mapping of process PID: through /proc/PID/map_files/START-END, else
 * /proc/PID/root + path, else the path in our own root. Whichever it is, its build ID (or device
 * and inode) and its content hash must be the module's; only a regular file is opened, and links of
 * a container are followed inside its own root. -ESRCH gone, -ESTALE another file is there now; a
 * shortage of ours (failure_is_shortage()) where that ended one of the ways.
 */
int module_open(int proc_fd, uint32_t pid, uint64_t start, uint64_t end,
	const struct module *module, int *ret_fd);
/* The whole identity of an open file. */
int module_identify(int fd, struct module_id *ret_id);
/*
 * The GNU build ID of an open ELF file, read with bounded preads of its note segments. -ENOENT it
 * has none, -EBADMSG no ELF file, -EOPNOTSUPP big-endian or an ID longer than ours.
 */
int module_read_build_id(int fd, struct build_id *ret_id);
