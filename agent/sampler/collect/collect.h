/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel side. Each CPU has an output event whose ring carries the kernel's side-band, a ring
 * with the sampler's records (the same ring if the sampler has none of its own), and a sampling
 * event with the BPF program. Merges the rings by time and hands each record to the owner. Knows
 * nothing of processes, modules or symbols.
 *
 * Order of calls: create (everything is loaded and the rings record side-band), then the owner
 * reads /proc, then start (sampling begins). collect_check_cpus() adds CPUs that come online later.
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
struct abi_trace_event;
struct bpf_object;
struct collect;
struct latency_options;
struct probe;
struct tables;
struct trace_options;

/* PERF_RECORD_MMAP2 of an executable mapping. */
struct collect_mmap {
	uint64_t time_ns;
	uint32_t tgid, tid;
	uint64_t start, length, file_off; /* bytes */
	uint32_t protection; /* PROT_* */
	struct build_id build_id; /* size 0 = none, or the kernel does not report it */
	/* The file. All 0 = none, or, if there is a build ID, the record with the file was lost. */
	uint64_t device; /* makedev(major, minor) */
	uint64_t inode;
	uint64_t generation; /* of the inode number */
	const char *path; /* as the kernel reports it: `/…`, `[vdso]`, `//anon` */
};

/* Called in time order. Pointers are valid during the call. Any handler may be NULL. */
struct collect_handlers {
	void (*tick)(void *context, uint64_t time_ns, const struct abi_tick *tick);
	/* A thread leaves the CPU, and runs again. */
	void (*switch_out)(
		void *context, uint64_t time_ns, const struct abi_switch_out *switch_out);
	void (*wake)(void *context, uint64_t time_ns, const struct abi_wake *wake);
	void (*call)(void *context, uint64_t time_ns, const struct abi_call *call);
	/* An entry or a return of a traced function; its payload follows. */
	void (*trace)(void *context, const struct abi_trace_event *event);
	/* A sample whose walk is unfinished. NULL: it goes to the handler of its kind. */
	void (*unfinished)(
		void *context, uint64_t time_ns, const struct abi_unfinished *unfinished);
	/* A piece of stack for unfinished samples that come later. */
	void (*chunk)(void *context, const struct abi_chunk *chunk);
	/* Words of the stack of that thread's next unfinished sample. */
	void (*returns)(void *context, const struct abi_returns *returns);
	/* Mappings that the next sample's walk found. */
	void (*sightings)(void *context, uint64_t time_ns, const struct abi_sightings *sightings);
	/* Or a struct abi_fiber_facts, which has the same head; the kind tells. */
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
	 * Side-band records between TIME_NS and UNTIL_NS are missing, or may be. Called when
	 * everything up to TIME_NS has been delivered.
	 */
	void (*lost)(void *context, uint64_t time_ns, uint64_t until_ns);
	void *context;
};

enum collect_event { COLLECT_CPU_CLOCK, COLLECT_CYCLES };

struct collect_options {
	const struct probe *const *probes; /* all that exist; ends with NULL. Borrowed */
	enum collect_event event;
	uint64_t frequency_hz; /* 0 = use `period` */
	uint64_t period; /* ns (cpu-clock) or cycles */
	const int *cpus; /* only these; NULL = all that are online */
	size_t cpu_count;
	/* Data pages of each perf ring and sample ring, a power of two; 0 = by the rate. */
	uint32_t ring_pages;
	/* A recording: larger rings, so that the first sample of the deepest stack is whole. */
	bool ends_soon;
	uint32_t without; /* enum mechanism values to switch off, for tests */
	bool user, kernel; /* at least one; both by default */
	bool no_ticks; /* CPUs are not sampled; their side-band is recorded all the same */
	/* Measures functions (agent/sampler/probes/latency/latency.h); NULL = none. Borrowed. */
	const struct latency_options *latency;
	bool call_stacks; /* and samples the stack of each call that is measured */
	/*
	 * Traces their calls instead (agent/sampler/probes/trace/trace.h); NULL = no. Borrowed.
	 */
	const struct trace_options *trace;
	/* The share of waits that is sampled, 0 to 1; 0 = none. */
	double off_cpu_share;
	struct abi_sampler_config filter; /* stacks, self and read_fibers included; pidns_level is
						set here */
	/*
	 * Programs that ask (bpf/probes/descendants.bpf.h) also want descendants of `tgids`, which
	 * are then the only terms of the filter.
	 */
	bool follow;
	const uint32_t *tgids; /* for filter.filter_tgids */
	size_t tgid_count;
	const uint32_t *tids;
	size_t tid_count;
	struct metrics *metrics;
	struct collect_handlers handlers;
};

