/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One perf ring as its reader sees it: records between the tail, which the reader moves, and the
 * head, which the kernel moves. Records stay in the ring until they are popped and released, so
 * nothing is buffered elsewhere. Knows a record's header and the position of its time.
 *
 * The kernel reports the number of lost records in a PERF_RECORD_LOST, which it writes before the
 * next record that fits; until then nothing in the ring shows the loss. But a ring that lost a
 * record was nearly full, and only its reader makes room: so the reader checks the room each time
 * before it makes more.
 *
 * Reads bytes that the kernel wrote, but trusts no length in them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

enum {
	RING_MAX_RECORD_BYTES = UINT16_MAX, /* perf_event_header.size */
	/* No side-band record is longer: a path has PATH_MAX bytes at most. */
	RING_MAX_SIDEBAND_BYTES = 4096 + 256,
};

struct ring {
	struct perf_event_mmap_page *control; /* NULL = none */
	const uint8_t *data;
	uint64_t size_bytes; /* of data, a power of two */
	uint64_t behind_bytes; /* room behind the end for a last record; 0 = records wrap around */
	uint64_t head; /* as last read by ring_look() */
	uint64_t at; /* position of the next record */
	uint64_t released; /* the tail as the kernel sees it */
	uint64_t last_ns; /* time of the record popped last; 0 = none */
	/* With less room than this the kernel may have lost records; 0 = losses do not matter. */
	uint64_t room_bytes;
	uint64_t full_at; /* the head when there was less room; UINT64_MAX = never */
	uint64_t reported_at; /* the position of the last loss reported; UINT64_MAX = none */
};

/* Maps the ring of the perf event FD, with DATA_PAGES (a power of two) of data, for side-band. */
int ring_map(struct ring *r, int fd, uint32_t data_pages);
void ring_unmap(struct ring *r);
/* A ring in borrowed memory. */
void ring_over(struct ring *r, struct perf_event_mmap_page *control, const void *data,
	uint64_t size_bytes);

/* Reads the head: later calls see what the kernel has written until now. */
void ring_look(struct ring *r);
/*
 * Returns 1 with time and size of the next record, 0 at the head as last looked at, -EBADMSG if no
 * record can start here: the rest is then unusable (ring_drop()).
 */
int ring_peek(const struct ring *r, uint64_t *ret_time_ns, size_t *ret_size);
/* PERF_RECORD_*: the kind of the next record, which was peeked at. */
uint32_t ring_type(const struct ring *r);
/*
 * Call it when the ring has been read to its end; releases the space. Returns whether the kernel
 * may have lost records since the last one, once per loss. They were lost before the call.
 */
bool ring_ends_in_loss(struct ring *r);
/* Whether ring_ends_in_loss() has reported the loss of the next record, a PERF_RECORD_LOST. */
bool ring_loss_is_known(const struct ring *r);
/*
 * The SIZE bytes of the next record, which was peeked at: in place or, if they wrap around the
 * ring's end, copied to SCRATCH (RING_MAX_RECORD_BYTES).
 */
const uint8_t *ring_record(const struct ring *r, size_t size, uint8_t *scratch);
/* Skips the next record, of TIME_NS and SIZE. */
void ring_pop(struct ring *r, uint64_t time_ns, size_t size);
/* Gives the space of all popped records back to the kernel. */
void ring_release(struct ring *r);
/* Whether records that ring_look() saw, and that were not read since, take more than 1/8 of it. */
bool ring_holds_much(const struct ring *r);
/* Skips everything up to the head as last looked at. Returns its bytes. */
uint64_t ring_drop(struct ring *r);
