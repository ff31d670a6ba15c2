/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From record to profile. Records come in time order, so the process table is at each sample as it
 * was when the sample was taken: stacks are resolved to (module, file offset) here and now, and
 * nothing later depends on what the process did afterwards.
 */
#include <string.h>

#include "agent/sampler/sampler_internal.h"
#include "base/clock.h"
#include "base/log.h"

enum {
	STACK_FRAMES_LIMIT = 2 * ABI_MAX_FRAMES + 2,
	/* Of the tracing of a switch are so many innermost ones at most. */
	SWITCH_DEPTH = 12,
};

/* How often the log says again what the counters go on counting. */
static const uint64_t LOG_INTERVAL_NS = UINT64_C(60) * 1000 * 1000 * 1000;

struct frames {
	struct profile_frame items[STACK_FRAMES_LIMIT];
	uint32_t count, kernel_count, flags;
};

/*
 * A thread leaves the CPU in __schedule(); what that calls to tell us of it is not what the thread
 * does. The number of these frames differs from kernel to kernel.
 */
static uint32_t frames_of_tracing(const struct agent *agent, const struct abi_stack *raw)
{
	const struct kallsyms *kallsyms = kernel_symbols_table(agent->kernel_symbols);
	struct ksymbol symbol;

	for (uint32_t i = 0; kallsyms && i < raw->frame_count && i < SWITCH_DEPTH; i++) {
		if (kallsyms_lookup(kallsyms, raw->frames[i], &symbol) &&
			!strncmp(symbol.name, "__schedule", strlen("__schedule")))
			return i;
	}
	return 0;
}

static struct profile_frame kernel_frame(const struct agent *agent, uint64_t kaddr, bool is_return)
{
	uint32_t tenant = kernel_symbols_tenant(agent->kernel_symbols, kaddr - is_return);

	return (struct profile_frame){
		.address = kaddr,
		.module = PROFILE_MODULE_KERNEL,
		.flags = (is_return ? PROFILE_FRAME_RETURN : 0) |
			 tenant << PROFILE_FRAME_TENANT_SHIFT,
	};
}

static void add_kernel_frames(
	const struct agent *agent, struct frames *out, const struct abi_stack *raw, uint32_t first)
{
	for (uint32_t i = first; i < raw->frame_count && i < ABI_MAX_FRAMES; i++)
		out->items[out->count++] = kernel_frame(agent, raw->frames[i], i > 0);
	out->kernel_count = out->count;
	if (raw->flags & ABI_STACK_DEPTH)
		out->flags |= PROFILE_STACK_DEPTH;
}

static struct profile_frame user_frame(struct agent *agent, struct process *p,
	const struct mappings *mappings, uint64_t pc, bool is_return)
{
	struct profile_frame frame = {
		.address = pc,
		.module = PROFILE_MODULE_NONE,
		.flags = is_return ? PROFILE_FRAME_RETURN : 0,
	};
	/* A call may be the last instruction of a mapping. */
	const struct mapping *mapping = mappings_find(mappings, pc - is_return);

	if (!mapping)
		return frame;
	frame.module = mapping->module->number;
	if (mapping->module->kind != MODULE_ANON)
		frame.address = pc - mapping->start + mapping->file_off;
	agent_module_hit(agent, p, mapping);
	return frame;
}

/* The user stack of a sample, however it was walked, and what its pcs are resolved with. */
struct user_stack {
	const struct mappings *mappings;
	const abi_u64 *frames;
	uint32_t count, end; /* enum abi_unwind_end; 0 = not known */
	bool cut; /* at the depth limit */
};

static void add_user_frames(
	struct agent *agent, struct process *p, struct frames *out, const struct user_stack *user)
{
	for (uint32_t i = 0; i < user->count && i < ABI_MAX_FRAMES; i++) {
		const struct profile_frame frame =
			user_frame(agent, p, user->mappings, user->frames[i], i > 0);

		if (frame.module == processes_anon_module(agent->processes))
			out->flags |= PROFILE_STACK_JIT;
		out->items[out->count++] = frame;
	}
	if (out->flags & PROFILE_STACK_JIT)
		agent_jit_hit(agent, p);
	out->flags |= user->end << PROFILE_STACK_END_SHIFT;
	if (user->cut)
		out->flags |= PROFILE_STACK_DEPTH;
}

/* The window that a record belongs to. One of a window long sealed goes into the current one. */
static struct profile *profile_of(const struct agent *agent, uint32_t window)
{
	bool late = agent->previous.profile && window == agent->previous.number;

	return late ? agent->previous.profile : agent->current.profile;
}

