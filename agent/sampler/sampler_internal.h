/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* struct sampler, shared by the sampler's own files. */
#include "agent/sampler/sampler.h"
#include "agent/sampler/build_ids.h"
#include "agent/sampler/jit_maps/jit_maps.h"
#include "agent/sampler/kernel_symbols/kernel_symbols.h"
#include "agent/sampler/memory/memory_guard.h"
#include "agent/sampler/memory/module_sweeper.h"
#include "agent/sampler/module_indexes/module_indexes.h"
#include "agent/sampler/module_indexes/trouble_log.h"
#include "agent/sampler/probes/off_cpu/waits.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/runtimes/runtimes.h"
#include "agent/sampler/samples/intake.h"
#include "agent/sampler/samples/pending_walks.h"
#include "agent/sampler/samples/stack_resolver.h"
#include "agent/sampler/unwind/unwind.h"
#include "agent/sampler/windows/windows.h"
#include "base/log.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/perf_map/perf_map.h"

enum { SAMPLER_MODULES_LIMIT = 65536 };

struct sampler {
	struct metrics metrics;
	struct loop *loop; /* borrowed */
	struct collect *collect;
	struct build_ids build_ids;
	struct modules *modules;
	struct processes *processes;
	struct windows *windows;
	void (*sealed)(void *context, const struct sealed_window *window);
	void (*full)(void *context);
	bool (*wants_file)(void *context, const struct module *module);
	void (*take_file)(void *context, const struct module *module, int fd);
	void *sealed_context;
	struct cache *cache;
	bool cache_trimmed;
	char *debug_directories; /* comma-separated */
	struct builds *builds;
	struct debuginfod *debuginfod; /* NULL = no server is asked */
	struct trouble_log trouble_log;
	struct module_indexes *module_indexes;
	struct jit_maps *jit_maps;
	struct kernel_symbols *kernel_symbols;
	bool kernel_symbols_used; /* read at the first kernel stack; BPF has the unwind tables */
	struct unwind *unwind; /* NULL: this kernel walks by frame pointer only */
	struct stack_resolver resolver;
	struct pending_walks walks;
	struct intake intake;
	int proc_fd;
	int statm_fd; /* /proc/self/statm; -1 = none */
	struct memory_guard memory_guard;
	struct module_sweeper module_sweeper;
	int drain_timer, upkeep_timer; /* -1 = none */
	bool started;
	bool idle; /* the drain timer is slow, as the last drain found nothing */
	bool waiting; /* the loop runs only until the builds are done */
	bool waiting_debug; /* and until no server is being queried */
	bool wait_expired;
	struct waits *waits; /* threads that left the CPU */
	uint64_t samples;
	struct runtimes runtimes;
};

/* events.c: collect's handlers with the sampler as context. */
void sampler_handlers(struct sampler *sampler, struct collect_handlers *ret_handlers);
/* Adds a tick to its profile and the taps, or resolves the stack of a wait. */
void sampler_add_sample(struct sampler *sampler, const struct attributed_sample *sample);
/* S belongs to P. sampler_add_sample() or sampler_lose_sample() follows. */
void sampler_take_sample(struct sampler *sampler, struct process *p, const struct abi_sample *s);
/* Counts S, which cannot be added, as lost. */
void sampler_lose_sample(struct sampler *sampler, const struct abi_sample *s);
const struct abi_stack *sampler_raw_stack(
	const struct sampler *sampler, uint32_t window, uint64_t id);

/* wiring.c */
int sampler_unwind_create(struct sampler *sampler);
/* Initializes stack resolver, pending walks and intake; the rooms they use must exist. */
int sampler_samples_init(struct sampler *sampler, const struct sampler_options *options);
void sampler_samples_deinit(struct sampler *sampler);

/* wiring_waits.c */
int sampler_waits_create(struct sampler *sampler, double off_cpu_share);

/* wiring_windows.c */
int sampler_windows_create(struct sampler *sampler, const struct sampler_options *options);

/* wiring_memory.c */
void sampler_memory_guard_init(struct sampler *sampler, const struct sampler_options *options);
/* The tables of modules and processes must exist. */
void sampler_module_sweeper_init(struct sampler *sampler);

/* wiring_modules.c */
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
void sampler_index_done(void *context, uint64_t tag, struct index *index);
/* The perf map of P, for a report; NULL if P has none. */
const struct perf_map *sampler_perf_map_of(void *context, struct process *p);
/* Requests the index of P's program, which is built if it is not cached. */
void sampler_request_program(struct sampler *sampler, struct process *p);
const struct index *sampler_index_of(void *context, const struct module *m);
