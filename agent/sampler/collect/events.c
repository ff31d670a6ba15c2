/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/events.h"

#include <stddef.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/cursor.h"

enum {
	SAMPLE_ID_BYTES = 8, /* the time, at the end of all records but samples */
	MAX_STACK_BYTES = sizeof(struct abi_stack) + ABI_MAX_FRAMES * sizeof(abi_u64),
	MAX_UNFINISHED_BYTES = sizeof(struct abi_unfinished) + ABI_UNFINISHED_STACK_BYTES +
			       ABI_DEEP_CHUNKS * sizeof(abi_u64),
	MAX_SIGHTINGS_BYTES =
		sizeof(struct abi_sightings) + ABI_SIGHTINGS * sizeof(struct abi_sighting),
};

/*
 * Whether the process is not visible in the agent's pid namespace: its pid is then 0, or −1 if it
 * has ended (perf_event_pid_type() in the kernel). Idle threads, whose pid is 0 too, have no
 * records.
 */
static bool is_outside_namespace(uint32_t tgid)
{
	return tgid == 0 || tgid == UINT32_MAX;
}

static bool unfinished_is_valid(const struct abi_unwind_rest *rest)
{
	if (rest->stack_bytes > ABI_UNFINISHED_STACK_BYTES ||
		rest->stack_bytes % ABI_UNFINISHED_CHUNK_BYTES)
		return false;
	return !rest->deep_count || (rest->deep_count <= ABI_DEEP_CHUNKS &&
					    rest->stack_bytes == ABI_UNFINISHED_STACK_BYTES);
}

static bool handle_unfinished(const struct events *e, const struct probe_record *record,
	uint64_t time_ns, struct cursor *raw)
{
	union {
		struct abi_unfinished unfinished;
		uint8_t bytes[MAX_UNFINISHED_BYTES];
	} aligned;
	const void *head = cursor_bytes(raw, sizeof(aligned.unfinished));
	const void *stack;
	size_t bytes;

	if (!head)
		return false;
	memcpy(&aligned.unfinished, head, sizeof(aligned.unfinished));
	if (!unfinished_is_valid(&aligned.unfinished.rest))
		return false;
	bytes = aligned.unfinished.rest.stack_bytes +
		aligned.unfinished.rest.deep_count * sizeof(abi_u64);
	stack = cursor_bytes(raw, bytes);
	if (!stack)
		return false;
	memcpy(aligned.bytes + sizeof(aligned.unfinished), stack, bytes);
	if (e->handlers.unfinished)
		e->handlers.unfinished(e->handlers.context, time_ns, &aligned.unfinished);
	else
		record->deliver(&e->handlers, time_ns, &aligned.unfinished.sample);
	return true;
}

static bool handle_chunk(const struct events *e, struct cursor *raw)
{
	struct abi_chunk chunk;
	const void *bytes = cursor_bytes(raw, sizeof(chunk));

	if (!bytes)
		return false;
	memcpy(&chunk, bytes, sizeof(chunk));
	if (e->handlers.chunk)
		e->handlers.chunk(e->handlers.context, &chunk);
	return true;
}

/* A record's head, which says how many elements follow it. */
struct counted {
	size_t head_bytes, count_offset, element_bytes;
	uint32_t max;
};

#define COUNTED(type, count, elements, most)                                 \
	(&(struct counted){ offsetof(type, elements), offsetof(type, count), \
		sizeof(((type *)0)->elements[0]), most })

/* Copies it and its elements to TO, which is aligned. Returns false if they are fewer or too many.
 */
static bool copy_counted(struct cursor *raw, const struct counted *how, void *to)
{
	const void *head = cursor_bytes(raw, how->head_bytes);
	const void *elements;
	abi_u32 count;
	size_t bytes;

	if (!head)
		return false;
	memcpy(to, head, how->head_bytes);
	memcpy(&count, (uint8_t *)to + how->count_offset, sizeof(count));
	if (count > how->max)
		return false;
	bytes = count * how->element_bytes;
	elements = cursor_bytes(raw, bytes);
	if (!elements)
		return false;
	memcpy((uint8_t *)to + how->head_bytes, elements, bytes);
	return true;
}

