/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/trace/trace_trees.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_TREES = 1 << 16, /* open ones */
	MAX_PAYLOAD_BYTES = 1 << 30, /* of a tree; max_bytes is less */
	MIN_REPORTED = 64, /* calls in a part that is reported to make room */
	/* That a thread has ended is announced before it leaves the kernel for the last time. */
	LAST_TICKS = 2,
};

/* ---- life ----------------------------------------------------------------------------------- */

void trace_trees_init(struct trace_trees *trees, const struct trace_trees_options *options)
{
	*trees = (struct trace_trees){ .options = *options };
	map_init(&trees->by_id, MAX_TREES);
	map_init(&trees->by_task, MAX_TREES);
}

static size_t trace_tree_bytes(const struct trace_tree *tree)
{
	return sizeof(*tree) + tree->capacity * sizeof(*tree->calls) + tree->payload_capacity +
	       tree->open_capacity * sizeof(*tree->open);
}

static void trace_tree_free(struct trace_trees *trees, struct trace_tree *tree)
{
	trees->bytes -= trace_tree_bytes(tree);
	free(tree->calls);
	free(tree->payloads);
	free(tree->open);
	free(tree);
}

void trace_trees_deinit(struct trace_trees *trees)
{
	uint64_t id, tree;
	size_t iterator = 0;

	while (map_next(&trees->by_id, &iterator, &id, &tree))
		trace_tree_free(trees, (struct trace_tree *)(uintptr_t)tree);
	map_deinit(&trees->by_id);
	map_deinit(&trees->by_task);
}

static uint64_t trace_task_hash(const struct abi_trace_task_key *task)
{
	return task->owner ^ ((uint64_t)task->tgid << 40) ^ ((uint64_t)task->tid << 48);
}

static struct trace_tree *trace_trees_make(
	struct trace_trees *trees, const struct abi_trace_event *event)
{
	struct trace_tree *tree = calloc(1, sizeof(*tree));

	if (!tree || map_set_pointer(&trees->by_id, event->tree, tree)) {
		free(tree);
		return NULL;
	}
	trees->bytes += trace_tree_bytes(tree);
	tree->id = event->tree;
	tree->task = event->task;
	tree->goid = event->flags & ABI_TRACE_FIBER ? event->fiber_id : 0;
	tree->pid = event->tgid;
	tree->tid = event->tid;
	tree->beginning_lost = event->sequence > 0;
	tree->kernel = (event->flags & ABI_TRACE_KERNEL) != 0;
	tree->reported_ns = event->time_ns;
	/* Without it the loss of its end may stay unnoticed. */
	(void)map_set_pointer(&trees->by_task, trace_task_hash(&tree->task), tree);
	return tree;
}

/* Reports TREE, whose calls have been ended, and frees it. */
static void trace_trees_done(
	struct trace_trees *trees, struct trace_tree *tree, enum trace_tree_end end)
{
	uint64_t hash = trace_task_hash(&tree->task);

	tree->end = end;
	map_remove(&trees->by_id, tree->id);
	if (map_get_pointer(&trees->by_task, hash) == tree)
		map_remove(&trees->by_task, hash);
	trees->options.done(trees->options.context, tree);
	trace_tree_free(trees, tree);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Makes room in TREE for one more call, its level and a payload. */
static bool trace_tree_reserve(
	struct trace_trees *trees, struct trace_tree *tree, uint32_t level, size_t payload)
{
	size_t before = trace_tree_bytes(tree);
	bool fits = trees->bytes < trees->options.max_bytes;
	int err =
		array_reserve(tree->open, tree->open_capacity, (size_t)level + 1, ABI_TRACE_LEVELS);

