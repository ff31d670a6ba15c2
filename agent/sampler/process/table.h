/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inside of the process table, shared by the files that feed it: side-band records
 * (processes_events.c), samples (processes_samples.c), /proc (processes_sync.c), and the table's
 * own upkeep (processes.c).
 */
#include "agent/sampler/process/file_ids.h"
#include "agent/sampler/process/proc_reader.h"
#include "agent/sampler/process/processes.h"
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
	uint64_t module_shortages; /* modules that were not made for want of memory */
};

/* What /proc showed of a process. */
struct shown {
	uint64_t time_ns; /* taken before it was read */
	struct proc_stat stat;
	struct mappings *mappings; /* never NULL */
	struct module *executable;
	char *exe_path; /* "" = not known */
	char container_id[CONTAINER_ID_BYTES];
	bool unreadable; /* the mappings were */
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
/* The same, because another program or process has the pid. */
void table_supersede(struct processes *ps, struct process *p, uint64_t time_ns);
/* P, which is live, is what its pid leads to again. */
void table_make_current(struct processes *ps, struct process *p);
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
/* How often so far table_module() gave less than it could have, for want of descriptors or memory.
 */
uint64_t table_shortages(const struct processes *ps);
/* Puts one mapping of MODULE into *M. */
int table_add_mapping(const struct processes *ps, struct mappings **m,
	const struct proc_mapping *mapping, struct module *module);

/* Reads PID from /proc. -ESRCH: it is not there. */
int table_read(struct processes *ps, uint32_t pid, struct shown **ret_shown);
void table_shown_free(struct shown *shown);
/* Whether SHOWN is of P, by the time at which the process came to be. */
bool table_is_same_process(const struct process *p, const struct proc_stat *stat);
/*
 * The stream is at TIME_NS: what /proc showed of PID before that counts now. EXEC_ID: of the sample
 * that is next, or NULL.
 */
void table_catch_up(struct processes *ps, uint32_t pid, uint64_t time_ns, const uint32_t *exec_id);
/* Leaves of P's mappings what SHOWN has as well: nothing where that is NULL. -ENOMEM: unchanged. */
int table_doubt(struct process *p, const struct shown *shown);
/* What was hidden of P's mappings is looked up in /proc if that is due at TIME_NS. */
void table_show_hidden(struct processes *ps, struct process *p, uint64_t time_ns);
/* Asks /proc what the stream does not tell of P: container and start. */
void table_look_up(struct processes *ps, struct process *p);
/* Whether /proc has PID no longer (or only what waits for its parent). */
bool table_is_gone(struct processes *ps, uint32_t pid);