static bool handle_returns(const struct events *e, struct cursor *raw)
{
	struct abi_returns returns = { 0 };

	if (!copy_counted(raw, COUNTED(struct abi_returns, count, of, ABI_RETURNS), &returns))
		return false;
	if (e->handlers.returns)
		e->handlers.returns(e->handlers.context, &returns);
	return true;
}

static bool handle_sightings(const struct events *e, uint64_t time_ns, struct cursor *raw)
{
	union {
		struct abi_sightings sightings;
		uint8_t bytes[MAX_SIGHTINGS_BYTES];
	} aligned;

	if (!copy_counted(raw, COUNTED(struct abi_sightings, count, of, ABI_SIGHTINGS), &aligned))
		return false;
	if (e->handlers.sightings)
		e->handlers.sightings(e->handlers.context, time_ns, &aligned.sightings);
	return true;
}

/* Brings the outermost frames of a stack without its middle, a ring, into their order. */
static bool unroll(struct abi_stack *stack)
{
	const uint32_t first = (stack->flags & ABI_STACK_RING_MASK) >> ABI_STACK_RING_SHIFT;
	abi_u64 outer[ABI_OUTER_FRAMES];

	if (!(stack->flags & ABI_STACK_MIDDLE))
		return true;
	if (stack->frame_count != ABI_MAX_FRAMES)
		return false;
	memcpy(outer, stack->frames + ABI_INNER_FRAMES, sizeof(outer));
	for (uint32_t i = 0; i < ABI_OUTER_FRAMES; i++)
		stack->frames[ABI_INNER_FRAMES + i] = outer[(first + i) % ABI_OUTER_FRAMES];
	stack->flags &= ~(abi_u32)ABI_STACK_RING_MASK;
	return true;
}

static bool handle_stack(const struct events *e, struct cursor *raw)
{
	union {
		struct abi_stack stack;
		uint8_t bytes[MAX_STACK_BYTES];
	} aligned;

	if (!copy_counted(
		    raw, COUNTED(struct abi_stack, frame_count, frames, ABI_MAX_FRAMES), &aligned))
		return false;
	if (aligned.stack.kind == ABI_STACK && !unroll(&aligned.stack))
		return false;
	if (e->handlers.stack)
		e->handlers.stack(e->handlers.context, &aligned.stack);
	return true;
}

/* Delivers the stack within a sample's record, if there is one. */
static bool handle_own_stack(const struct events *e, struct cursor *raw)
{
	struct cursor kind = *raw;

	if (cursor_left(raw) < sizeof(struct abi_stack))
		return true;
	return cursor_u32(&kind) == ABI_STACK && handle_stack(e, raw);
}

static bool handle_sample(const struct events *e, const struct probe_record *record,
	uint64_t time_ns, struct cursor *raw)
{
	struct cursor whole = *raw;
	union {
		struct abi_sample sample;
		uint8_t bytes[ABI_SAMPLE_BYTES];
	} aligned;
	const void *bytes = cursor_bytes(raw, sizeof(aligned));

	if (!bytes)
		return false;
	/* Raw data starts at an odd multiple of 4. */
	memcpy(&aligned, bytes, sizeof(aligned));
	if (aligned.sample.flags & ABI_SAMPLE_UNFINISHED)
		return handle_unfinished(e, record, time_ns, &whole);
	if (!handle_own_stack(e, raw))
		return false;
	record->deliver(&e->handlers, time_ns, &aligned);
	return true;
}

static bool handle_record(const struct events *e, const struct probe_record *record,
	uint64_t time_ns, struct cursor *raw)
{
	uint64_t aligned[PROBE_RECORD_MAX_BYTES / sizeof(uint64_t)];
	const void *bytes;

	size_t size;

	if (!record || record->bytes + record->more_bytes > sizeof(aligned))
		return false;
	if (record->is_sample)
		return handle_sample(e, record, time_ns, raw);
	size = record->bytes +
	       MIN(record->more_bytes, cursor_left(raw) - MIN(cursor_left(raw), record->bytes));
	bytes = cursor_bytes(raw, size);
	if (!bytes)
		return false;
	memcpy(aligned, bytes, size);
	memset((uint8_t *)aligned + size, 0, record->bytes + record->more_bytes - size);
	record->deliver(&e->handlers, time_ns, aligned);
	return true;
}

