/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From record to profile. Records come in time order, so the process table is at each sample as it
 * was when the sample was taken, and its stack is resolved at once.
 */
#include <assert.h>
#include <string.h>

#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/collect/tables.h"
#include "base/clock.h"
#include "base/log.h"

/* How often the log says again what the counters go on counting. */
static const uint64_t LOG_INTERVAL_NS = UINT64_C(60) * 1000 * 1000 * 1000;

/* S is the head of one, as its kind says. */
static const struct abi_tick *tick_of(const struct abi_sample *s)
{
	assert(s->kind == ABI_TICK);
	return (const struct abi_tick *)s;
}

static const struct abi_switch_out *switch_out_of(const struct abi_sample *s)
{
	assert(s->kind == ABI_SWITCH_OUT);
	return (const struct abi_switch_out *)s;
}

/* The window that a record belongs to. One of a window long sealed goes into the current one. */
static struct profile *profile_of(const struct sampler *sampler, uint32_t window)
{
	return windows_profile(sampler->windows, window);
}

const struct abi_stack *sampler_raw_stack(
	const struct sampler *sampler, uint32_t window, uint64_t id)
{
	return profile_get_raw(profile_of(sampler, window), window, id);
}

static uint64_t fiber_of(
	struct sampler *sampler, const struct process *p, const struct abi_sample *s)
{
	if (!s->fiber_id || s->fiber_generation == p->number)
		return s->fiber_id;
	metrics_add(&sampler->metrics, METRIC_FIBERS_DROPPED, 1);
	return 0;
}

static bool wanted(struct sampler *sampler, uint32_t pid)
{
	uint64_t one;

	return !sampler->follow || map_get(&sampler->followed, pid, &one);
}

/* A with its stack in PROFILE, without count and weight. */
static int make_sample(struct sampler *sampler, struct profile *profile,
	const struct attributed_sample *a, struct profile_sample *ret_sample)
{
	const struct abi_sample *s = a->record;
	struct profile_sample sample = {
		.process = a->process->number,
		.flags = s->flags & (ABI_SAMPLE_KERNEL | ABI_SAMPLE_KTHREAD),
		.kind = s->kind == ABI_SWITCH_OUT ? PROFILE_WAITS : PROFILE_TICKS,
	};
	const struct stack_request request = {
		.process = a->process,
		.window = s->window,
		.user_stack = s->user_stack,
		.kernel_stack = s->kernel_stack,
		.switched = s->kind == ABI_SWITCH_OUT,
		.walked = a->walked,
		.mappings = a->mappings,
	};
	int err = stack_resolver_get(&sampler->resolver, profile, &request, &sample.stack);

	if (err)
		return err;
	sample_labels_read(s, &sample);
	sample.fiber_id = fiber_of(sampler, a->process, s);
	*ret_sample = sample;
	return 0;
}

static int add_sample(
	struct sampler *sampler, struct profile *profile, const struct attributed_sample *a)
{
	struct profile_sample sample;
	int err = make_sample(sampler, profile, a, &sample);

	if (err)
		return err;
	sample.count = 1;
	sample.weight = tick_of(a->record)->period;
	return profile_add(profile, &sample);
}

/* What a full profile on demand leaves out is still in the window's: it is not lost. */
static void add_to_taps(struct sampler *sampler, const struct attributed_sample *a)
{
	struct profile *tap;
	size_t iterator = 0;

	while ((tap = windows_next_tap(sampler->windows, a->record->tgid, &iterator))) {
		if (add_sample(sampler, tap, a))
			metrics_add(&sampler->metrics, METRIC_ON_DEMAND_LEFT_OUT, 1);
	}
}

static void add_switch_out(struct sampler *sampler, const struct attributed_sample *a)
{
	const struct abi_switch_out *switch_out = switch_out_of(a->record);
	struct profile *profile = profile_of(sampler, a->record->window);
	struct profile_sample sample;

	if (!sampler_wait_is_wanted(sampler, switch_out))
		return;
	if (make_sample(sampler, profile, a, &sample))
		sampler_lose_sample(sampler, a->record);
	else
		sampler_wait_resolved(sampler, switch_out, &sample);
}

