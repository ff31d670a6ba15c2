/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process table: which process ran at the time of each sample, which program it was (each exec
 * begins a new generation), and what was mapped where. It is fed with the kernel's side-band
 * records in time order. It reads /proc once at the start, for a process that no record announced,
 * and after records were lost. Knows nothing of rings or symbols.
 *
 * /proc shows a process as it is now, which is later than the sample or record that makes the table
 * read it, so what it shows applies from the time of the reading on. Until the stream reaches that
 * time, only what is certain is used: a sample gets a generation only if the exec id confirms it,
 * and only the mappings that both the table and /proc have. What is uncertain has no mappings, and
 * is counted.
 *
 * A `struct process` is one generation of one pid: from fork or exec to exec or exit. Ended
 * generations with samples are kept until processes_sweep(), so that a sealed window can still be
 * read.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/cgroup_paths.h"
#include "agent/sampler/process/container_id.h"
#include "agent/sampler/process/mappings.h"
#include "agent/sampler/process/modules.h"
#include "agent/sampler/seam/window_processes.h"
#include "base/metrics.h"

struct processes;

struct process {
	uint32_t pid;
	uint32_t number; /* of this generation, from 1; not reused soon */
	uint64_t start_ns; /* CLOCK_MONOTONIC of its fork or exec; 0 = before we looked */
	uint64_t synced_ns; /* when /proc was read, which covers older records; 0 = never */
	char comm[PROCESS_COMM_BYTES + 1]; /* of the main thread; any bytes */
	char container_id[CONTAINER_ID_BYTES]; /* "" = none */
	char pod_uid[POD_UID_BYTES]; /* "" = not told */
	struct cgroup_paths *cgroups; /* read with it; NULL = not known */
	struct mappings *mappings; /* never NULL; a snapshot: replaced, not changed, once shared */
	uint32_t exec_id; /* of its program, as in samples; valid if `exec_known` */
	struct module *executable; /* the program's module, or NULL while unknown */
	uint32_t namespace_pid; /* in its own pid namespace; 0 = not read yet */
	uint64_t sampled_ns; /* time of its newest sample; 0 = none */
	bool kernel_thread;
	bool sampled; /* it has samples: keep until the sweep */
	bool ended;
	bool superseded; /* it has ended, and another program or process has its pid */
	bool exec_known;
	bool stale; /* records were lost: read /proc before the next use */
	bool unreadable; /* /proc did not give its mappings (gone before we looked) */
	bool unproven; /* records were lost: only pid and exec id are certain */
	bool open; /* samples were taken before it was known whether it is profiled */

	/* The table's own. */
	char *other_path; /* of its program; NULL = the module's path */
	struct shown *shown; /* by /proc, at a time the stream has not reached; or NULL */
	struct hidden *hidden; /* what was taken out of `mappings`; NULL = nothing */
	uint64_t reread_ns; /* when a walk's other mappings made us read /proc; 0 = never */
	bool numbers_differ; /* /proc shows other inode numbers than walks see */
	uint32_t replaced; /* number of the generation that its exec ended; 0 = none */
	struct process *next_ended;
	uint64_t forked_ns; /* when it was forked, CLOCK_MONOTONIC; 0 = before we looked */
	uint64_t ended_ns; /* time of the record that ended it */
	uint64_t gone_ns; /* when it was found missing from /proc; 0 = not yet */
	uint64_t start_ticks; /* its start in /proc/PID/stat; 0 = not read */
	uint32_t threads; /* live ones; 0 = not known */
	bool by_exec; /* the stream had the exec that began this generation */
	bool main_exited; /* the main thread has; the others may live on */
	bool looked_up; /* container and start time were read from /proc */
	uint64_t cgroup_id; /* as in its samples, when its container was last read; 0 = none yet */
	uint64_t cgroup_ns; /* the time of that sample */
	bool cgroup_left; /* it was in another before: it is perhaps in another container now */
	uint64_t moved_ns; /* the time of a sample by which it was in another container; 0 = none */
	bool pid_lost; /* ended, and records were lost since: the pid may be another's by now */
};

struct processes_options {
	int proc_fd; /* an open /proc; borrowed */
	struct modules *modules;
	const struct build_id_reader *build_ids; /* borrowed */
	struct metrics *metrics;
	size_t limit; /* live processes; more are refused (-E2BIG) and counted */
	/* A generation's program became known, or the generation ended. May be NULL. */
	void (*program)(void *context, struct process *process); /* `executable` became known */
	void (*ended)(void *context, struct process *process);
	/*
	 * PROCESS maps MAPPING, which is valid during the call; not called for what a child
	 * inherits at its fork. May be NULL.
	 */
	void (*mapped)(void *context, struct process *process, const struct mapping *mapping);
	/* PARENT forked CHILD, which has its program and mappings. May be NULL. */
	void (*forked)(void *context, struct process *parent, struct process *child);
	/* PROCESS is about to be freed: drop what belongs to it. May be NULL. */
	void (*forget)(void *context, struct process *process);
	void *context;
};