	if (!err && fits)
		err = array_reserve(
			tree->calls, tree->capacity, tree->count + 1, trees->options.max_calls);
	if (!err && fits)
		err = array_reserve(tree->payloads, tree->payload_capacity,
			tree->payload_bytes + payload + sizeof(uint32_t) + 1, MAX_PAYLOAD_BYTES);
	trees->bytes += trace_tree_bytes(tree) - before;
	return !err && fits;
}

/* There is room for it. Returns its place, 0 = none. */
static uint32_t trace_tree_keep_payload(struct trace_tree *tree, const void *payload, uint32_t size)
{
	size_t place = tree->payload_bytes ? tree->payload_bytes : 1;

	if (!size)
		return 0;
	memcpy(tree->payloads + place, &size, sizeof(size));
	memcpy(tree->payloads + place + sizeof(size), payload, size);
	tree->payload_bytes = place + sizeof(size) + size;
	return (uint32_t)place;
}

const void *trace_tree_payload(const struct trace_tree *tree, uint32_t place, size_t *ret_bytes)
{
	uint32_t size;

	if (!place)
		return NULL;
	memcpy(&size, tree->payloads + place, sizeof(size));
	*ret_bytes = size;
	return tree->payloads + place + sizeof(size);
}

/* Moves the payload of CALL, which is open, to *PLACE. */
static void trace_tree_move_payload(struct trace_tree *tree, struct trace_call *call, size_t *place)
{
	size_t size = 0;
	const void *payload = trace_tree_payload(tree, call->payload, &size);
	uint32_t from = call->payload;

	if (!payload)
		return;
	call->payload = (uint32_t)*place;
	memmove(tree->payloads + *place, tree->payloads + from, sizeof(uint32_t) + size);
	*place += sizeof(uint32_t) + size;
}

/* Keeps the open calls alone. */
static void trace_tree_compact(struct trace_tree *tree)
{
	size_t count = 0, place = 1;

	for (uint32_t level = 0; level < tree->levels; level++) {
		struct trace_call *call = &tree->calls[count];

		if (!tree->open[level])
			continue;
		*call = tree->calls[tree->open[level] - 1];
		call->shown = true;
		call->lost_before = call->left_out = 0;
		trace_tree_move_payload(tree, call, &place);
		tree->open[level] = (uint32_t)++count;
	}
	tree->count = count;
	tree->payload_bytes = place > 1 ? place : 0;
}

/* Gives back memory that is not needed any more. That may fail, which does no harm. */
static void trace_tree_shrink(struct trace_tree *tree)
{
	size_t calls = tree->count + 1, payloads = tree->payload_bytes + 1;
	void *smaller;

	if (calls < tree->capacity / 2 &&
		(smaller = reallocarray(tree->calls, calls, sizeof(*tree->calls)))) {
		tree->calls = smaller;
		tree->capacity = calls;
	}
	if (payloads < tree->payload_capacity / 2 &&
		(smaller = realloc(tree->payloads, payloads))) {
		tree->payloads = smaller;
		tree->payload_capacity = payloads;
	}
}

/* Reports what has happened in TREE so far, and forgets it but for the calls that are open. */
static void trace_trees_report(struct trace_trees *trees, struct trace_tree *tree)
{
	size_t before = trace_tree_bytes(tree);

	tree->end = TRACE_TREE_OPEN;
	trees->options.done(trees->options.context, tree);
	tree->part++;
	tree->has_news = false;
	tree->lost = tree->left_out = tree->hidden = 0;
	trace_tree_compact(tree);
	trace_tree_shrink(tree);
	trees->bytes += trace_tree_bytes(tree) - before;
}

/* Makes room by a report if most of TREE's calls have ended. GAP: events lost since the last call.
 */
static bool trace_trees_make_room(struct trace_trees *trees, struct trace_tree *tree, uint32_t gap)
{
	if (tree->count < MIN_REPORTED || tree->count / 2 < tree->levels)
		return false;
	tree->lost -= gap;
	tree->reported_ns = tree->ended_ns;
	trace_trees_report(trees, tree);
	tree->lost = gap;
	return true;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* The open call at LEVEL; NULL if its entry was lost or left out. */
static struct trace_call *trace_tree_open(const struct trace_tree *tree, uint32_t level)
{
	return level < tree->levels && tree->open[level] ? &tree->calls[tree->open[level] - 1]
							 : NULL;
}

/*
 * What is known of calls that were seen to end, but not to return; GAP: events are missing before.
 * The kernel does not show the return of a function of its own when too many calls are open.
 */
static enum trace_call_end trace_tree_unreturned(const struct trace_tree *tree, bool gap)
{
	return gap || tree->kernel ? TRACE_CALL_UNKNOWN : TRACE_CALL_ABANDONED;
}

/* Calls from LEVEL on have ended as END says, which was noticed with the last event. */
static void trace_tree_end_calls(struct trace_tree *tree, uint32_t level, enum trace_call_end end)
{
	while (tree->levels > level) {
		struct trace_call *call = trace_tree_open(tree, tree->levels - 1);

		if (call) {
			call->end = (uint8_t)end;
			call->duration_ns = tree->ended_ns - call->time_ns;
		}
		tree->levels--;
	}
}

/* The events that are missing before this one. */
static uint32_t trace_tree_gap(struct trace_tree *tree, uint32_t sequence)
{
	uint32_t gap = sequence - tree->next_sequence;

	tree->next_sequence = sequence + 1;
	tree->lost += gap;
	return gap;
}

/* CALL did not fit: that is shown at the innermost call that did. */
static void trace_tree_leave_out(struct trace_tree *tree, uint32_t level)
{
	tree->left_out++;
	while (level--) {
		struct trace_call *caller = trace_tree_open(tree, level);

		if (!caller)
			continue;
		caller->left_out++;
		return;
	}
}

static void trace_trees_entry(struct trace_trees *trees, struct trace_tree *tree,
	const struct abi_trace_event *event, const void *payload, uint32_t place)
{
	uint32_t gap = trace_tree_gap(tree, event->sequence), level = event->level;
	bool fits;

	trace_tree_end_calls(tree, level, trace_tree_unreturned(tree, gap));
	fits = trace_tree_reserve(trees, tree, level, event->payload_bytes);
	if (!fits && trace_trees_make_room(trees, tree, gap))
		fits = trace_tree_reserve(trees, tree, level, event->payload_bytes);
	if (level >= tree->open_capacity) {
		tree->left_out++;
		return;
	}
	while (tree->levels < level)
		tree->open[tree->levels++] = 0;
	tree->levels = level + 1;
	tree->open[level] = 0;
	if (!fits) {
		trace_tree_leave_out(tree, level);
		return;
	}
	tree->calls[tree->count++] = (struct trace_call){
		.time_ns = event->time_ns,
		.function = event->function,
		.level = level,
		.place = place,
		.lost_before = gap,
		.payload = trace_tree_keep_payload(tree, payload, event->payload_bytes),
		.interrupt = (event->flags & ABI_TRACE_INTERRUPT) != 0,
	};
	tree->open[level] = (uint32_t)tree->count;
}

/* Whether the call at INDEX, the last one that is open, and what it called need not be shown. */
static bool trace_trees_hides(
	const struct trace_trees *trees, const struct trace_tree *tree, size_t index)
{
	if (tree->calls[index].duration_ns >= trees->options.min_duration_ns ||
		tree->calls[index].shown)
		return false;
	for (size_t i = index; i < tree->count; i++) {
		const struct trace_call *call = &tree->calls[i];

		if (call->lost_before || call->lost_inside || call->left_out)
			return false;
	}
	return true;
}

static void trace_trees_return(struct trace_trees *trees, struct trace_tree *tree,
	const struct abi_trace_event *event, const void *payload)
{
	uint32_t gap = trace_tree_gap(tree, event->sequence);
	struct trace_call *call;
	bool fits;

	trace_tree_end_calls(tree, event->level + 1, trace_tree_unreturned(tree, gap));
	call = trace_tree_open(tree, event->level);
	if (!call || call->function != event->function) {
		/* Its entry was lost, or left out. */
		trace_tree_end_calls(tree, event->level, TRACE_CALL_UNKNOWN);
		return;
	}
	call->end = TRACE_CALL_RETURNED;
	call->duration_ns = event->time_ns - call->time_ns;
	call->lost_inside = gap;
	tree->levels = event->level;
	if (trace_trees_hides(trees, tree, (size_t)(call - tree->calls))) {
		tree->hidden += tree->count - (size_t)(call - tree->calls);
		if (call->payload)
			tree->payload_bytes = call->payload;
		tree->count = (size_t)(call - tree->calls);
		return;
	}
	if (!event->payload_bytes)
		return;
	fits = trace_tree_reserve(trees, tree, event->level, event->payload_bytes);
	call = &tree->calls[tree->open[event->level] - 1];
	if (fits)
		call->return_payload = trace_tree_keep_payload(tree, payload, event->payload_bytes);
}

/* ---- trees ---------------------------------------------------------------------------------- */

static void trace_trees_end(
	struct trace_trees *trees, struct trace_tree *tree, const struct abi_trace_event *event)
{
	bool lost = trace_tree_gap(tree, event->sequence) > 0;
	bool task = event->flags & ABI_TRACE_TASK_ENDED;

	trace_tree_end_calls(tree, 0, trace_tree_unreturned(tree, lost));
	trace_trees_done(trees, tree, task ? TRACE_TREE_TASK_ENDED : TRACE_TREE_ABANDONED);
}

/* A tree whose task begins another one is over, though nobody has heard of that. */
static void trace_trees_end_older(struct trace_trees *trees, const struct abi_trace_task_key *task)
{
	struct trace_tree *older = map_get_pointer(&trees->by_task, trace_task_hash(task));

	if (!older || memcmp(&older->task, task, sizeof(*task)))
		return;
	trace_tree_end_calls(older, 0, TRACE_CALL_UNKNOWN);
	trace_trees_done(trees, older, TRACE_TREE_UNKNOWN);
}

void trace_trees_event(struct trace_trees *trees, const struct abi_trace_event *event,
	const void *payload, uint32_t place)
{
	struct trace_tree *tree = map_get_pointer(&trees->by_id, event->tree);

	if (event->level >= ABI_TRACE_LEVELS)
		return;
	if (!tree && event->what == ABI_TRACE_ENTRY) {
		trace_trees_end_older(trees, &event->task);
		tree = trace_trees_make(trees, event);
	}
	if (!tree) {
		trees->not_kept++;
		return;
	}
	tree->ended_ns = event->time_ns;
	tree->has_news = true;
	tree->incomplete |= (event->flags & ABI_TRACE_INCOMPLETE) != 0;
	if (event->what == ABI_TRACE_ENTRY)
		trace_trees_entry(trees, tree, event, payload, place);
	else if (event->what == ABI_TRACE_RETURN)
		trace_trees_return(trees, tree, event, payload);
	else
		trace_trees_end(trees, tree, event);
	if (event->what == ABI_TRACE_RETURN && !event->level)
		trace_trees_done(trees, tree, TRACE_TREE_RETURNED);
}

/* What the end of thread TID of process PID means for TREE. */
static bool trace_tree_ends_with(const struct trace_tree *tree, uint32_t pid, uint32_t tid)
{
	if (tree->pid != pid)
		return false;
	if (tree->kernel)
		return tree->tid == tid;
	return tid == pid || (tree->task.tid && tree->tid == tid);
}

/* Which trees end. */
struct trace_ending {
	uint32_t pid, tid; /* of a thread that has ended; 0 = none */
	bool all;
	enum trace_tree_end end;
};

/* Whether TREE ends now; if its thread has ended, it may have to wait. */
static bool trace_tree_ends(struct trace_tree *tree, const struct trace_ending *e)
{
	if (e->all)
		return true;
	if (!e->tid)
		return tree->last_ticks && !--tree->last_ticks;
	if (!trace_tree_ends_with(tree, e->pid, e->tid))
		return false;
	if (!tree->kernel)
		return true;
	tree->last_ticks = LAST_TICKS;
	tree->exit_end = e->end;
	return false;
}

static void trace_trees_end_all(struct trace_trees *trees, const struct trace_ending *e)
{
	autofree struct trace_tree **list =
		calloc(trees->by_id.count + 1, sizeof(struct trace_tree *));
	uint64_t id, value;
	size_t iterator = 0, count = 0;

	while (list && map_next(&trees->by_id, &iterator, &id, &value)) {
		struct trace_tree *tree = (struct trace_tree *)(uintptr_t)value;

		if (trace_tree_ends(tree, e))
			list[count++] = tree;
	}
	for (size_t i = 0; i < count; i++) {
		trace_tree_end_calls(list[i], 0, TRACE_CALL_OPEN);
		trace_trees_done(trees, list[i], list[i]->exit_end ? list[i]->exit_end : e->end);
	}
}

void trace_trees_exit(struct trace_trees *trees, uint32_t pid, uint32_t tid)
{
	trace_trees_end_all(
		trees, &(struct trace_ending){
			       .pid = pid,
			       .tid = tid,
			       .end = pid == tid ? TRACE_TREE_PROCESS_ENDED : TRACE_TREE_TASK_ENDED,
		       });
}

void trace_trees_tick(struct trace_trees *trees, uint64_t now_ns)
{
	uint64_t id, value;
	size_t iterator = 0;

	trace_trees_end_all(trees, &(struct trace_ending){ 0 });
	while (trees->options.part_ns && map_next(&trees->by_id, &iterator, &id, &value)) {
		struct trace_tree *tree = (struct trace_tree *)(uintptr_t)value;

		/* The events may be newer than what time it was. */
		if (!tree->has_news || now_ns < tree->reported_ns + trees->options.part_ns)
			continue;
		tree->reported_ns = now_ns;
		trace_trees_report(trees, tree);
	}
}

void trace_trees_finish(struct trace_trees *trees)
{
	trace_trees_end_all(trees, &(struct trace_ending){ .all = true, .end = TRACE_TREE_CUT });
}
