/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inside of the process table, shared by the files that feed it: side-band records
 * (processes_events.c), /proc (processes_sync.c), and the table's own upkeep (processes.c).
 */
#include "agent/process/file_ids.h"
#include "agent/process/processes.h"
#include "base/map.h"

/* Ended generations without a sample that are kept for what is still sampled of their end. */
enum { RECENTLY_ENDED = 16 };

struct processes {
	struct processes_options options;
	struct file_ids *files;
	struct module *anon, *vdso, *unknown; /* made once */
	struct map by_pid; /* the newest generation of each pid; may have ended */
	struct map by_number;
	size_t live;
	uint32_t last_number;
	uint64_t time_ns; /* of the newest record */
	struct process *ended; /* sampled ones, until the sweep */
	size_t ended_count;
	struct process *recent[RECENTLY_ENDED]; /* a ring of the others; NULL = free */
	unsigned int recent_at;
	uint64_t module_mark; /* of the last sweep over the modules */
};

/* The live generation of PID, or NULL. */
struct process *table_live(struct processes *ps, uint32_t pid);
/*
 * Begins a generation of PID, empty of mappings unless SHARED are given. What was there with this
 * pid must have ended. NULL: over the limit (counted) or out of memory.
 */
struct process *table_begin(
	struct processes *ps, uint32_t pid, uint64_t start_ns, struct mappings *shared);
/* Ends a live generation; P may be freed. */
void table_end(struct processes *ps, struct process *p, uint64_t time_ns);
void table_set_comm(struct process *p, const char *comm);
/* PATH: as this process was started by; the module's is that of the first file with its build ID.
 */
void table_set_executable(
	struct processes *ps, struct process *p, struct module *executable, const char *path);
/* PATH, or without the kernel's " (deleted)" in COPY. */
const char *table_clean_path(const char *path, char *copy, size_t size);

/*
 * The module that MAPPING is of. The kernel says that it has BUILD_ID (NULL: it does not
 * say); a file that is not known yet is looked at through TASK_FD (or -1). PROGRAM: only an ELF
 * program can be mapped here, whatever the name. Never NULL: what cannot be kept apart is the
 * `unknown` module.
 */
struct module *table_module(struct processes *ps, int task_fd, const struct proc_mapping *mapping,
	const struct build_id *build_id, bool program);
/* Puts one mapping of MODULE into *M. */
int table_add_mapping(const struct processes *ps, struct mappings **m,
	const struct proc_mapping *mapping, struct module *module);

/* Reads PID from /proc: begins its generation, or corrects or replaces the live one. */
void table_sync(struct processes *ps, uint32_t pid);
/* Asks /proc what the stream does not tell of P: container and start. */
void table_look_up(struct processes *ps, struct process *p);
/* Whether /proc has PID no longer (or only what waits for its parent). */
bool table_is_gone(struct processes *ps, uint32_t pid);
