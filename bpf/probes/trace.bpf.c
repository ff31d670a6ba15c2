// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of functions as they happen: runs at the entry and at each return instruction of the probed
 * ones, and writes an event for each. Which call an entry or a return belongs to, and what a Go
 * prologue starts again, is found as for latency (bpf/probes/latency_calls.bpf.h).
 *
 * What is to be shown is decided here, at the entry of a root: a tree is written with all of its
 * calls or not at all. These programs can be preempted, hence the slots of scratch memory.
 */
#include "bpf/probes/trace_scratch.bpf.h"

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/fetch.bpf.h"
#include "bpf/probes/latency_calls.bpf.h"
#include "bpf/probes/trace_rate.bpf.h"
#include "bpf/probes/trace_tasks.bpf.h"

char trace_license[] SEC("license") = "Dual BSD/GPL";

/* By the function's number. User space sets the number of elements. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_LATENCY_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct abi_trace_fetches);
} trace_fetches SEC(".maps");

/* A thread at a probe, its task, and where to build what is written. */
struct trace_hit {
	struct hit hit;
	struct abi_trace_task_key key;
	struct abi_trace_task *task;
	__u64 depth;
};

static __always_inline struct trace_scratch *trace_scratch_of_thread(void)
{
	__u32 slot = scratch_slot();

	return slot < SCRATCH_SLOTS ? bpf_map_lookup_elem(&scratches, &slot) : NULL;
}

/* ---- output --------------------------------------------------------------------------------- */

/* Writes the output that S holds, for the task's tree. */
static __always_inline void trace_write(
	const struct trace_hit *t, struct trace_scratch *s, __u64 time_ns)
{
	struct abi_trace_event *event = &s->out.event;
	__u32 tgid, tid;
	__u64 bytes;
	long error;

	event->kind = ABI_TRACE;
	event->time_ns = time_ns;
	event->tree = t->task->tree;
	event->task = t->key;
	identify_pids(t->hit.task, &tgid, &tid);
	event->tgid = tgid;
	event->tid = tid;
	event->flags = t->task->flags;
	event->sequence = t->task->sequence++;
	event->reserved = 0;
	bytes = event->payload_bytes & (2 * ABI_TRACE_PAYLOAD_BYTES - 1);
	if (bytes > ABI_TRACE_PAYLOAD_BYTES)
		bytes = ABI_TRACE_PAYLOAD_BYTES;
	error = bpf_perf_event_output(
		t->hit.regs, &output, BPF_F_CURRENT_CPU, &s->out, sizeof(*event) + bytes);
	trace_count_event(t->hit.began_ns);
	if (error)
		latency_count(&t->hit,
			error == ERROR_NO_SPACE ? ABI_COUNT_OUTPUT_FULL : ABI_COUNT_OUTPUT_ERROR);
}

