/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes collect's records to the rooms that consume them, and adds attributed samples to the
 * profiles of their window and of the taps.
 */
#include <assert.h>
#include <string.h>

#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/sampler_internal.h"
#include "base/clock.h"

/* S must be the head of a struct abi_tick. */
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

/* The profile of WINDOW; the current one if WINDOW is already sealed. */
static struct profile *profile_of(const struct sampler *sampler, uint32_t window)
{
	return windows_profile(sampler->windows, window);
}

const struct abi_stack *sampler_raw_stack(
	const struct sampler *sampler, uint32_t window, uint64_t id)
{
	return profile_get_raw(profile_of(sampler, window), window, id);
}

/* ---- into the profiles ---------------------------------------------------------------------- */

static uint64_t fiber_of(
	struct sampler *sampler, const struct process *p, const struct abi_sample *s)
{
	if (!s->fiber_id || s->fiber_generation == p->number)
		return s->fiber_id;
	metrics_add(&sampler->metrics, METRIC_FIBERS_DROPPED, 1);
	return 0;
}

/* Makes a profile sample of A and adds its stack to PROFILE; count and weight stay 0. */
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

static int events_add_sample(
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

/* A sample that a full tap leaves out is still in the window's profile: it is not lost. */
static void add_to_taps(struct sampler *sampler, const struct attributed_sample *a)
{
	struct profile *tap;
	size_t iterator = 0;

	while ((tap = windows_next_tap(sampler->windows, a->record->tgid, &iterator))) {
		if (events_add_sample(sampler, tap, a))
			metrics_add(&sampler->metrics, METRIC_ON_DEMAND_LEFT_OUT, 1);
	}
}

static void add_switch_out(struct sampler *sampler, const struct attributed_sample *a)
{
	const struct abi_switch_out *switch_out = switch_out_of(a->record);
	struct profile *profile = profile_of(sampler, a->record->window);
	struct profile_sample sample;

	if (!waits_wants(sampler->waits, switch_out))
		return;
	if (make_sample(sampler, profile, a, &sample))
		sampler_lose_sample(sampler, a->record);
	else
		waits_resolved(sampler->waits, switch_out, &sample);
}

static void add_tick(struct sampler *sampler, const struct attributed_sample *a)
{
	const struct abi_sample *s = a->record;

	if (events_add_sample(sampler, profile_of(sampler, s->window), a)) {
		sampler_lose_sample(sampler, s);
		return;
	}
	add_to_taps(sampler, a);
	sampler->samples++;
	metrics_add(&sampler->metrics,
		s->flags & ABI_SAMPLE_KERNEL ? METRIC_SAMPLES_KERNEL : METRIC_SAMPLES_USER, 1);
}

void sampler_take_sample(struct sampler *sampler, struct process *p, const struct abi_sample *s)
{
	if (s->kind == ABI_SWITCH_OUT)
		waits_left(sampler->waits, switch_out_of(s));
	if (p->exec_known)
		runtimes_bind(&sampler->runtimes, p->number, p->exec_id);
}

void sampler_lose_sample(struct sampler *sampler, const struct abi_sample *s)
{
	metrics_add(&sampler->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	if (s->kind == ABI_SWITCH_OUT)
		waits_lost(sampler->waits, switch_out_of(s));
}

void sampler_add_sample(struct sampler *sampler, const struct attributed_sample *a)
{
	if (a->record->kind == ABI_SWITCH_OUT)
		add_switch_out(sampler, a);
	else
		add_tick(sampler, a);
}

/* ---- from the rings ------------------------------------------------------------------------- */

static void on_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	struct sampler *sampler = context;

	intake_sample(&sampler->intake, time_ns, &tick->sample);
}

static void on_switch_out(void *context, uint64_t time_ns, const struct abi_switch_out *switch_out)
{
	struct sampler *sampler = context;

	intake_sample(&sampler->intake, time_ns, &switch_out->sample);
}

static void on_unfinished(void *context, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	struct sampler *sampler = context;

	intake_unfinished(&sampler->intake, time_ns, unfinished);
}

static void on_sightings(void *context, uint64_t time_ns, const struct abi_sightings *sightings)
{
	struct sampler *sampler = context;

	intake_sightings(&sampler->intake, time_ns, sightings);
}

static void on_stack(void *context, const struct abi_stack *stack)
{
	struct sampler *sampler = context;

	/*
	 * A stack that cannot be kept shows up as `frames lost` in its samples and is counted
	 * there.
	 */
	(void)profile_put_raw(profile_of(sampler, stack->window), stack);
}

static void on_wake(void *context, uint64_t time_ns, const struct abi_wake *wake)
{
	const struct sampler *sampler = context;

	(void)time_ns;
	waits_woke(sampler->waits, wake);
}

static void on_mmap(void *context, const struct collect_mmap *m)
{
	struct sampler *sampler = context;

	intake_mmap(&sampler->intake, &(struct processes_mmap){
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

	intake_comm(&sampler->intake, time_ns, tgid, tid, comm, exec);
}

static void on_fork(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid)
{
	struct sampler *sampler = context;

	intake_fork(&sampler->intake, time_ns, tgid, tid, parent_tgid, parent_tid);
}

static void on_exit(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	struct sampler *sampler = context;

	waits_thread_ended(sampler->waits, tid);
	intake_exit(&sampler->intake, time_ns, tgid, tid);
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

	intake_lost(&sampler->intake, time_ns, until_ns);
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