const struct abi_stack *agent_raw_stack(const struct agent *agent, uint32_t window, uint64_t id)
{
	return profile_get_raw(profile_of(agent, window), window, id);
}

static bool raw_user_stack(const struct agent *agent, const struct process *p,
	const struct abi_sample *s, struct user_stack *ret_user)
{
	const struct abi_stack *raw = agent_raw_stack(agent, s->window, s->user_stack);

	if (!raw)
		return false;
	*ret_user = (struct user_stack){
		.mappings = p->mappings,
		.frames = raw->frames,
		.count = raw->frame_count,
		.end = (raw->flags & ABI_STACK_END_MASK) >> ABI_STACK_END_SHIFT,
		.cut = raw->flags & ABI_STACK_DEPTH,
	};
	return true;
}

/* The two stacks of a sample as one into PROFILE. USER NULL: as the sample names it. */
static int resolve_stack(struct agent *agent, struct profile *profile, struct process *p,
	const struct abi_sample *s, const struct user_stack *user, uint32_t *ret_stack)
{
	struct frames frames = { 0 };
	struct user_stack named;
	const struct abi_stack *raw;

	if (s->kernel_stack) {
		agent->kernel_frames = true;
		raw = agent_raw_stack(agent, s->window, s->kernel_stack);
		if (raw)
			add_kernel_frames(agent, &frames, raw,
				s->flags & ABI_SAMPLE_OFF_CPU ? frames_of_tracing(agent, raw) : 0);
		else
			frames.flags |= PROFILE_STACK_MISSING;
	}
	if (!user && s->user_stack) {
		if (raw_user_stack(agent, p, s, &named))
			user = &named;
		else
			frames.flags |= PROFILE_STACK_MISSING;
	}
	if (user)
		add_user_frames(agent, p, &frames, user);
	if (frames.flags & PROFILE_STACK_MISSING)
		metrics_add(&agent->metrics, METRIC_STACK_MISSING, 1);
	return profile_stack(profile,
		&(struct profile_stack){
			.frames = frames.items,
			.frame_count = frames.count,
			.kernel_count = frames.kernel_count,
			.flags = frames.flags,
		},
		ret_stack);
}

/* What the pcs of a sample's stacks mean depends on this. */
static uint64_t stack_context(
	const struct agent *agent, const struct process *p, const struct abi_sample *s)
{
	uint64_t turn = s->kernel_stack ? kernel_symbols_turn(agent->kernel_symbols) : 0;

	return mappings_generation(p->mappings) ^ turn * UINT64_C(0x9e3779b97f4a7c15);
}

static int stack_of(struct agent *agent, struct profile *profile, struct process *p,
	const struct abi_sample *s, uint32_t *ret_stack)
{
	uint64_t context = stack_context(agent, p, s);
	struct profile_stack stack;
	int err;

	if (profile_cached_stack(profile, s->user_stack, s->kernel_stack, context, ret_stack)) {
		stack = profile_stack_at(profile, *ret_stack);
		agent_stack_hit(agent, p, &stack);
		/* Resolved for another process, such as the parent that this one was forked from.
		 */
		if (stack.flags & PROFILE_STACK_JIT)
			agent_jit_hit(agent, p);
		return 0;
	}
	err = resolve_stack(agent, profile, p, s, NULL, ret_stack);
	if (err)
		return err;
	/* Frames that were lost may come with a later sample: do not remember their absence. */
	stack = profile_stack_at(profile, *ret_stack);
	if (stack.flags & PROFILE_STACK_MISSING)
		return 0;
	return profile_cache_stack(profile, s->user_stack, s->kernel_stack, context, *ret_stack);
}

static uint64_t goid_of(struct agent *agent, const struct process *p, const struct abi_sample *s)
{
	if (!s->goid || s->go_generation == p->number)
		return s->goid;
	metrics_add(&agent->metrics, METRIC_GO_GOIDS_DROPPED, 1);
	return 0;
}

static bool wanted(struct agent *agent, uint32_t pid)
{
	uint64_t one;

	return !agent->follow || map_get(&agent->followed, pid, &one);
}

/* S with its stack in PROFILE, without count and weight. */
static int make_sample(struct agent *agent, struct profile *profile, struct process *p,
	const struct abi_sample *s, const struct user_stack *user,
	struct profile_sample *ret_sample)
{
	struct profile_sample sample = {
		.process = p->number,
		.pid = s->tgid,
		.tid = s->tid,
		.cpu = s->cpu,
		.flags = s->flags & ~(uint32_t)(AGENT_SAMPLE_WAITED | ABI_SAMPLE_EXECUTING),
	};
	int err = user ? resolve_stack(agent, profile, p, s, user, &sample.stack)
		       : stack_of(agent, profile, p, s, &sample.stack);

