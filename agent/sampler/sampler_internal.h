/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* struct sampler, shared by the sampler's own files. */
#include "agent/sampler/sampler.h"
#include "agent/sampler/sampler_latency.h"
#include "agent/sampler/sampler_trace.h"
#include "agent/sampler/build_share.h"
#include "agent/sampler/files/build_ids.h"
#include "agent/sampler/files/file_helper.h"
#include "agent/sampler/losses.h"
#include "agent/sampler/jit_maps/jit_maps.h"
#include "agent/sampler/kernel_symbols/kernel_symbols.h"
#include "agent/sampler/latency_probes/latency_probes.h"
#include "agent/sampler/memory/memory_guard.h"
#include "agent/sampler/memory/module_sweeper.h"
#include "agent/sampler/module_indexes/module_indexes.h"
#include "agent/sampler/module_indexes/trouble_log.h"
#include "agent/sampler/probes/off_cpu/waits.h"
#include "agent/sampler/probed_files/measured_pids.h"
#include "agent/sampler/process/left_out_cgroups.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/runtimes/runtimes.h"
#include "agent/sampler/samples/aggregator.h"
#include "agent/sampler/samples/intake.h"
#include "agent/sampler/samples/pending_walks.h"
#include "agent/sampler/samples/sifting.h"
#include "agent/sampler/samples/stack_resolver.h"
#include "agent/sampler/schedule/build_wait.h"
#include "agent/sampler/schedule/drains.h"
#include "agent/sampler/schedule/upkeep.h"
#include "agent/sampler/symbolize/symbolize.h"
#include "agent/sampler/unwind/unwind.h"
#include "agent/sampler/windows/windows.h"
#include "base/log.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/perf_map/perf_map.h"

enum { SAMPLER_MODULES_LIMIT = 65536 };

struct sampler {
	struct metrics metrics;
	struct loop *loop; /* borrowed */
	struct collect *collect;
	struct file_helper file_helper;
	struct build_ids build_ids;
	struct modules *modules;
	struct processes *processes;
	struct windows *windows;
	struct window_processes sealed_processes; /* of the window that was passed on last */
	void (*sealed)(void *context, const struct sealed_window *window);
	void (*full)(void *context);
	bool (*wants_file)(void *context, const struct module_id *id);
	void (*take_file)(void *context, const struct module_id *id, int fd);
	void *sealed_context;
	struct cache *cache;
	char *debug_directories; /* comma-separated */
	bool kernel_debuginfo;
	struct builds *builds;
	struct build_share build_share;
	struct debuginfod *debuginfod; /* NULL = no server is asked */
	struct trouble_log trouble_log;
	struct losses losses;
	struct module_indexes *module_indexes;
	struct jit_maps *jit_maps;
	struct kernel_symbols *kernel_symbols;
	struct symbolize *symbolize;
	struct unwind *unwind; /* NULL: this kernel walks by frame pointer only */
	struct stack_resolver resolver;
	struct aggregator aggregator;
	struct pending_walks walks;
	struct intake intake;
	struct left_out_cgroups left_out_cgroups;
	struct sifting sifting;
	int proc_fd;
	int statm_fd; /* /proc/self/statm; -1 = none */
	struct memory_guard memory_guard;
	struct module_sweeper module_sweeper;
	struct drains drains;
	/* Since the last drain: a new program or mapping, an unfinished walk, a traced call. */
	bool news;
	struct upkeep upkeep;
	struct build_wait build_wait;
	struct waits *waits; /* threads that left the CPU */
	struct runtimes runtimes;
	struct latency *latency; /* NULL: no functions are measured */
	struct probed_files *probed_files; /* likewise; but there in a dry run */
	struct kernel_latency *kernel_latency; /* NULL: no kernel functions are measured */
	struct kernel_functions *kernel_functions; /* likewise; but there in a dry run */
	struct measured_pids measured_pids;
	struct sampler_trace_options trace; /* no callbacks: nothing is traced */
	struct trace_fetches trace_fetches;
	uint32_t trace_swept, kernel_trace_swept; /* trace_sweep() */
	struct latency_probes *latency_probes;
	struct latency *latency_of_probes; /* NULL = there are none */
	struct kernel_latency *kernel_latency_of_probes; /* NULL = none on kernel functions */
	int probes_timer; /* -1 = none */
	struct window_latency sealed_latency; /* of the window that was passed on last */
};

/* wiring_records.c: collect's handlers with the sampler as context. */
void sampler_handlers(struct sampler *sampler, struct collect_handlers *ret_handlers);

/* wiring_samples.c */
/* WITHOUT is enum mechanism values. */
int sampler_unwind_create(struct sampler *sampler, uint32_t without);
/* Initializes the rooms that a sample passes through; the rooms they use must exist. */
int sampler_samples_init(struct sampler *sampler, const struct sampler_options *options);
void sampler_samples_deinit(struct sampler *sampler);

/* wiring_schedule.c */
/* Initializes drains and upkeep; collect must exist. */
int sampler_schedule_init(struct sampler *sampler);
void sampler_schedule_deinit(struct sampler *sampler);
/* The builds must exist. */
void sampler_build_wait_init(struct sampler *sampler);