/*
 * Returns -EPERM or -EACCES without the rights (root, CAP_PERFMON + CAP_BPF, perf_event_paranoid),
 * -ENOENT if the event has no PMU, -EOPNOTSUPP if there is no kernel BTF or the kernel rejects a
 * program. *RET_STEP, a static text, names the step that failed ("load the BPF program").
 */
int collect_create(
	const struct collect_options *options, struct collect **ret_collect, const char **ret_step);
void collect_destroy(struct collect *c);
int collect_start(struct collect *c);
int collect_stop(struct collect *c); /* no more samples; rings stay readable */

/*
 * An epoll descriptor of all perf rings, readable when they should be drained. The sampler's own
 * rings do not wake anyone: drain at least twice a second.
 */
int collect_fd(const struct collect *c);
/*
 * Delivers all records up to UNTIL_NS (0 = up to now), of all CPUs in time order. While sampling
 * runs, "now" is 200 us ago: every output that began before is complete. Returns the number of
 * records or a negative errno.
 */
int64_t collect_drain(struct collect *c, uint64_t until_ns);
/*
 * Whether the last drain left much in a ring: it filled, and woke the reader, in the last 200 us.
 * Nothing wakes the reader for that again, so drain again soon. Until then unfinished walks get no
 * more room.
 */
bool collect_left_much(const struct collect *c);
/* Begins a window, in which every stack is shipped again. Returns its number (from 1). */
uint32_t collect_next_window(struct collect *c);
/* Pauses or resumes the sampling of CPUs. Waits are still tracked during a pause. */
int collect_pause(struct collect *c, bool pause);
/* Changes the rate of a sampler made with frequency_hz; no sample is lost. */
int collect_set_frequency(struct collect *c, uint64_t hz);
/*
 * Replaces the processes to be sampled, of a collector made with filter.filter_tgids. On failure,
 * some are. Returns -E2BIG if there are more than ABI_MAX_PIDS.
 */
int collect_set_tgids(struct collect *c, const uint32_t *tgids, size_t count);
/*
 * Sets whether nothing of the control group ID (version 2) is sampled, of a collector made with
 * filter.choose_cgroups. Its descendants are groups of their own. Returns -E2BIG if there are more
 * than ABI_LEFT_OUT_CGROUPS.
 */
int collect_leave_out_cgroup(struct collect *c, uint64_t id, bool out);
/*
 * Opens events on CPUs that came online, closes those of CPUs that went offline. CPUs whose
 * counters moved between two calls of collect_count() are not interrupted for it.
 */
int collect_check_cpus(struct collect *c);

/* Sets how BPF reads which fibers the runtime of TGID runs on its threads. */
int collect_set_runtime(struct collect *c, uint32_t tgid, const struct abi_runtime_process *how);
void collect_remove_runtime(struct collect *c, uint32_t tgid);

/* Tells BPF where the kernel's own unwind tables are. Call it once. */
void collect_set_kernel_tables(struct collect *c, const struct abi_kernel_tables *tables);

/* Where to write unwind tables (agent/sampler/collect/tables.h); NULL = walks by frame pointer. */
struct tables *collect_tables(const struct collect *c);

/* The loaded BPF object of the probe NAME, for its owner. Returns NULL if that is not wanted. */
struct bpf_object *collect_probe_object(const struct collect *c, const char *name);

/*
 * Loads the probe that measures functions, of a collector made without `latency`; its owner finds
 * it by collect_probe_object("latency"). Takes some tenths of a second. Errors are those of
 * collect_create().
 */
int collect_add_latency(
	struct collect *c, const struct latency_options *latency, const char **ret_step);
/* Unloads it; nothing of it is attached. */
void collect_remove_latency(struct collect *c);
/* As above, "kernel_latency": functions of the kernel, after the other one and removed before it.
 */
int collect_add_kernel_latency(
	struct collect *c, const struct latency_options *latency, const char **ret_step);
void collect_remove_kernel_latency(struct collect *c);

/* A counter's sum over all CPUs. */
uint64_t collect_counter(const struct collect *c, enum abi_counter counter);
/* Adds what the kernel and BPF counted since the last call to the metrics given at creation. */
void collect_count(struct collect *c);
size_t collect_cpu_count(const struct collect *c);
/* Run time of the BPF programs in ns, and how often they ran. */
int collect_bpf_stats(const struct collect *c, uint64_t *ret_ns, uint64_t *ret_runs);
/* Kernel memory of the maps in bytes (memlock in fdinfo). */
uint64_t collect_map_bytes(const struct collect *c);