/* PERF_SAMPLE_RAW: a u32 size, then as many bytes, written by BPF. */
static bool handle_raw(const struct events *e, uint64_t time_ns, struct cursor *body)
{
	struct cursor raw, kind_at;
	uint32_t size, kind;

	cursor_skip(body, sizeof(uint64_t)); /* the time */
	size = cursor_u32(body);
	raw = cursor_slice(body, cursor_offset(body), size);
	kind_at = raw;
	kind = cursor_u32(&kind_at);
	switch (kind) {
	case ABI_STACK:
	case ABI_FIBER_FACTS: /* has the same head */
		return handle_stack(e, &raw);
	case ABI_CHUNK:
		return handle_chunk(e, &raw);
	case ABI_RETURNS_RECORD:
		return handle_returns(e, &raw);
	case ABI_SIGHTINGS_RECORD:
		return handle_sightings(e, time_ns, &raw);
	default:
		return handle_record(e, probe_record(e->probes, kind), time_ns, &raw);
	}
}

static void read_build_id(struct cursor *body, struct build_id *build_id)
{
	uint8_t size = cursor_u8(body);
	const uint8_t *bytes;

	cursor_skip(body, 3);
	bytes = cursor_bytes(body, BUILD_ID_MAX_BYTES);
	if (!bytes || size > BUILD_ID_MAX_BYTES)
		return;
	build_id->size = size;
	memcpy(build_id->bytes, bytes, size);
}

static void events_read_file(struct cursor *body, struct collect_mmap *mmap)
{
	uint32_t major = cursor_u32(body);
	uint32_t minor = cursor_u32(body);

	mmap->device = makedev(major, minor);
	mmap->inode = cursor_u64(body);
	mmap->generation = cursor_u64(body);
}

/*
 * Whether the record is from the event for mapped files: it then ends with the pid and tid that it
 * begins with. The other event's ends with a name and zeros, so nothing follows a zero. The flag
 * for build IDs is no criterion: the kernel leaves it set from the event that it wrote before.
 */
static bool is_of_file(const struct cursor *body)
{
	uint8_t ends[2][2 * sizeof(uint32_t)];
	struct cursor first = cursor_slice(body, 0, sizeof(ends[0]));
	struct cursor last;
	const void *bytes;

	if (cursor_left(body) < 2 * sizeof(ends[0]))
		return false;
	last = cursor_slice(body, cursor_left(body) - sizeof(ends[1]), sizeof(ends[1]));
	bytes = cursor_bytes(&first, sizeof(ends[0]));
	if (!bytes)
		return false;
	memcpy(ends[0], bytes, sizeof(ends[0]));
	bytes = cursor_bytes(&last, sizeof(ends[1]));
	return bytes && !memcmp(ends[0], bytes, sizeof(ends[0]));
}