/* wiring_builds.c */
/* Without servers, there is no debuginfod, which is no error. */
int sampler_debuginfod_create(struct sampler *sampler, const struct sampler_options *options);
int sampler_builds_create(struct sampler *sampler);

/* wiring_processes.c: the tables of processes and JIT maps; that of modules must exist. */
int sampler_processes_create(struct sampler *sampler);

/* wiring_waits.c */
int sampler_waits_create(struct sampler *sampler, double off_cpu_share);

/* wiring_kernel_latency.c: called by wiring_latency.c; does nothing if no functions are wanted */
int sampler_kernel_latency_create(
	struct sampler *sampler, const struct sampler_options *options, const char **ret_step);
void sampler_kernel_latency_destroy(struct sampler *sampler);
/* wiring_latency.c: does nothing where no functions are measured */
/* The collector and the module indexes must exist. */
int sampler_latency_create(
	struct sampler *sampler, const struct sampler_options *options, const char **ret_step);
void sampler_latency_destroy(struct sampler *sampler);
/* PID is one of those that are followed, or no longer. */
void sampler_latency_follow(struct sampler *sampler, uint32_t pid, bool follow);
/* PID's process ends; in the kernel it may still have calls. */
void sampler_latency_process_ends(struct sampler *sampler, uint32_t pid);
/* PID is that of a new process. */
void sampler_latency_process_begins(struct sampler *sampler, uint32_t pid);
/* Whether functions are measured in P. */
bool sampler_latency_selects(const struct sampler *sampler, const struct process *p);
void sampler_latency_mapped(
	struct sampler *sampler, struct process *p, const struct mapping *mapping);
void sampler_latency_index(
	struct sampler *sampler, const struct module *module, const struct index *index);
void sampler_latency_keep(const struct sampler *sampler);
void sampler_latency_forget(struct sampler *sampler, const struct module *module);
void sampler_latency_upkeep(struct sampler *sampler);

/* As struct probed_files_options has them, with the sampler as context. */
int sampler_open_probed(
	void *context, const struct process *p, const struct mapping *mapping, int *ret_fd);
int sampler_want_functions(void *context, const struct process *p, const struct mapping *mapping);
int sampler_check_probed(void *context, const struct module *module, int fd);
bool sampler_fibers_of(
	void *context, const struct index *index, struct abi_runtime_process *ret_how);

/* wiring_trace.c: does nothing where nothing is traced */
void sampler_trace_event(struct sampler *sampler, const struct abi_trace_event *event);
void sampler_trace_chosen(void *context, const struct probed_chosen *file,
	const struct probed_function *functions, size_t count);
void sampler_trace_exit(struct sampler *sampler, uint32_t pid, uint32_t tid);
void sampler_trace_upkeep(struct sampler *sampler);
/* P's program became known, or P was forked: it is traced, or no longer. */
void sampler_trace_program(struct sampler *sampler, const struct process *p);
void sampler_trace_ended(struct sampler *sampler, const struct process *p);

/* wiring_probes.c: named probes */
/* The tables, the collector and the module indexes must exist. */
int sampler_probes_create(struct sampler *sampler);
void sampler_probes_destroy(struct sampler *sampler);
void sampler_probes_upkeep(struct sampler *sampler);
/* Adds what was measured since the last window to WINDOW and to its processes. */
void sampler_probes_seal(struct sampler *sampler, struct sealed_window *window);
void sampler_probes_forget_sealed(struct sampler *sampler);

/* wiring_symbolize.c */
/* The tables must exist. */
int sampler_symbolize_create(struct sampler *sampler);
/* Requests the kernel's index if it is wanted, and due. */
void sampler_want_kernel_lines(struct sampler *sampler);

/* wiring_windows.c */
int sampler_windows_create(struct sampler *sampler, const struct sampler_options *options);

/* wiring_memory.c */
void sampler_memory_guard_init(struct sampler *sampler, const struct sampler_options *options);
/* The tables of modules and processes must exist. */
void sampler_module_sweeper_init(struct sampler *sampler);

/* wiring_modules.c */
int sampler_runtimes_init(struct sampler *sampler);
/* Creates the module indexes; the builds and their sources must exist. */
int sampler_module_indexes_create(struct sampler *sampler);
/* As in struct unwind_options, with the sampler as context. */
enum unwind_module sampler_module_state(
	void *context, const struct module *m, const struct index **ret_index);
/* A sample of P has a cached stack: calls module_indexes_hit_again() for its frames if needed. */
void sampler_stack_hit(
	struct sampler *sampler, struct process *p, const struct profile_stack *stack);
/* P's program became known: takes its index from the cache and configures its runtime. */
void sampler_program_known(struct sampler *sampler, struct process *p);
void sampler_process_ended(struct sampler *sampler, struct process *p);
/* P maps MAPPING; CHILD was forked from PARENT. */
void sampler_runtime_mapped(
	struct sampler *sampler, const struct process *p, const struct mapping *mapping);
void sampler_runtime_forked(
	struct sampler *sampler, const struct process *parent, const struct process *child);
/* Requests the index of P's program, which is built if it is not cached. */
void sampler_request_program(struct sampler *sampler, struct process *p);