/* The task's tree is over, and nobody has heard that its root did not return. */
static __always_inline void trace_end(const struct trace_hit *t, bool task_ended)
{
	struct trace_scratch *s = trace_scratch_of_thread();
	struct abi_trace_event *event;

	if (!s || !t->task->levels)
		return;
	event = &s->out.event;
	event->what = ABI_TRACE_END;
	event->fiber_id = t->task->flags & ABI_TRACE_FIBER ? t->task->incarnation : 0;
	event->caller = 0;
	event->function = t->task->root;
	event->level = 0;
	event->payload_bytes = 0;
	if (task_ended)
		t->task->flags |= ABI_TRACE_TASK_ENDED;
	trace_write(t, s, t->hit.began_ns);
	t->task->levels = 0;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static __always_inline void trace_begin_task(const struct trace_hit *t)
{
	struct abi_trace_task *task = t->task;
	__u32 tgid, tid;

	task->incarnation = trace_incarnation(&t->hit);
	task->left_out = 0;
	task->levels = 0;
	task->flags = t->hit.frame.g ? ABI_TRACE_FIBER : 0;
	identify_pids(t->hit.task, &tgid, &tid);
	task->tgid = tgid;
	task->tid = tid;
}

/* Finds the task; MAKE: there is one from now on. Returns false if there is none. */
static __always_inline bool trace_find_task(struct trace_hit *t, bool make)
{
	trace_identify_task(&t->hit, &t->key);
	t->depth = trace_depth(&t->hit);
	t->task = bpf_map_lookup_elem(&trace_tasks, &t->key);
	if (!t->task && make) {
		struct abi_trace_task fresh = {};

		bpf_map_update_elem(&trace_tasks, &t->key, &fresh, BPF_NOEXIST);
		t->task = bpf_map_lookup_elem(&trace_tasks, &t->key);
	}
	if (!t->task)
		return false;
	if (t->task->incarnation != trace_incarnation(&t->hit)) {
		trace_end(t, true);
		trace_begin_task(t);
	}
	return true;
}

/* ---- entry ---------------------------------------------------------------------------------- */

/* Whether this is in a tree that is left out. */
static __always_inline bool trace_is_left_out(const struct trace_hit *t)
{
	struct abi_trace_task *task = t->task;

	if (!task->left_out)
		return false;
	if (t->depth > task->left_out_depth ||
		(t->depth == task->left_out_depth && task->left_out == t->hit.key.function + 1))
		return true;
	task->left_out = 0;
	return false;
}

/* Whether the entry begins the same call again, which is at PLACE. */
static __always_inline bool trace_is_again(struct trace_hit *t, __u32 place)
{
	struct trace_level *level;

	if (place >= t->task->levels)
		return false;
	level = trace_level_at(&t->key, place);
	if (!level || level->depth != t->depth || level->function != t->hit.key.function ||
		!latency_is_restart(&t->hit, &level->call))
		return false;
	latency_restarted(&t->hit, &level->call, latency_will_restart(&t->hit));
	t->task->levels = place + 1;
	return true;
}

/* The entry is not in a tree: whether it begins one. */
static __always_inline bool trace_begins_tree(const struct trace_hit *t)
{
	struct abi_trace_task *task = t->task;

	if (trace.drilldown && !(t->hit.function->flags & ABI_LATENCY_ROOT))
		return false;
	if (!trace_has_room(t->hit.began_ns)) {
		task->left_out = t->hit.key.function + 1;
		task->left_out_depth = t->depth;
		latency_count(&t->hit, ABI_COUNT_CALLS_UNMEASURED);
		return false;
	}
	task->tree = trace_new_tree(false);
	task->root = t->hit.key.function;
	task->sequence = 0;
	task->flags &= ABI_TRACE_FIBER;
	return true;
}

/* S has the call's process. */
static __always_inline bool trace_store(struct trace_hit *t, struct trace_scratch *s, __u32 place)
{
	struct abi_trace_level_key key = { .task = t->key, .level = place };

	s->level.depth = t->depth;
	s->level.caller = regs_return_address(t->hit.regs);
	s->level.entry_pc = regs_pc(t->hit.regs);
	s->level.function = t->hit.key.function;
	s->level.call.fiber_id = t->hit.frame.g ? t->hit.frame.goid : 0;
	s->level.call.flags = latency_will_restart(&t->hit) ? ABI_OPEN_CALL_RESTARTS : 0;
	s->level.call.start_ns = t->hit.began_ns;
	return !bpf_map_update_elem(&trace_levels, &key, &s->level, BPF_ANY);
}

/*
 * Fetches the arguments, or the results, into the payload. Returns its size. A function of its own,
 * because all variables of trace_hit() and of what it calls have 512 bytes.
 */
static __noinline __u32 trace_fetch_function(void *ctx, bool is_return)
{
	struct trace_scratch *s = trace_scratch_of_thread();
	const struct abi_trace_fetches *fetches =
		s ? bpf_map_lookup_elem(&trace_fetches, &s->out.event.function) : NULL;
	const struct abi_fetch_set *set;

	if (!fetches)
		return 0;
	set = is_return ? &fetches->results : &fetches->entry;
	if (!set->count)
		return 0;
	fetch_all(ctx, set, s->level.entry_pc, &s->out.room);
	return ABI_FETCHES + set->bytes;
}

/* S has the function and the level. */
static __always_inline __u32 trace_fetch(const struct trace_hit *t, bool is_return)
{
	return trace.fetches ? trace_fetch_function(t->hit.regs, is_return) : 0;
}

static __always_inline void trace_write_entry(
	struct trace_hit *t, struct trace_scratch *s, __u32 place)
{
	struct abi_trace_event *event = &s->out.event;

	event->what = ABI_TRACE_ENTRY;
	event->fiber_id = t->hit.frame.g ? t->hit.frame.goid : 0;
	event->caller = s->level.caller;
	event->function = t->hit.key.function;
	event->level = place;
	event->payload_bytes = trace_fetch(t, false);
	latency_count(&t->hit, ABI_COUNT_CALLS);
	trace_write(t, s, bpf_ktime_get_ns());
}

/* The call at level PLACE begins. */
static __always_inline void trace_begin_call(struct trace_hit *t, __u32 place)
{
	struct trace_scratch *s = trace_scratch_of_thread();

	if (!s || !trace_store(t, s, place)) {
		latency_count(&t->hit, s ? ABI_COUNT_CALLS_OPEN_FULL : ABI_COUNT_CALLS_STACK_BUSY);
		t->task->flags |= ABI_TRACE_INCOMPLETE;
		return;
	}
	t->task->levels = place + 1;
	if (t->task->stored <= place)
		t->task->stored = place + 1;
	trace_write_entry(t, s, place);
}

/* A call that cannot be followed. */
static __always_inline void trace_without_slot(struct trace_hit *t)
{
	latency_count(&t->hit, ABI_COUNT_CALLS_STACK_BUSY);
	if (trace_find_task(t, false))
		t->task->flags |= ABI_TRACE_INCOMPLETE;
}

static __always_inline void trace_entry(struct trace_hit *t)
{
	struct trace_scratch *s = trace_scratch_of_thread();
	__u32 place;

	if (!latency_identify_call(&t->hit))
		return;
	if (!s) {
		trace_without_slot(t);
		return;
	}
	__builtin_memset(&s->level.call, 0, sizeof(s->level.call));
	if (!latency_wants(&t->hit, &t->hit.frame, &s->level.call))
		return;
	latency_count_entry(&t->hit);
	if (!trace_find_task(t, true)) {
		latency_count(&t->hit, ABI_COUNT_CALLS_OPEN_FULL);
		return;
	}
	if (trace_is_left_out(t))
		return;
	place = trace_search(&trace_levels, &t->key, t->task, t->depth);
	if (trace_is_again(t, place))
		return;
	place = trace_skip_ended(&t->hit, &t->key, t->task);
	if (!place) {
		trace_end(t, false);
		if (!trace_begins_tree(t))
			return;
	}
	if (place < t->task->levels)
		t->task->levels = place;
	if (trace.max_depth && place >= trace.max_depth)
		return;
	trace_begin_call(t, place);
}

/* ---- return --------------------------------------------------------------------------------- */

/* A return whose entry is in no tree. */
static __always_inline void trace_unmatched(struct trace_hit *t)
{
	struct trace_scratch *s = trace_scratch_of_thread();
	const struct abi_trace_task *task = t->task;

	if (!s || trace.drilldown || (task && trace.max_depth && task->levels >= trace.max_depth))
		return;
	if (latency_wants(&t->hit, &t->hit.frame, &s->level.call))
		latency_count(&t->hit, ABI_COUNT_RETURNS_UNMATCHED);
}

/* The call at level PLACE returns. */
static __always_inline void trace_end_call(struct trace_hit *t, __u32 place)
{
	struct trace_scratch *s = trace_scratch_of_thread();
	struct abi_trace_level_key key = { .task = t->key, .level = place };
	const struct trace_level *level = bpf_map_lookup_elem(&trace_levels, &key);
	__u64 entry_pc = level ? level->entry_pc : 0;

	t->task->levels = place;
	if (!s) {
		latency_count(&t->hit, ABI_COUNT_CALLS_STACK_BUSY);
		t->task->sequence++;
		return;
	}
	s->out.event.what = ABI_TRACE_RETURN;
	s->out.event.fiber_id = t->hit.frame.g ? t->hit.frame.goid : 0;
	s->out.event.caller = 0;
	s->out.event.function = t->hit.key.function;
	s->out.event.level = place;
	s->level.entry_pc = entry_pc;
	s->out.event.payload_bytes = trace_fetch(t, true);
	trace_write(t, s, t->hit.began_ns);
}

static __always_inline void trace_return(struct trace_hit *t)
{
	const struct trace_level *level;
	__u32 place;

	if (!latency_identify_call(&t->hit))
		return;
	if (!trace_find_task(t, false)) {
		trace_unmatched(t);
		return;
	}
	if (trace_is_left_out(t)) {
		if (t->depth == t->task->left_out_depth)
			t->task->left_out = 0;
		return;
	}
	place = trace_search(&trace_levels, &t->key, t->task, t->depth);
	level = place < t->task->levels ? trace_level_at(&t->key, place) : NULL;
	if (level && level->depth == t->depth && level->function == t->hit.key.function)
		trace_end_call(t, place);
	else
		trace_unmatched(t);
}

/* The call at this place comes to its function's entry next. */
static __always_inline void trace_comes_again(struct trace_hit *t)
{
	struct trace_level *level;
	__u32 place;

	if (!latency_identify_call(&t->hit) || !trace_find_task(t, false))
		return;
	place = trace_search(&trace_levels, &t->key, t->task, t->depth);
	level = place < t->task->levels ? trace_level_at(&t->key, place) : NULL;
	if (level && level->depth == t->depth && level->function == t->hit.key.function)
		latency_comes_again(&t->hit, &level->call);
}

/* The goroutine ends. Its object may be the next one's. */
static __always_inline void trace_fiber_end(struct trace_hit *t)
{
	if (!latency_identify_call(&t->hit) || !t->hit.frame.g || !trace_find_task(t, false))
		return;
	trace_end(t, true);
	t->task->levels = 0;
	t->task->left_out = 0;
}

/* ---- hits ----------------------------------------------------------------------------------- */

static __always_inline void trace_at(struct trace_hit *t, __u64 cookie)
{
	/* Without a slot a call is counted as one that could not be followed. */
	bool taken = scratch_take();

	if (t->hit.function->flags & ABI_LATENCY_FIBER_END)
		trace_fiber_end(t);
	else if (cookie & ABI_LATENCY_RETURN)
		trace_return(t);
	else if (cookie & ABI_LATENCY_AGAIN)
		trace_comes_again(t);
	else
		trace_entry(t);
	if (t->task)
		trace_forget_ended(&trace_tasks, &trace_levels, &t->key, t->task);
	if (taken)
		scratch_release();
}

SEC("uprobe")
int trace_hit(void *ctx)
{
	struct trace_hit t = {
		.hit = {
			.regs = ctx,
			.task = task_current(),
			.began_ns = bpf_ktime_get_ns(),
		},
	};
	__u64 cookie = site_cookie(ctx, t.hit.task, latency.cookie_in_path);

	t.hit.counters = counters_of_cpu();
	t.hit.key.function = cookie & ABI_LATENCY_NUMBER;
	t.hit.function = bpf_map_lookup_elem(&latency_functions, &t.hit.key.function);
	if (!t.hit.counters || !t.hit.function)
		return 0;
	if (!(t.hit.function->flags & ABI_LATENCY_ENDED))
		trace_at(&t, cookie);
	latency_count_run(&t.hit);
	return 0;
}
