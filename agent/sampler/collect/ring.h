/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One perf ring as its reader sees it: records between the tail, which the reader moves, and the
 * head, which the kernel moves. Records stay in the ring until they are popped and released, so
 * nothing is buffered elsewhere. Knows a record's header and where its time stands, nothing more.
 *
 * The kernel tells of records that did not fit by a record of their number, PERF_RECORD_LOST, which
 * it writes in front of the next one that fits; until then nothing in the ring tells of them. But a
 * ring that lost one had little room left, and only its reader makes more: so it looks at the room
 * each time before it does.
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
	uint64_t behind_bytes; /* into which records run on at the end; 0: they go around it */
	uint64_t head; /* as last looked at */
	uint64_t at; /* the next record */
	uint64_t released; /* the tail that the kernel knows */
	uint64_t last_ns; /* time of the last record that was popped; 0 = none was */
	/*
	 * With less room than this the kernel may have lost records; 0: what it lost does not
	 * matter.
	 */
	uint64_t room_bytes;
	uint64_t full_at; /* where the head stood when there was less room; UINT64_MAX = never */
	uint64_t told_at; /* the same, when its reader asked */
};

/* Maps the ring of the perf event FD with DATA_PAGES (a power of two) of data, for side-band. */
int ring_map(struct ring *r, int fd, uint32_t data_pages);
void ring_unmap(struct ring *r);
/* A ring over memory somebody else owns. */
void ring_over(struct ring *r, struct perf_event_mmap_page *control, const void *data,
	uint64_t size_bytes);

/* Takes notice of what the kernel has written until now. */
void ring_look(struct ring *r);
/*
 * The size and time of the next record: 1; 0 when all that was looked at is read; -EBADMSG when no
 * record can start here: the rest is then of no use (ring_drop()).
 */
int ring_peek(const struct ring *r, uint64_t *ret_time_ns, size_t *ret_size);
/* PERF_RECORD_*: the kind of the next record (as peeked). */
uint32_t ring_type(const struct ring *r);
/*
 * The ring has been read to its end; makes room. Whether the kernel may have lost records since the
 * last one: says so once, and all of these were lost by the time of the call.
 */
bool ring_ends_in_loss(struct ring *r);
/* Whether ring_ends_in_loss() has told of what the next record, PERF_RECORD_LOST, tells of. */
bool ring_loss_is_known(const struct ring *r);
/*
 * The SIZE bytes of the next record (as peeked), where they stand or, when they go around the
 * ring's end, copied to SCRATCH (RING_MAX_RECORD_BYTES).
 */
const uint8_t *ring_record(const struct ring *r, size_t size, uint8_t *scratch);
/* The next record, of TIME_NS and SIZE, has been read. */
void ring_pop(struct ring *r, uint64_t time_ns, size_t size);
/* Gives the space of all popped records back to the kernel. */
void ring_release(struct ring *r);
/* Forgets everything looked at; returns how many bytes. */
uint64_t ring_drop(struct ring *r);
