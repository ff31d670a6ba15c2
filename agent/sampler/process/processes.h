/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process table: who ran, which program (each exec makes a new generation), what was mapped
 * where, at the time of each sample. Fed in time order with the kernel's side-band records; reads
 * /proc once at the start, for a process it never heard of, and after records were lost. Knows
 * nothing of rings or symbols.
 *
 * /proc shows a process as it is now, which is later than the sample or record that makes the table
 * read it. So what it shows counts from the time of the reading on. Until the stream gets there, a
 * sample counts as what is sure: of a generation only if the exec id says so, and with the mappings
 * that both the table and /proc have. What is not sure has no mappings, and is counted.
 *
 * A `struct process` is one generation of one pid: from fork or exec to exec or exit. Ended ones
 * that had samples are kept until processes_sweep(), so that a sealed window can still be read.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/mappings.h"
#include "agent/sampler/process/modules.h"
#include "base/metrics.h"

struct processes;

enum { PROCESS_COMM_BYTES = 16, CONTAINER_ID_BYTES = 65 };

struct process {
	uint32_t pid;
	uint32_t number; /* of this generation; from 1, not soon used again */
	uint64_t start_ns; /* CLOCK_MONOTONIC of its fork or exec; 0 = before we looked */
	uint64_t synced_ns; /* /proc was read at this time: older records are known; 0 = never */
	char comm[PROCESS_COMM_BYTES + 1]; /* of the main thread; any bytes */
	char container_id[CONTAINER_ID_BYTES]; /* 64 hex digits, or "" */
	struct mappings *mappings; /* never NULL; a snapshot: replaced, not changed, once shared */
	uint32_t exec_id; /* of its program, as in samples, if `exec_known` */
	struct module *executable; /* the program's module, or NULL while unknown */
	uint32_t namespace_pid; /* in its own pid namespace; 0 = not read yet */
	bool kernel_thread;
	bool sampled; /* a sample named it: keep until the sweep */
	bool ended;
	bool superseded; /* it has ended, and another program or process has its pid */
	bool exec_known;
	bool stale; /* records were lost: read /proc before the next use */
	bool unreadable; /* /proc did not give its mappings (gone before we looked) */
	bool unproven; /* records were lost: nothing but its pid is known for sure */

	/* The table's own. */
	char *other_path; /* of its program, where that is not the module's */
	struct shown *shown; /* by /proc, at a time that the stream has not reached; or NULL */
	struct hidden *hidden; /* what was taken out of `mappings`; NULL = nothing */
	uint64_t reread_ns; /* /proc was read since a walk saw other mappings; 0 = never */
	bool numbers_differ; /* /proc does not show its files' numbers */
	uint32_t replaced; /* number of the generation that its exec ended; 0 = none */
	struct process *next_ended;
	uint64_t forked_ns; /* when the pid came to be, CLOCK_MONOTONIC; 0 = before we looked */
	uint64_t ended_ns; /* time of the record that ended it */
	uint64_t gone_ns; /* /proc had it no longer at this time; 0 = not noticed */
	uint64_t start_ticks; /* its start as /proc/PID/stat tells; 0 = not read */
	uint32_t threads; /* live ones; 0 = not known */
	bool by_exec; /* the stream had the exec that began this generation */
	bool main_exited; /* the main thread has; the others may live on */
	bool looked_up; /* /proc was asked for what the stream does not tell */
	bool pid_lost; /* ended, and records were lost since: the pid may be another's by now */
};

struct processes_options {
	int proc_fd; /* an open /proc; borrowed */
	struct modules *modules;
	struct metrics *metrics;
	size_t limit; /* live processes; over it the table says -E2BIG and counts */
	/* A generation begins to be known with its program, or ends. May be NULL. */
	void (*program)(void *context, struct process *process); /* `executable` became known */
	void (*ended)(void *context, struct process *process);
	/* CHILD has the program and the mappings of PARENT. May be NULL. */
	void (*forked)(void *context, struct process *parent, struct process *child);
	/* It is about to be freed: drop what belongs to it. May be NULL. */
	void (*forget)(void *context, struct process *process);
	void *context;
};

int processes_create(const struct processes_options *options, struct processes **ret_processes);
void processes_destroy(struct processes *ps);

/*
 * Reads all of /proc (or only PIDS, when PID_COUNT is not 0). -E2BIG: more processes than the
 * limit, the rest is not known. A process that goes away meanwhile is no error; a /proc that cannot
 * be listed to its end is one.
 */
int processes_scan(struct processes *ps, const uint32_t *pids, size_t pid_count);

/* Side-band, in time order. Records older than a process's synced_ns change nothing. */
struct processes_mmap {
	uint64_t time_ns;
	uint32_t pid;
	uint64_t start, length, file_off;
	struct build_id build_id; /* size 0 = none given */
	uint64_t device, inode, generation; /* of the file; all 0 = none, or not known */
	const char *path;
};
void processes_mmap(struct processes *ps, const struct processes_mmap *event);
/* What the walk of a sample saw mapped where one of its pcs is. */
struct sighting {
	uint64_t pc;
	struct seen_mapping seen;
};
/*
 * COUNT sightings OF PID at TIME_NS. Where one is not what the records said, it is looked up in
 * /proc, and what is not found there either has no module from now on.
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
 * The identity of a file that could not be looked at when it was mapped, if it was seen elsewhere
 * since: its inode and what it says of itself are the same. False: it was not.
 */
bool processes_identify(
	struct processes *ps, const struct module_id *unseen, struct module_id *ret_id);

/* What tells of whom a sample is, as in struct abi_sample. */
struct processes_sample {
	uint64_t time_ns;
	uint32_t pid;
	uint32_t exec_id;
	bool executing; /* in execve(): the exec id may be that before or after it */
	bool kernel_thread; /* there is no program */
};

/*
 * The generation that SAMPLE is of, at its point of the stream; it is kept until the sweep after
 * its end. One that is not known is read from /proc now. NULL only when out of memory or over the
 * limit: even a process of which nothing is known for sure has an entry (with no mappings).
 */
struct process *processes_get(struct processes *ps, const struct processes_sample *sample);
/* Whether all that P maps is known: else a pc outside of its mappings may be of anything. */
bool process_is_settled(const struct process *p);
/*
 * The program's file as the process was started by it, without the kernel's " (deleted)"; "" while
 * unknown. Copies of a file are one module, which has the path of the first that was seen.
 */
const char *process_program_path(const struct process *p);
struct process *processes_find(struct processes *ps, uint32_t number); /* NULL = swept */
/*
 * Forgets the generations that ended before BEFORE_NS (those of sealed windows), and looks whether
 * processes whose end was not told for sure are still there.
 */
void processes_sweep(struct processes *ps, uint64_t before_ns);
/*
 * Forgets the modules that no known generation maps and UNUSED agrees to let go (as in
 * modules_sweep). Returns how many went.
 */
size_t processes_sweep_modules(struct processes *ps, modules_unused_fn *unused, void *context);
size_t processes_count(const struct processes *ps);
/* What code in memory without a file is in. */
uint32_t processes_anon_module(const struct processes *ps);
/* Walks live generations. Start with *ITERATOR = 0. NULL at the end. */
struct process *processes_next(struct processes *ps, size_t *iterator);
/*
 * PID in the process's own innermost pid namespace (NSpid), read on first use; PID itself if gone,
 * 0 where it cannot be read at the moment.
 */
uint32_t process_namespace_pid(struct processes *ps, struct process *p);