	if (err)
		return err;
	sample.goid = goid_of(agent, p, s);
	memcpy(sample.comm, s->comm, sizeof(s->comm));
	*ret_sample = sample;
	return 0;
}

/* What a sample adds to a profile. */
struct amount {
	uint64_t count, weight;
};

static int add_sample(struct agent *agent, struct profile *profile, struct process *p,
	const struct abi_sample *s, const struct user_stack *user, const struct amount *amount)
{
	struct profile_sample sample;
	int err = make_sample(agent, profile, p, s, user, &sample);

	if (err)
		return err;
	sample.count = amount->count;
	sample.weight = amount->weight;
	return profile_add(profile, &sample);
}

/* What a full profile on demand leaves out is still in the window's: it is not lost. */
static void add_to_taps(struct agent *agent, struct process *p, const struct abi_sample *s,
	const struct user_stack *user, const struct amount *amount)
{
	for (size_t i = 0; i < AGENT_MAX_TAPS; i++) {
		const struct agent_tap *tap = &agent->taps[i];

		if (!tap->profile || (tap->pid && tap->pid != s->tgid))
			continue;
		if (add_sample(agent, tap->profile, p, s, user, amount))
			metrics_add(&agent->metrics, METRIC_ON_DEMAND_LEFT_OUT, 1);
	}
}

