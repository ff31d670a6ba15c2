/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The composition's own struct, shared by its files: agent.c, agent_events.c, agent_modules.c. */
#include "agent/sampler/sampler.h"
#include "agent/sampler/kernel_symbols.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/profile/waits.h"
#include "agent/sampler/unwind/unwind.h"
#include "base/log.h"
#include "base/map.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/perf_map/perf_map.h"

/* What was sampled between two turns of the sampler's window number. */
struct agent_window {
	uint32_t number;
	uint64_t opened_ns; /* CLOCK_MONOTONIC; 0 = from the start */
	struct profile *profile; /* NULL = none */
};

enum {
	AGENT_MAX_TAPS = 8,
	/*
	 * Beside abi_sample's flags: the thread of an ABI_SAMPLE_OFF_CPU runs again, and `period`
	 * is how long it was away, in ns.
	 */
	AGENT_SAMPLE_WAITED = 1 << 16,
};

/* Why samples have no names: METRIC_UNNAMED_*. */
enum agent_unnamed {
	AGENT_UNNAMED_GONE,
	AGENT_UNNAMED_LOST_RECORDS,
	AGENT_UNNAMED_LOST_MAPPING,
	AGENT_UNNAMED_REASONS,
};

/* A profile on demand, beside the windows: what is sampled while it is open, of one process or all.
 */
struct agent_tap {
	struct profile *profile; /* NULL = free */
	uint32_t pid; /* 0 = all */
	uint64_t opened_ns; /* processes that ended since then are still needed */
};

struct agent {
	struct metrics metrics;
	struct loop *loop; /* borrowed */
	struct collect *collect;
	struct modules *modules;
	struct processes *processes;
	struct agent_window current;
	struct agent_window previous; /* being sealed: late records still come */
	bool previous_complete; /* they are in; it waits for indexes only */
	struct agent_tap taps[AGENT_MAX_TAPS];
	uint64_t profile_limit_bytes;
	void (*sealed)(void *context, const struct profile *profile);
	void (*full)(void *context);
	bool (*wants_file)(void *context, const struct module *module);
	void (*take_file)(void *context, const struct module *module, int fd);
	uint64_t offered_anew_ns; /* what was offered until then does not count */
	void *sealed_context;
	int grace_timer; /* -1 = none */
	struct cache *cache;
	bool cache_trimmed;
	char *debug_directories; /* comma-separated */
	struct builds *builds;
	struct debuginfod *debuginfod; /* NULL = no server is asked */
	bool debuginfod_failing, debuginfod_wrong; /* which the log has said */
	struct builds_setbacks setbacks; /* likewise */
	struct kernel_symbols *kernel_symbols;
	bool kernel_frames; /* there was one */
	bool kernel_symbols_used; /* for it, and BPF was told where the unwind tables are */
	struct unwind *unwind; /* NULL: this kernel walks by frame pointer only */
	struct waiting_sample *waiting_samples; /* for module indexes; the last one first */
	size_t waiting_bytes, waiting_limit_bytes;
	bool module_came; /* waiting samples may go on */
	bool more_may_go_on; /* those that were left for the next time */
	struct index *vdso_index;
	int proc_fd;
	int statm_fd; /* our own memory's size; -1 = none */
	uint64_t memory_limit_bytes; /* 0 = none */
	unsigned int memory_pause, memory_wait; /* looks until the caches are let go again */
	uint64_t modules_swept_ns;
	size_t modules_kept; /* by the last sweep that kept only what is needed */
	unsigned int look_ups;
	uint64_t file_bytes; /* resident ones, when no index page was */
	int drain_timer, upkeep_timer; /* -1 = none */
	bool started;
	bool idle; /* the drain timer is slow: the last look found nothing */
	bool follow;
	const struct selection *selection; /* the owner's; NULL = all processes */
	bool waiting; /* the loop runs only until the builds are done */
	bool waiting_debug; /* and until no server is asked any more */
	bool wait_expired;
	struct map followed; /* pid → 1, with `follow` */
	struct waits waits; /* threads that left the CPU */
	uint64_t samples;
	uint64_t first_sample_ns;
	uint64_t newest_sample_ns;
	struct log_rate gap_log, resync_log, unnamed_log[AGENT_UNNAMED_REASONS];
	uint64_t unopened_until_ns; /* a module's file is still wanted from whoever maps it */
	struct log_rate setback_log;
	bool goids_refused; /* of a process, by a full table: it is tried again */
};