static bool handle_mmap(
	const struct events *e, uint64_t time_ns, uint16_t misc, struct cursor *body)
{
	bool of_file = e->files && is_of_file(body);
	struct collect_mmap mmap = { .time_ns = time_ns };

	mmap.tgid = cursor_u32(body);
	mmap.tid = cursor_u32(body);
	mmap.start = cursor_u64(body);
	mmap.length = cursor_u64(body);
	mmap.file_off = cursor_u64(body);
	if (!of_file && misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		read_build_id(body, &mmap.build_id);
	else
		events_read_file(body, &mmap);
	mmap.protection = cursor_u32(body);
	cursor_skip(body, 4); /* flags */
	mmap.path = cursor_string(body);
	if (!mmap.path)
		return false;
	if (of_file) {
		mapped_files_keep(e->files, &mmap);
		return true;
	}
	if (e->files && mmap.build_id.size)
		mapped_files_complete(e->files, &mmap);
	if (e->handlers.mmap && !is_outside_namespace(mmap.tgid))
		e->handlers.mmap(e->handlers.context, &mmap);
	return true;
}

static bool handle_comm(
	const struct events *e, uint64_t time_ns, uint16_t misc, struct cursor *body)
{
	uint32_t tgid = cursor_u32(body);
	uint32_t tid = cursor_u32(body);
	const char *comm = cursor_string(body);

	if (!comm)
		return false;
	if (e->handlers.comm && !is_outside_namespace(tgid))
		e->handlers.comm(e->handlers.context, time_ns, tgid, tid, comm,
			misc & PERF_RECORD_MISC_COMM_EXEC);
	return true;
}

/* PERF_RECORD_FORK and PERF_RECORD_EXIT look alike. */
static bool handle_task(
	const struct events *e, uint64_t time_ns, uint32_t type, struct cursor *body)
{
	uint32_t tgid = cursor_u32(body);
	uint32_t parent_tgid = cursor_u32(body);
	uint32_t tid = cursor_u32(body);
	uint32_t parent_tid = cursor_u32(body);

	cursor_skip(body, 8); /* the time */
	if (body->bad)
		return false;
	/* The event for mapped files also reports tasks: longer records, and duplicates. */
	if (is_outside_namespace(tgid) || (e->files && cursor_left(body)))
		return true;
	if (type == PERF_RECORD_FORK && e->handlers.fork)
		e->handlers.fork(e->handlers.context, time_ns, tgid, tid, parent_tgid, parent_tid);
	if (type == PERF_RECORD_EXIT && e->handlers.exit)
		e->handlers.exit(e->handlers.context, time_ns, tgid, tid);
	return true;
}

static bool handle_ksymbol(const struct events *e, struct cursor *body)
{
	uint64_t kaddr = cursor_u64(body);
	uint32_t size = cursor_u32(body);
	uint16_t type = cursor_u16(body);
	uint16_t flags = cursor_u16(body);
	const char *name = cursor_string(body);

	if (!name)
		return false;
	if (e->handlers.ksymbol)
		e->handlers.ksymbol(e->handlers.context, kaddr, size, name,
			type == PERF_RECORD_KSYMBOL_TYPE_BPF,
			flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	return true;
}

/* Only counts: the merge has reported the gap. */
static bool handle_lost(const struct events *e, struct cursor *body)
{
	uint64_t count;

	cursor_skip(body, 8); /* the event's id */
	count = cursor_u64(body);
	if (body->bad)
		return false;
	metrics_add(e->metrics, METRIC_LOST_SIDEBAND, count);
	return true;
}

static bool handle(
	const struct events *e, uint64_t time_ns, uint32_t type, uint16_t misc, struct cursor *body)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
		return handle_raw(e, time_ns, body);
	case PERF_RECORD_MMAP2:
		return handle_mmap(e, time_ns, misc, body);
	case PERF_RECORD_COMM:
		return handle_comm(e, time_ns, misc, body);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return handle_task(e, time_ns, type, body);
	case PERF_RECORD_KSYMBOL:
		return handle_ksymbol(e, body);
	case PERF_RECORD_LOST:
		return handle_lost(e, body);
	default:
		return true; /* of no interest, or of a later kernel */
	}
}

void events_deliver(const struct events *e, uint64_t time_ns, const uint8_t *record, size_t size)
{
	struct cursor whole = cursor_over(record, size);
	uint32_t type = cursor_u32(&whole);
	uint16_t misc = cursor_u16(&whole);
	struct cursor body;
	size_t trailer = type == PERF_RECORD_SAMPLE ? 0 : SAMPLE_ID_BYTES;

	cursor_skip(&whole, 2); /* the size */
	body = cursor_slice(&whole, cursor_offset(&whole),
		cursor_left(&whole) > trailer ? cursor_left(&whole) - trailer : 0);
	if (!handle(e, time_ns, type, misc, &body))
		metrics_add(e->metrics, METRIC_LOST_BAD_RECORD, 1);
}