int processes_create(const struct processes_options *options, struct processes **ret_processes);
void processes_destroy(struct processes *ps);

/*
 * Reads all of /proc, or only PIDS if PID_COUNT is not 0. Returns -E2BIG if there are more
 * processes than the limit; the others stay unknown. A process that exits meanwhile is no error; a
 * failure to list /proc to its end is.
 */
int processes_scan(struct processes *ps, const uint32_t *pids, size_t pid_count);

/* Side-band records, in time order. Those older than a process's synced_ns change nothing. */
struct processes_mmap {
	uint64_t time_ns;
	uint32_t pid;
	uint64_t start, length, file_off;
	struct build_id build_id; /* size 0 = none given */
	uint64_t device, inode, generation; /* of the file; all 0 = none, or not known */
	const char *path;
};
void processes_mmap(struct processes *ps, const struct processes_mmap *event);
/* What a sample's stack walk saw mapped at one of its pcs. */
struct sighting {
	uint64_t pc;
	struct seen_mapping seen;
};
/*
 * Takes COUNT sightings OF process PID at TIME_NS. One that contradicts the records is looked up in
 * /proc; if /proc does not show it either, its range is unknown code from now on.
 */
void processes_seen(struct processes *ps, uint64_t time_ns, uint32_t pid, const struct sighting *of,
	size_t count);
void processes_comm(struct processes *ps, uint64_t time_ns, uint32_t pid, uint32_t tid,
	const char *comm, bool exec);
void processes_fork(struct processes *ps, uint64_t time_ns, uint32_t pid, uint32_t tid,
	uint32_t parent_pid, uint32_t parent_tid);
void processes_exit(struct processes *ps, uint64_t time_ns, uint32_t pid, uint32_t tid);
/*
 * Records between TIME_NS and UNTIL_NS were lost, or may have been: every live process is read
 * again when next used.
 */
void processes_lost(struct processes *ps, uint64_t time_ns, uint64_t until_ns);
/*
 * For who must know of processes that have no samples: after a loss, looks in /proc for those whose
 * records were lost. Call it once a second; each call reads some, until all are known.
 */
void processes_search(struct processes *ps, uint64_t now_ns);

/*
 * Finds the identity of a file that could not be read when it was mapped, if it was read elsewhere
 * since: device, inode, generation and build ID must be equal. False if it was not.
 */
bool processes_identify(
	struct processes *ps, const struct module_id *unseen, struct module_id *ret_id);

/* The fields of struct abi_sample that identify a sample's process. */
struct processes_sample {
	uint64_t time_ns;
	uint32_t pid;
	uint32_t exec_id;
	bool executing; /* in execve(): the exec id may be that before or after it */
	bool kernel_thread; /* there is no program */
	uint64_t cgroup_id; /* cgroup v2; 0 = not known */
};

/*
 * Returns the generation that SAMPLE belongs to at its point of the stream; it is kept until the
 * sweep after its end. An unknown process is read from /proc now. NULL only if out of memory or
 * over the limit: even a process of which nothing is certain gets an entry, without mappings.
 */
struct process *processes_get(struct processes *ps, const struct processes_sample *sample);
/* Whether all of P's mappings are known; if not, a pc outside of them may belong to anything. */
bool process_is_settled(const struct process *p);
/*
 * The path by which P's program was started, without the kernel's " (deleted)"; "" if unknown. The
 * module's path may differ: copies of a file are one module, with the path of the first copy seen.
 */
const char *process_program_path(const struct process *p);
/* The exec id of P's program, as in samples; NULL if it is not known. */
const uint32_t *process_exec_id(const struct process *p);
/* The newest generation of PID, which may have ended; NULL = none is known. */
const struct process *processes_of_pid(const struct processes *ps, uint32_t pid);
struct process *processes_find(struct processes *ps, uint32_t number); /* NULL = swept */
/*
 * Frees the generations that ended before BEFORE_NS (those of sealed windows), and checks whether
 * processes whose end may have been missed still exist.
 */
void processes_sweep(struct processes *ps, uint64_t before_ns);
/*
 * Frees the modules that no known generation maps and for which UNUSED returns true (as in
 * modules_sweep()). Returns how many were freed.
 */
size_t processes_sweep_modules(struct processes *ps, modules_unused_fn *unused, void *context);
size_t processes_count(const struct processes *ps);
/* Number of the module that stands for memory without a file. */
uint32_t processes_anon_module(const struct processes *ps);
/* Iterates over live generations, starting with *ITERATOR = 0; NULL at the end. */
struct process *processes_next(struct processes *ps, size_t *iterator);
/*
 * P's pid in its own innermost pid namespace (NSpid), read on first use; its pid in ours if it is
 * gone, 0 if NSpid cannot be read at the moment.
 */
uint32_t process_namespace_pid(struct processes *ps, struct process *p);