static void add_tick(struct sampler *sampler, const struct attributed_sample *a)
{
	const struct abi_sample *s = a->record;

	if (add_sample(sampler, profile_of(sampler, s->window), a)) {
		sampler_lose_sample(sampler, s);
		return;
	}
	add_to_taps(sampler, a);
	sampler->samples++;
	metrics_add(&sampler->metrics,
		s->flags & ABI_SAMPLE_KERNEL ? METRIC_SAMPLES_KERNEL : METRIC_SAMPLES_USER, 1);
}

void sampler_lose_sample(struct sampler *sampler, const struct abi_sample *s)
{
	metrics_add(&sampler->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	if (s->kind == ABI_SWITCH_OUT)
		sampler_wait_lost(sampler, switch_out_of(s));
}

void sampler_add_sample(struct sampler *sampler, const struct attributed_sample *a)
{
	if (a->record->kind == ABI_SWITCH_OUT)
		add_switch_out(sampler, a);
	else
		add_tick(sampler, a);
}

/* Whether a frame of S lies in none of the mappings of P that are sure. */
static bool has_unsure_frame(
	const struct sampler *sampler, const struct process *p, const struct abi_sample *s)
{
	const struct abi_stack *raw = sampler_raw_stack(sampler, s->window, s->user_stack);

	for (uint32_t i = 0; raw && i < raw->frame_count; i++)
		if (!mappings_find(p->mappings, raw->frames[i] - (i > 0)))
			return true;
	return false;
}

static void log_unnamed(struct sampler *sampler, const struct process *p, enum sampler_unnamed why)
{
	static const char *const reasons[] = {
		[SAMPLER_UNNAMED_GONE] = "process_gone",
		[SAMPLER_UNNAMED_LOST_RECORDS] = "lost_records",
		[SAMPLER_UNNAMED_LOST_MAPPING] = "lost_mapping",
	};

	if (log_rate_allows_every(&sampler->unnamed_log[why], LOG_INTERVAL_NS))
		log_warn("samples are left without names because it is not certain which code ran",
			"pid=%u reason=%s", p->pid, reasons[why]);
}

/* The process table counts those of processes that are gone, and of programs that are not sure. */
static void tell_of_unnamed(
	struct sampler *sampler, const struct process *p, const struct abi_sample *s)
{
	if (s->flags & ABI_SAMPLE_EXECUTING)
		metrics_add(&sampler->metrics, METRIC_UNNAMED_EXECUTING, 1);
	if (p->unreadable) {
		log_unnamed(sampler, p, SAMPLER_UNNAMED_GONE);
	} else if (p->unproven) {
		log_unnamed(sampler, p, SAMPLER_UNNAMED_LOST_RECORDS);
	} else if (!process_is_settled(p) && has_unsure_frame(sampler, p, s)) {
		metrics_add(&sampler->metrics, METRIC_UNNAMED_LOST_MAPPING, 1);
		log_unnamed(sampler, p, SAMPLER_UNNAMED_LOST_MAPPING);
	}
}

/* As processes_get(); the log says so if that took another look at /proc after a loss. */
static struct process *get_process(
	struct sampler *sampler, uint64_t time_ns, const struct abi_sample *s)
{
	const uint64_t resyncs = metrics_get(&sampler->metrics, METRIC_PROCESS_RESYNCS);
	const struct processes_sample sample = {
		.time_ns = time_ns,
		.pid = s->tgid,
		.exec_id = s->exec_id,
		.executing = s->flags & ABI_SAMPLE_EXECUTING,
		.kernel_thread = s->flags & ABI_SAMPLE_KTHREAD,
	};
	struct process *p = processes_get(sampler->processes, &sample);

	if (metrics_get(&sampler->metrics, METRIC_PROCESS_RESYNCS) > resyncs &&
		log_rate_allows_every(&sampler->resync_log, LOG_INTERVAL_NS))
		log_warn("a process was read again from /proc because its records may be lost",
			"pid=%u", s->tgid);
	return p;
}

/* Whether the samples of TGID are not wanted: its walks are then not left to us. */
static void leave_out(struct sampler *sampler, uint32_t tgid, bool out)
{
	struct tables *tables = sampler->collect ? collect_tables(sampler->collect) : NULL;

	if (tables)
		tables_leave_out(tables, tgid, out);
}

/* The process that a sample is of; NULL: not wanted, or no memory. */
static struct process *sampled_process(
	struct sampler *sampler, uint64_t time_ns, const struct abi_sample *s)
{
	struct process *p;

	if (!wanted(sampler, s->tgid)) {
		leave_out(sampler, s->tgid, true);
		return NULL;
	}
	if (!sampler->first_sample_ns)
		sampler->first_sample_ns = time_ns;
	sampler->newest_sample_ns = time_ns;
	module_indexes_set_time(sampler->module_indexes, time_ns);
	p = get_process(sampler, time_ns, s);
	if (!p)
		metrics_add(&sampler->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	if (p && sampler->selection && !selection_wants(sampler->selection, p)) {
		metrics_add(&sampler->metrics, METRIC_SAMPLES_NOT_SELECTED, 1);
		leave_out(sampler, s->tgid, true);
		return NULL;
	}
	leave_out(sampler, s->tgid, false);
	if (p && s->kind == ABI_SWITCH_OUT)
		sampler_wait_begins(sampler, switch_out_of(s));
	if (!p)
		return NULL;
	if (p->exec_known)
		runtimes_bind(&sampler->runtimes, p->number, p->exec_id);
	tell_of_unnamed(sampler, p, s);
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

static void add_stale(struct sampler *sampler, struct process *p, const struct abi_sample *s)
{
	const struct abi_stack *raw = sampler_raw_stack(sampler, s->window, s->user_stack);
	struct unwind_stack first = { .end = ABI_UNWIND_UNKNOWN_MAPPING };

	metrics_add(&sampler->metrics, METRIC_UNWIND_STALE, 1);
	if (raw && raw->frame_count) {
		first.frames[0] = raw->frames[0];
		first.count = 1;
	}
	sampler_add_sample(sampler, &(struct attributed_sample){
					    .process = p,
					    .record = s,
					    .walked = &first,
					    .mappings = p->mappings,
				    });
}

/* Gives the kernel what it lacked for the next walk of P. */
static void update_tables(
	struct sampler *sampler, const struct process *p, const struct abi_sample *s)
{
	if (!sampler->unwind)
		return;
	if (s->unwind_missed)
		unwind_want(sampler->unwind, s->unwind_missed - 1);
	if (process_is_settled(p))
		(void)unwind_sync(sampler->unwind, p, s->exec_id);
}

static void take_sample(struct sampler *sampler, uint64_t time_ns, const struct abi_sample *s)
{
	struct process *p = sampled_process(sampler, time_ns, s);

	if (!p)
		return;
	if (is_stale(p, s))
		add_stale(sampler, p, s);
	else
		sampler_add_sample(
			sampler, &(struct attributed_sample){ .process = p, .record = s });
	update_tables(sampler, p, s);
}

static void on_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	take_sample(context, time_ns, &tick->sample);
}

static void on_switch_out(void *context, uint64_t time_ns, const struct abi_switch_out *switch_out)
{
	take_sample(context, time_ns, &switch_out->sample);
}

static void on_sightings(void *context, uint64_t time_ns, const struct abi_sightings *sightings)
{
	struct sighting of[ABI_SIGHTINGS];
	struct sampler *sampler = context;

	if (!wanted(sampler, sightings->tgid))
		return;
	for (uint32_t i = 0; i < sightings->count; i++) {
		of[i].pc = sightings->of[i].pc;
		of[i].seen = unwind_sighting(&sightings->of[i]);
	}
	processes_seen(sampler->processes, time_ns, sightings->tgid, of, sightings->count);
}

/* The mapping of a file that BPF does not know, with all that tells of the file. */
static void see_mapping(struct sampler *sampler, uint64_t time_ns, uint32_t tgid,
	const struct abi_unwind_rest *rest)
{
	const struct sighting sighting = {
		.pc = rest->pc - (rest->is_return ? 1 : 0),
		.seen = unwind_seen(&rest->mapping),
	};

	if (rest->mapping.end && wanted(sampler, tgid))
		processes_seen(sampler->processes, time_ns, tgid, &sighting, 1);
}

static void on_unfinished(void *context, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	struct sampler *sampler = context;
	const struct abi_sample *s = &unfinished->sample;
	struct process *p;

	see_mapping(sampler, time_ns, s->tgid, &unfinished->rest);
	p = sampled_process(sampler, time_ns, s);
	if (!p)
		return;
	if (is_stale(p, s))
		add_stale(sampler, p, s);
	else
		pending_walks_finish(&sampler->walks, p, unfinished,
			sampler_raw_stack(sampler, s->window, s->user_stack));
	update_tables(sampler, p, s);
}

static void on_stack(void *context, const struct abi_stack *stack)
{
	struct sampler *sampler = context;

	/* A stack that cannot be kept shows as `frames lost` in its samples, and is counted there.
	 */
	(void)profile_put_raw(profile_of(sampler, stack->window), stack);
}

static void on_wake(void *context, uint64_t time_ns, const struct abi_wake *wake)
{
	(void)time_ns;
	sampler_wait_ends(context, wake);
}

static void on_mmap(void *context, const struct collect_mmap *m)
{
	struct sampler *sampler = context;

	processes_mmap(sampler->processes, &(struct processes_mmap){
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
	struct sampler *sampler = context;

	processes_comm(sampler->processes, time_ns, tgid, tid, comm, exec);
	leave_out(sampler, tgid, !wanted(sampler, tgid));
}

static void follow(struct sampler *sampler, uint32_t pid)
{
	if (map_set(&sampler->followed, pid, 1))
		metrics_add(&sampler->metrics, METRIC_PROCESSES_REFUSED, 1);
}

static void on_fork(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid)
{
	struct sampler *sampler = context;

	if (sampler->follow && tgid != parent_tgid) {
		if (wanted(sampler, parent_tgid))
			follow(sampler, tgid);
		else
			(void)map_remove(&sampler->followed, tgid);
	}
	if (tgid != parent_tgid)
		leave_out(sampler, tgid, !wanted(sampler, tgid));
	processes_fork(sampler->processes, time_ns, tgid, tid, parent_tgid, parent_tid);
}

static void on_exit(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	struct sampler *sampler = context;

	waits_forget_thread(&sampler->waits, tid);
	processes_exit(sampler->processes, time_ns, tgid, tid);
}

static void on_ksymbol(
	void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf, bool gone)
{
	struct sampler *sampler = context;
	const struct kallsyms_event event = {
		.start = kaddr,
		.size = size,
		.bpf = bpf,
		.name = name,
		.time_ns = clock_monotonic_ns(),
	};

	if (gone)
		(void)kernel_symbols_gone(sampler->kernel_symbols, &event);
	else
		(void)kernel_symbols_add(sampler->kernel_symbols, &event);
}

static void on_lost(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct sampler *sampler = context;

	if (log_rate_allows_every(&sampler->gap_log, LOG_INTERVAL_NS))
		log_warn("records of processes and mappings were lost, or may have been: reading "
			 "/proc instead",
			"gap_ms=%llu", (unsigned long long)(until_ns - time_ns) / 1000000);
	processes_lost(sampler->processes, time_ns, until_ns);
}

void sampler_handlers(struct sampler *sampler, struct collect_handlers *ret_handlers)
{
	*ret_handlers = (struct collect_handlers){
		.tick = on_tick,
		.switch_out = on_switch_out,
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
		.context = sampler,
	};
}
