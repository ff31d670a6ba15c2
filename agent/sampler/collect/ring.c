/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	TIME_BYTES = 8,
	/* The shortest record that has a time. */
	MIN_RECORD_BYTES = sizeof(struct perf_event_header) + TIME_BYTES,
	/*
	 * Records and rings are multiples of 8 bytes, so a header or a time never wraps around the
	 * ring's end.
	 */
	RECORD_ALIGNMENT = 8,
	MUCH_PART = 8, /* more than size / MUCH_PART is much */
	KSYMBOL_NAME_OFFSET = 16, /* behind address, length, type and flags */
};

int ring_map(struct ring *r, int fd, uint32_t data_pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(
		NULL, page * (1 + (size_t)data_pages), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	ring_over(r, (struct perf_event_mmap_page *)memory, memory + page, page * data_pages);
	r->room_bytes = RING_MAX_SIDEBAND_BYTES;
	return 0;
}

void ring_unmap(struct ring *r)
{
	if (!r->control)
		return;
	munmap(r->control,
		(size_t)(r->data - (const uint8_t *)r->control) + r->size_bytes + r->behind_bytes);
	*r = (struct ring){ 0 };
}

void ring_over(
	struct ring *r, struct perf_event_mmap_page *control, const void *data, uint64_t size_bytes)
{
	*r = (struct ring){ .control = control, .data = data, .size_bytes = size_bytes };
	r->released = __atomic_load_n(&control->data_tail, __ATOMIC_RELAXED);
	r->at = r->released;
	r->head = r->released;
	r->full_at = r->reported_at = UINT64_MAX;
}

void ring_look(struct ring *r)
{
	if (!r->control)
		return;
	/* Pairs with the kernel's barrier between writing records and moving the head. */
	r->head = __atomic_load_n(&r->control->data_head, __ATOMIC_ACQUIRE);
}

/* Whether SIZE bytes from `at` on are contiguous. */
static bool in_one_piece(const struct ring *r, uint64_t size)
{
	return size <= r->size_bytes - (r->at & (r->size_bytes - 1)) + r->behind_bytes;
}

/* The byte at `at` + OFFSET and the seven that follow; both are multiples of 8. */
static const uint8_t *ring_byte(const struct ring *r, uint64_t offset)
{
	if (in_one_piece(r, offset + RECORD_ALIGNMENT))
		return r->data + (r->at & (r->size_bytes - 1)) + offset;
	return r->data + ((r->at + offset) & (r->size_bytes - 1));
}

/*
 * The offset of the time in the record at `at`: first in a sample, last in all other records
 * (sample_id_all). In a KSYMBOL record it directly follows the padded name, which is not always the
 * end: the kernel lengthens this record by the trailer's size for each CPU that it has already been
 * written to (seen on 6.18), and does not write the surplus.
 */
static uint64_t time_offset(const struct ring *r, const struct perf_event_header *header)
{
	uint64_t last = header->size - TIME_BYTES;
	uint64_t name = sizeof(*header) + KSYMBOL_NAME_OFFSET;

	if (header->type == PERF_RECORD_SAMPLE)
		return sizeof(*header);
	if (header->type != PERF_RECORD_KSYMBOL)
		return last;
	/* Eight bytes at a time: the last of them is NUL once the name has ended. */
	for (; name + RECORD_ALIGNMENT <= last; name += RECORD_ALIGNMENT)
		if (!ring_byte(r, name)[RECORD_ALIGNMENT - 1])
			return name + RECORD_ALIGNMENT;
	return last;
}

int ring_peek(const struct ring *r, uint64_t *ret_time_ns, size_t *ret_size)
{
	uint64_t left = r->head - r->at;
	struct perf_event_header header;

	if (!left)
		return 0;
	if (left > r->size_bytes || left < sizeof(header) || r->at % RECORD_ALIGNMENT)
		return -EBADMSG;
	memcpy(&header, ring_byte(r, 0), sizeof(header));
	if (header.size < MIN_RECORD_BYTES || header.size > left || header.size % RECORD_ALIGNMENT)
		return -EBADMSG;
	memcpy(ret_time_ns, ring_byte(r, time_offset(r, &header)), TIME_BYTES);
	*ret_size = header.size;
	return 1;
}

const uint8_t *ring_record(const struct ring *r, size_t size, uint8_t *scratch)
{
	uint64_t to_end = r->size_bytes - (r->at & (r->size_bytes - 1));

	if (in_one_piece(r, size))
		return ring_byte(r, 0);
	memcpy(scratch, ring_byte(r, 0), to_end);
	memcpy(scratch + to_end, r->data, size - to_end);
	return scratch;
}

uint32_t ring_type(const struct ring *r)
{
	struct perf_event_header header;

	memcpy(&header, ring_byte(r, 0), sizeof(header));
	return header.type;
}

void ring_pop(struct ring *r, uint64_t time_ns, size_t size)
{
	r->at += size;
	r->last_ns = time_ns;
	/* A quarter at a time: the tail's cache line is shared with the writing CPU. */
	if (r->at - r->released >= r->size_bytes / 4)
		ring_release(r);
}

/* Notes a full ring before there is room again: its PERF_RECORD_LOST may come late. */
static void ring_note_room(struct ring *r)
{
	uint64_t head = __atomic_load_n(&r->control->data_head, __ATOMIC_ACQUIRE);

	if (r->room_bytes && head - r->released + r->room_bytes > r->size_bytes)
		r->full_at = head;
}

void ring_release(struct ring *r)
{
	if (!r->control || r->released == r->at)
		return;
	ring_note_room(r);
	r->released = r->at;
	/* Our reads must be over before the kernel may overwrite what we read. */
	__atomic_store_n(&r->control->data_tail, r->at, __ATOMIC_RELEASE);
}

bool ring_ends_in_loss(struct ring *r)
{
	ring_release(r);
	if (r->full_at != r->at || r->reported_at == r->at)
		return false;
	r->reported_at = r->at;
	return true;
}

bool ring_loss_is_known(const struct ring *r)
{
	return r->reported_at == r->at;
}

bool ring_holds_much(const struct ring *r)
{
	return r->head - r->at > r->size_bytes / MUCH_PART;
}

uint64_t ring_drop(struct ring *r)
{
	uint64_t dropped = r->head - r->at;

	r->at = r->head;
	ring_release(r);
	return dropped;
}
