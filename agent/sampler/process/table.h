/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Internals of the process table, shared by the files that feed it: side-band records
 * (processes_events.c), samples (processes_samples.c), /proc (processes_sync.c), and the table's
 * own upkeep (processes.c).
 */
#include "agent/sampler/process/file_ids.h"
#include "agent/sampler/process/proc_reader.h"
#include "agent/sampler/process/processes.h"
#include "base/map.h"

/* Ended generations without samples that are kept for samples that still arrive. */
enum { RECENTLY_ENDED = 16 };

/* The search for processes whose records were lost (processes_search.c). */
struct process_search {
	unsigned int rounds; /* through all of /proc that are left; 0 = nothing to do */
	uint32_t after; /* pid that was looked at last in this round */
	bool found; /* something in this round that the next one looks at again */
	struct map unknown; /* pid → start_ticks, of this round and the one before */
};

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
	struct process *recent[RECENTLY_ENDED]; /* a ring of those without samples; NULL = free */
	unsigned int recent_at;
	uint64_t module_mark; /* of the last sweep over the modules */
	struct process_search search;
	uint64_t module_shortages; /* modules not created for lack of memory */
};

/* What /proc showed of a process. */
struct shown {
	uint64_t time_ns; /* taken before the first read */
	struct proc_stat stat;
	struct mappings *mappings; /* never NULL */
	struct module *executable;
	char *exe_path; /* "" = not known */
	char container_id[CONTAINER_ID_BYTES], pod_uid[POD_UID_BYTES];
	struct cgroup_paths *cgroups;
	bool unreadable; /* the mappings could not be read */
};

/* The live generation of PID, or NULL. */
struct process *table_live(struct processes *ps, uint32_t pid);
/*
 * Begins a generation of PID, with SHARED as its mappings (NULL = none). The earlier generation of
 * this pid must have ended, or be restored with table_make_current(). Returns NULL over the limit
 * (counted) or if out of memory.
 */
struct process *table_begin(
	struct processes *ps, uint32_t pid, uint64_t start_ns, struct mappings *shared);
/* Ends a live generation; P may be freed. */
void table_end(struct processes *ps, struct process *p, uint64_t time_ns);
/* As table_end(), because another program or process has the pid now. */
void table_supersede(struct processes *ps, struct process *p, uint64_t time_ns);
/* Makes P, which is live, the newest generation of its pid again. */
void table_make_current(struct processes *ps, struct process *p);
void table_set_comm(struct process *p, const char *comm);
/*
 * PATH: by which this process was started; the module's path is that of the first file with its
 * build ID.
 */
void table_set_executable(
	struct processes *ps, struct process *p, struct module *executable, const char *path);
/* Returns PATH, or COPY with PATH without the kernel's " (deleted)". */
const char *table_clean_path(const char *path, char *copy, size_t size);

/*
 * Returns the module of MAPPING. BUILD_ID is what the kernel reported (NULL: nothing); a file that
 * is not known yet is read through TASK_FD (or -1). PROGRAM: only an ELF program can be mapped
 * here, whatever its name. Never NULL: the `unknown` module stands for a file without any identity
 * and for a module that cannot be created.
 */
struct module *table_module(struct processes *ps, int task_fd, const struct proc_mapping *mapping,
	const struct build_id *build_id, bool program);
/* How often table_module() returned less than it could have, for lack of descriptors or memory. */
uint64_t table_shortages(const struct processes *ps);
/* Adds a mapping of MODULE to *M. */
int table_add_mapping(
	struct mappings **m, const struct proc_mapping *mapping, struct module *module);

/* Reads PID from /proc. Returns -ESRCH if it does not exist. */
int table_read(struct processes *ps, uint32_t pid, struct shown **ret_shown);
void table_shown_free(struct shown *shown);
/*
 * Reads PID, and applies it at once: before the first record, or where no record or sample of it is
 * on the way. Returns -E2BIG over the limit.
 */
int table_scan(struct processes *ps, uint32_t pid);
/* Calls FN for each process in /proc; returns what it does if that is not 0, or an error. */
typedef int table_pid_fn(struct processes *ps, uint32_t pid, void *context);
int table_each_pid(struct processes *ps, table_pid_fn *fn, void *context);
/* Records were lost: processes_search() has to do. */
void table_search_begin(struct processes *ps);
/* Whether STAT is of P, judged by the time at which the process began. */
bool table_is_same_process(const struct process *p, const struct proc_stat *stat);
/*
 * The stream has reached TIME_NS: applies what /proc showed of PID before that. EXEC_ID: of the
 * next sample, or NULL.
 */
void table_catch_up(struct processes *ps, uint32_t pid, uint64_t time_ns, const uint32_t *exec_id);
/*
 * Keeps only those of P's mappings that SHOWN has too (NULL: none). Returns -ENOMEM with P
 * unchanged.
 */
int table_doubt(struct process *p, const struct shown *shown);
/* Looks up P's hidden mappings in /proc if that is due at TIME_NS. */
void table_show_hidden(struct processes *ps, struct process *p, uint64_t time_ns);
/* Sets P's control groups; takes the reference. */
void table_set_cgroups(struct process *p, struct cgroup_paths *cgroups);
/* Reads from /proc what the stream does not report of P: container and start time. */
void table_look_up(struct processes *ps, struct process *p);
/* Whether PID is gone from /proc, or only a zombie is left of it. */
bool table_is_gone(struct processes *ps, uint32_t pid);
