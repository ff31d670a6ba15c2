/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel side: one output event and ring per CPU that carries the kernel's side-band, one ring
 * with the sampler's records (the same where it has none of its own), and the sampling events with
 * the BPF program. Merges the rings by time and hands each record to the owner. Knows nothing of
 * processes, modules or symbols.
 *
 * Order of calls: create (everything is loaded and the rings record side-band), then the owner
 * reads /proc, then start (sampling begins). CPUs that come online later are taken in by
 * collect_check_cpus().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/mechanisms.h"
#include "base/metrics.h"
#include "base/module_id.h"
#include "bpf/abi/sample.h"
#include "bpf/abi/sampler.h"

struct abi_kernel_tables;
struct collect;
struct probe;
struct tables;

/* PERF_RECORD_MMAP2 of an executable mapping. */
struct collect_mmap {
	uint64_t time_ns;
	uint32_t tgid, tid;
	uint64_t start, length, file_off; /* bytes */
	uint32_t protection; /* PROT_* */
	struct build_id build_id; /* size 0: none, or the kernel cannot tell */
	/* The file; all 0 = none, or (of what has a build ID) its record was lost. */
	uint64_t device; /* makedev(major, minor) */
	uint64_t inode;
	uint64_t generation; /* of the inode number */
	const char *path; /* as the kernel gives it: `/…`, `[vdso]`, `//anon` */
};

/* Called in time order. Pointers live for the call. Any may be NULL. */
struct collect_handlers {
	void (*tick)(void *context, uint64_t time_ns, const struct abi_tick *tick);
	/* A thread leaves the CPU, and runs again. */
	void (*switch_out)(
		void *context, uint64_t time_ns, const struct abi_switch_out *switch_out);
	void (*wake)(void *context, uint64_t time_ns, const struct abi_wake *wake);
	/* A tick or a switch whose walk is to be finished. NULL: it goes to `tick` or `switch_out`.
	 */
	void (*unfinished)(
		void *context, uint64_t time_ns, const struct abi_unfinished *unfinished);
	/* What the walk of the sample that comes next found mapped. */
	void (*sightings)(void *context, uint64_t time_ns, const struct abi_sightings *sightings);
	void (*stack)(void *context, const struct abi_stack *stack);
	void (*mmap)(void *context, const struct collect_mmap *mmap);
	void (*comm)(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm,
		bool exec);
	void (*fork)(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid,
		uint32_t parent_tgid, uint32_t parent_tid);
	void (*exit)(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid);
	void (*ksymbol)(void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf,
		bool gone);
	/*
	 * Side-band records between TIME_NS and UNTIL_NS are missing, or may be: what they told of
	 * is not known. Called when everything up to TIME_NS has been delivered.
	 */
	void (*lost)(void *context, uint64_t time_ns, uint64_t until_ns);
	void *context;
};

enum collect_event { COLLECT_CPU_CLOCK, COLLECT_CYCLES };

struct collect_options {
	const struct probe *const *probes; /* that there are; ends with NULL. Borrowed */
	enum collect_event event;
	uint64_t frequency_hz; /* or, when 0, */
	uint64_t period; /* ns (cpu-clock) or cycles */
	const int *cpus; /* only these, or NULL for all online */
	size_t cpu_count;
	/* Of data in each CPU's ring, and in the sampler's own; a power of two, 0 = by the rate. */
	uint32_t ring_pages;
	uint32_t without; /* enum mechanism values, for tests */
	bool user, kernel; /* at least one; both by default */
	/* Of the times that threads leave the CPU so many are sampled, 0 to 1. 0: none */
	double off_cpu_share;
	struct abi_sampler_config filter; /* stacks, self and read_fibers included; pidns_level is
						set here */
	const uint32_t *tgids; /* for filter.filter_tgids */
	size_t tgid_count;
	const uint32_t *tids;
	size_t tid_count;
	struct metrics *metrics;
	struct collect_handlers handlers;
};

/*
 * Errors: -EPERM/-EACCES no right to (root, CAP_PERFMON + CAP_BPF, perf_event_paranoid), -ENOENT no
 * PMU for the event, -EOPNOTSUPP no kernel BTF or a program the kernel refuses. *RET_STEP says at
 * which step, for the message ("open the sampling event", "load the BPF program"); a static text.
 */
int collect_create(
	const struct collect_options *options, struct collect **ret_collect, const char **ret_step);
void collect_destroy(struct collect *c);
int collect_start(struct collect *c);
int collect_stop(struct collect *c); /* no more samples; rings stay readable */

/*
 * Readable when rings want to be drained (an epoll of all rings): put it into the loop. The
 * sampler's own rings do not say so: they are to be drained twice a second at least.
 */
int collect_fd(const struct collect *c);
/*
 * Hands over everything up to UNTIL_NS (0: up to now); records of different CPUs are delivered in
 * time order. While sampling runs, "now" is 200 us ago, when all outputs that began are done.
 * Returns how many records, or a negative errno.
 */
int64_t collect_drain(struct collect *c, uint64_t until_ns);
/* From here on each stack is shipped anew; returns the new window's number (from 1). */
uint32_t collect_next_window(struct collect *c);
/* Until it is called again without PAUSE the CPUs are not sampled; waits go on being watched. */
int collect_pause(struct collect *c, bool pause);
/* Changes the rate of a sampler made with frequency_hz; no sample is lost. */
int collect_set_frequency(struct collect *c, uint64_t hz);
/* Opens events on CPUs that came online, forgets those that went. */
int collect_check_cpus(struct collect *c);

/* What TGID's runtime runs on its threads is read this way from now on. */
int collect_set_runtime(struct collect *c, uint32_t tgid, const struct abi_runtime_process *how);
void collect_remove_runtime(struct collect *c, uint32_t tgid);

/* Once: where the kernel has its own unwind tables, so that BPF can walk by them. */
void collect_set_kernel_tables(struct collect *c, const struct abi_kernel_tables *tables);

/* Where to write unwind tables (agent/sampler/collect/tables.h); NULL: walks go by frame pointer.
 */
struct tables *collect_tables(const struct collect *c);

/* Sum over CPUs of an ABI counter. */
uint64_t collect_counter(const struct collect *c, enum abi_counter counter);
/* Adds what the kernel and BPF counted since the last call to the metrics given at creation. */
void collect_count(struct collect *c);
size_t collect_cpu_count(const struct collect *c);
/* Run time of the BPF programs in ns and their runs. */
int collect_bpf_stats(const struct collect *c, uint64_t *ret_ns, uint64_t *ret_runs);
/* Bytes of kernel memory of the maps (memlock as fdinfo tells). */
uint64_t collect_map_bytes(const struct collect *c);