/* The thread does not run again yet. */
static void add_waiting(struct agent *agent, struct process *p, const struct abi_sample *s,
	const struct user_stack *user)
{
	struct profile_sample sample;

	if (!agent_wait_of(agent, s))
		return;
	if (!make_sample(agent, profile_of(agent, s->window), p, s, user, &sample)) {
		agent_wait_resolved(agent, s, &sample);
		return;
	}
	metrics_add(&agent->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	waits_forget(&agent->waits, s->tid);
}

static void add_amount(struct agent *agent, struct process *p, const struct abi_sample *s,
	const struct user_stack *user)
{
	struct amount amount = { 1, s->period };

	if (s->flags & ABI_SAMPLE_OFF_CPU)
		waits_weigh(&agent->waits, s->period, &amount.count, &amount.weight);
	if (add_sample(agent, profile_of(agent, s->window), p, s, user, &amount)) {
		metrics_add(&agent->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
		return;
	}
	add_to_taps(agent, p, s, user, &amount);
	if (s->flags & ABI_SAMPLE_OFF_CPU) {
		metrics_add(&agent->metrics, METRIC_SAMPLES_OFF_CPU, 1);
		return;
	}
	agent->samples++;
	metrics_add(&agent->metrics,
		s->flags & ABI_SAMPLE_KERNEL ? METRIC_SAMPLES_KERNEL : METRIC_SAMPLES_USER, 1);
}

void agent_add_sample(struct agent *agent, struct process *p, const struct abi_sample *s,
	const struct mappings *mappings, const struct unwind_stack *stack)
{
	struct user_stack finished, *user = NULL;

	if (stack) {
		finished = (struct user_stack){
			.mappings = mappings,
			.frames = stack->frames,
			.count = stack->count,
			.end = stack->end,
			.cut = stack->end == ABI_UNWIND_DEPTH,
		};
		user = &finished;
	}
	if (s->flags & ABI_SAMPLE_OFF_CPU && !(s->flags & AGENT_SAMPLE_WAITED))
		add_waiting(agent, p, s, user);
	else
		add_amount(agent, p, s, user);
}

/* Whether a frame of S lies in none of the mappings of P that are sure. */
static bool has_unsure_frame(
	const struct agent *agent, const struct process *p, const struct abi_sample *s)
{
	const struct abi_stack *raw = agent_raw_stack(agent, s->window, s->user_stack);

	for (uint32_t i = 0; raw && i < raw->frame_count; i++)
		if (!mappings_find(p->mappings, raw->frames[i] - (i > 0)))
			return true;
	return false;
}

static void log_unnamed(struct agent *agent, const struct process *p, enum agent_unnamed why)
{
	static const char *const reasons[] = {
		[AGENT_UNNAMED_GONE] = "process_gone",
		[AGENT_UNNAMED_LOST_RECORDS] = "lost_records",
		[AGENT_UNNAMED_LOST_MAPPING] = "lost_mapping",
	};

	if (log_rate_allows_every(&agent->unnamed_log[why], LOG_INTERVAL_NS))
		log_warn("samples are left without names because it is not certain which code ran",
			"pid=%u reason=%s", p->pid, reasons[why]);
}

/* The process table counts those of processes that are gone, and of programs that are not sure. */
static void tell_of_unnamed(
	struct agent *agent, const struct process *p, const struct abi_sample *s)
{
	if (s->flags & ABI_SAMPLE_EXECUTING)
		metrics_add(&agent->metrics, METRIC_UNNAMED_EXECUTING, 1);
	if (p->unreadable) {
		log_unnamed(agent, p, AGENT_UNNAMED_GONE);
	} else if (p->unproven) {
		log_unnamed(agent, p, AGENT_UNNAMED_LOST_RECORDS);
	} else if (!process_is_settled(p) && has_unsure_frame(agent, p, s)) {
		metrics_add(&agent->metrics, METRIC_UNNAMED_LOST_MAPPING, 1);
		log_unnamed(agent, p, AGENT_UNNAMED_LOST_MAPPING);
	}
}

/* As processes_get(); the log says so if that took another look at /proc after a loss. */
static struct process *get_process(
	struct agent *agent, uint64_t time_ns, const struct abi_sample *s)
{
	const uint64_t resyncs = metrics_get(&agent->metrics, METRIC_PROCESS_RESYNCS);
	const struct processes_sample sample = {
		.time_ns = time_ns,
		.pid = s->tgid,
		.exec_id = s->exec_id,
		.executing = s->flags & ABI_SAMPLE_EXECUTING,
		.kernel_thread = s->flags & ABI_SAMPLE_KTHREAD,
	};
	struct process *p = processes_get(agent->processes, &sample);

	if (metrics_get(&agent->metrics, METRIC_PROCESS_RESYNCS) > resyncs &&
		log_rate_allows_every(&agent->resync_log, LOG_INTERVAL_NS))
		log_warn("a process was read again from /proc because its records may be lost",
			"pid=%u", s->tgid);
	return p;
}

/* The process that a sample is of; NULL: not wanted, or no memory. */
static struct process *sampled_process(
	struct agent *agent, uint64_t time_ns, const struct abi_sample *s)
{
	struct process *p;

	if (!wanted(agent, s->tgid)) {
		agent_unwind_leave_out(agent, s->tgid, true);
		return NULL;
	}
	if (!agent->first_sample_ns)
		agent->first_sample_ns = time_ns;
	agent->newest_sample_ns = time_ns;
	p = get_process(agent, time_ns, s);
	if (!p)
		metrics_add(&agent->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	if (p && agent->selection && !selection_wants(agent->selection, p)) {
		metrics_add(&agent->metrics, METRIC_SAMPLES_NOT_SELECTED, 1);
		agent_unwind_leave_out(agent, s->tgid, true);
		return NULL;
	}
	agent_unwind_leave_out(agent, s->tgid, false);
	if (p && s->flags & ABI_SAMPLE_OFF_CPU)
		agent_wait_begins(agent, s);
	if (!p)
		return NULL;
	agent_bind_goids(agent, p);
	tell_of_unnamed(agent, p, s);
	return p;
}

/*
 * Whether the kernel walked with the tables of the program that P was before. Then only the first
 * frame is right for sure.
 */
static bool is_stale(const struct process *p, const struct abi_sample *s)
{
	return s->unwind_generation && s->unwind_generation != p->number;
}

static void add_stale(struct agent *agent, struct process *p, const struct abi_sample *s)
{
	const struct abi_stack *raw = agent_raw_stack(agent, s->window, s->user_stack);
	struct unwind_stack first = { .end = ABI_UNWIND_UNKNOWN_MAPPING };

	metrics_add(&agent->metrics, METRIC_UNWIND_STALE, 1);
	if (raw && raw->frame_count) {
		first.frames[0] = raw->frames[0];
		first.count = 1;
	}
	agent_add_sample(agent, p, s, p->mappings, &first);
}

static void on_sample(void *context, uint64_t time_ns, const struct abi_sample *s)
{
	struct agent *agent = context;
	struct process *p = sampled_process(agent, time_ns, s);

	if (!p)
		return;
	if (is_stale(p, s))
		add_stale(agent, p, s);
	else
		agent_add_sample(agent, p, s, NULL, NULL);
	agent_unwind_sampled(agent, p, s);
}

static void on_sightings(void *context, uint64_t time_ns, const struct abi_sightings *sightings)
{
	struct sighting of[ABI_SIGHTINGS];
	struct agent *agent = context;

	if (!wanted(agent, sightings->tgid))
		return;
	for (uint32_t i = 0; i < sightings->count; i++) {
		of[i].pc = sightings->of[i].pc;
		of[i].seen = unwind_sighting(&sightings->of[i]);
	}
	processes_seen(agent->processes, time_ns, sightings->tgid, of, sightings->count);
}

/* The mapping of a file that BPF does not know, with all that tells of the file. */
static void see_mapping(
	struct agent *agent, uint64_t time_ns, uint32_t tgid, const struct abi_unwind_rest *rest)
{
	const struct sighting sighting = {
		.pc = rest->pc - (rest->is_return ? 1 : 0),
		.seen = unwind_seen(&rest->mapping),
	};

	if (rest->mapping.end && wanted(agent, tgid))
		processes_seen(agent->processes, time_ns, tgid, &sighting, 1);
}

static void on_unfinished(void *context, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	struct agent *agent = context;
	const struct abi_sample *s = &unfinished->sample;
	struct process *p;

	see_mapping(agent, time_ns, s->tgid, &unfinished->rest);
	p = sampled_process(agent, time_ns, s);
	if (!p)
		return;
	if (is_stale(p, s))
		add_stale(agent, p, s);
	else
		agent_unwind_finish(agent, p, unfinished);
	agent_unwind_sampled(agent, p, s);
}

static void on_stack(void *context, const struct abi_stack *stack)
{
	struct agent *agent = context;

	/* A stack that cannot be kept shows as `frames lost` in its samples, and is counted there.
	 */
	(void)profile_put_raw(profile_of(agent, stack->window), stack);
}

static void on_wake(void *context, uint64_t time_ns, const struct abi_wake *wake)
{
	(void)time_ns;
	agent_wait_ends(context, wake);
}

static void on_mmap(void *context, const struct collect_mmap *m)
{
	struct agent *agent = context;

	processes_mmap(agent->processes, &(struct processes_mmap){
						 .time_ns = m->time_ns,
						 .pid = m->tgid,
						 .start = m->start,
						 .length = m->length,
						 .file_off = m->file_off,
						 .build_id = m->build_id,
						 .device = m->device,
						 .inode = m->inode,
						 .generation = m->generation,
						 .path = m->path,
					 });
}

static void on_comm(
	void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm, bool exec)
{
	struct agent *agent = context;

	processes_comm(agent->processes, time_ns, tgid, tid, comm, exec);
	agent_unwind_leave_out(agent, tgid, !wanted(agent, tgid));
}

static void follow(struct agent *agent, uint32_t pid)
{
	if (map_set(&agent->followed, pid, 1))
		metrics_add(&agent->metrics, METRIC_PROCESSES_REFUSED, 1);
}

static void on_fork(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid)
{
	struct agent *agent = context;

	if (agent->follow && tgid != parent_tgid) {
		if (wanted(agent, parent_tgid))
			follow(agent, tgid);
		else
			(void)map_remove(&agent->followed, tgid);
	}
	if (tgid != parent_tgid)
		agent_unwind_leave_out(agent, tgid, !wanted(agent, tgid));
	processes_fork(agent->processes, time_ns, tgid, tid, parent_tgid, parent_tid);
}

static void on_exit(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	struct agent *agent = context;

	waits_forget(&agent->waits, tid);
	processes_exit(agent->processes, time_ns, tgid, tid);
}

static void on_ksymbol(
	void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf, bool gone)
{
	struct agent *agent = context;
	const struct kallsyms_event event = {
		.start = kaddr,
		.size = size,
		.bpf = bpf,
		.name = name,
		.time_ns = clock_monotonic_ns(),
	};

	if (gone)
		(void)kernel_symbols_gone(agent->kernel_symbols, &event);
	else
		(void)kernel_symbols_add(agent->kernel_symbols, &event);
}

static void on_lost(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct agent *agent = context;

	if (log_rate_allows_every(&agent->gap_log, LOG_INTERVAL_NS))
		log_warn("records of processes and mappings were lost, or may have been: reading "
			 "/proc instead",
			"gap_ms=%llu", (unsigned long long)(until_ns - time_ns) / 1000000);
	processes_lost(agent->processes, time_ns, until_ns);
}

void agent_handlers(struct agent *agent, struct collect_handlers *ret_handlers)
{
	*ret_handlers = (struct collect_handlers){
		.sample = on_sample,
		.unfinished = on_unfinished,
		.wake = on_wake,
		.sightings = on_sightings,
		.stack = on_stack,
		.mmap = on_mmap,
		.comm = on_comm,
		.fork = on_fork,
		.exit = on_exit,
		.ksymbol = on_ksymbol,
		.lost = on_lost,
		.context = agent,
	};
}