/* Hangs from module.owner_data. */
struct agent_module {
	struct index *index; /* NULL while unknown or not to be had */
	uint32_t failed_process; /* generation through which the file could not be opened */
	uint64_t offered_ns; /* when WANTS_FILE was asked; 0 = never */
	/* No index was to be had, or one without lines: ask again from this time on; 0 = no. */
	uint64_t retry_ns;
	/* Times in a row that we had no means to ask for it, and when to ask again. */
	unsigned int setbacks;
	uint64_t rest_until_ns;
	bool not_cached; /* looked up when its program was executed: do not look again */
};

/* The perf map of a program image. All times are CLOCK_MONOTONIC. */
struct agent_jit {
	int fd; /* -1 = none; opened when a frame without a file is seen */
	struct perf_map *map; /* NULL = none; a forked child may have one without a file */
	uint64_t look_ns; /* when the file is to be looked for, or at, again */
	uint64_t looked_ns; /* when a report did so last */
	unsigned int misses; /* times in a row that there was none */
	bool refused; /* it cannot be opened or read, which is counted */
	bool complete; /* the process has ended, and all it wrote is read */
	uint64_t sampled_ns; /* the program's last sample with such a frame */
	uint64_t read_ns, cost_ns; /* when it was read last, and how long that took */
	struct perf_map_mark before; /* what the map held before that */
	/* What the map was before the file was written anew, while it may have been by another. */
	struct perf_map *previous;
	uint64_t rewritten_ns;
};

/* Hangs from process.owner_data. */
struct agent_process {
	struct agent_jit jit;
	bool go_configured; /* the sampler reads this generation's goids, or nobody can */
	bool go_bound; /* with the exec id, so that no later program's are read that way */
	bool go_refused; /* it could not be told to, which is counted */
};

/* agent_events.c: collect's handlers with the agent as context. */
void agent_handlers(struct agent *agent, struct collect_handlers *ret_handlers);

/*
 * Adds a sample to its profile and the taps. STACK: its user stack, resolved with MAPPINGS; NULL:
 * the frames it names, with the mappings of P.
 */
void agent_add_sample(struct agent *agent, struct process *p, const struct abi_sample *s,
	const struct mappings *mappings, const struct unwind_stack *stack);
const struct abi_stack *agent_raw_stack(const struct agent *agent, uint32_t window, uint64_t id);

/* agent_unwind.c */
/* So many of the times that threads leave the CPU are sampled: what waits is more then. */
int agent_unwind_create(struct agent *agent, double off_cpu_share);
void agent_unwind_destroy(struct agent *agent);
/* A sample of P: tables for the next ones. */
void agent_unwind_sampled(struct agent *agent, const struct process *p, const struct abi_sample *s);
/* Whether the samples of TGID are not wanted: its walks are then not left to us. */
void agent_unwind_leave_out(struct agent *agent, uint32_t tgid, bool out);
/* Finishes the walk, now or when the module indexes that it needs are there. */
void agent_unwind_finish(
	struct agent *agent, struct process *p, const struct abi_unfinished *unfinished);
/*
 * Lets samples go on whose modules came, about MOST of them: the rings have to be read meanwhile.
 * Not to be called from a module's `done`.
 */
void agent_unwind_retry(struct agent *agent, size_t most);
/* Lets the samples of WINDOW (0 = all) go on without what they wait for. */
void agent_unwind_flush(struct agent *agent, uint32_t window);

/* What waiting samples may need counts as used. */
void agent_unwind_keep_modules(const struct agent *agent);

/* The thread of WAKE runs before the walk of its sample was finished. */
void agent_unwind_waited(struct agent *agent, const struct abi_wake *wake);

/* agent_waits.c */
/* S is of a thread that leaves the CPU. */
void agent_wait_begins(struct agent *agent, const struct abi_sample *s);
/* What is known of the wait that began with S; NULL: no longer of interest. */
struct wait *agent_wait_of(struct agent *agent, const struct abi_sample *s);
/* SAMPLE is S, its stack in the profile of S's window. */
void agent_wait_resolved(
	struct agent *agent, const struct abi_sample *s, const struct profile_sample *sample);
void agent_wait_ends(struct agent *agent, const struct abi_wake *wake);
/* WINDOW, the previous one, is about to be sealed. */
void agent_waits_move(struct agent *agent, uint32_t window);

/* agent_windows.c */
void agent_windows_deinit(struct agent *agent);
/* Seals the window that waits for its last records, if there is one. */
void agent_seal_previous(struct agent *agent);
/* Since when everything that is still to be reported has been sampled. */
uint64_t agent_oldest_open_ns(const struct agent *agent);

/* agent_memory.c */
/* Between two windows: modules that nobody maps any more. */
void agent_forget_modules(struct agent *agent);
/* What is not needed until the next window ends: free heap, pages of indexes, code. */
void agent_give_back_memory(struct agent *agent);
/* Once a second: lets caches go when memory comes near its limit. */
void agent_look_at_memory(struct agent *agent);
/* After records were read: a window that is nearly full ends early. */
void agent_look_at_profile(struct agent *agent);
/* Resident bytes, and those of mapped files among them; 0 when it cannot be told. */
uint64_t agent_resident_bytes(const struct agent *agent, uint64_t *ret_file_bytes);

/* agent_jits.c */
void agent_jit_deinit(struct agent_jit *jit);
/* A frame of P is in memory without a file. */
void agent_jit_hit(struct agent *agent, struct process *p);
void agent_jit_forked(struct agent *agent, struct process *parent, struct process *child);
void agent_jit_ended(struct process *p);
/* For a report. NULL: it has none. */
const struct perf_map *agent_perf_map_of(void *context, struct process *p);
/* Gives back what can be read again at its next use. */
void agent_jit_let_go(struct process *p);

/* agent_modules.c */
struct agent_process *agent_process_data(struct process *p); /* made on first use; NULL: memory */
void agent_process_data_free(struct process *p);
struct agent_module *agent_module_data(struct module *m);
void agent_module_data_free(struct module *m);
/* A frame of P fell into MAPPING: asks for its module's index, once. */
void agent_module_hit(struct agent *agent, struct process *p, const struct mapping *mapping);
/* Indexes for files that could not be looked at when they were mapped, and were seen since. */
void agent_identify_modules(struct agent *agent);
/* As that, for the modules of a stack that was resolved before, while a file is still wanted. */
void agent_stack_hit(struct agent *agent, struct process *p, const struct profile_stack *stack);
/* P's program became known: asks for what its cache holds, configures goids. */
void agent_program_known(struct agent *agent, struct process *p);
void agent_process_ended(struct agent *agent, struct process *p);
/* Once a second: goroutine ids of the processes that found no room before. */
void agent_configure_refused_goids(struct agent *agent);
/* Tells the sampler the exec id of P's program, once that is known. */
void agent_bind_goids(struct agent *agent, struct process *p);
/* Once a second: says whether debuginfod servers answer. */
void agent_look_at_debuginfod(struct agent *agent);
/* Likewise: says that index builds came to nothing for a reason that may pass. */
void agent_look_at_builds(struct agent *agent);
void agent_index_done(void *context, uint64_t tag, struct index *index);
/* Asks for the index of P's program, building it when it is not cached. */
void agent_request_program(struct agent *agent, struct process *p);
const struct index *agent_index_of(void *context, const struct module *m);
void agent_forget_index_pages(struct agent *agent);
/* To be called at look-ups: the same, when they have touched many. */
void agent_keep_indexes_small(struct agent *agent);
