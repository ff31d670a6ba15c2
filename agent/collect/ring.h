/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One perf ring as its reader sees it: records between the tail, which the reader moves, and the
 * head, which the kernel moves. Records stay in the ring until they are popped and released, so
 * nothing is buffered elsewhere. Knows a record's header and where its time stands, nothing more.
 *
 * Reads bytes that the kernel wrote, but trusts no length in them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

enum {
	RING_MAX_RECORD_BYTES = UINT16_MAX, /* perf_event_header.size */
};

struct ring {
	struct perf_event_mmap_page *control; /* NULL = none */
	const uint8_t *data;
	uint64_t size_bytes; /* of data, a power of two */
	uint64_t behind_bytes; /* into which records run on at the end; 0: they go around it */
	uint64_t head; /* as last looked at */
	uint64_t at; /* the next record */
	uint64_t released; /* the tail that the kernel knows */
};

/* Maps the ring of the perf event FD with DATA_PAGES (a power of two) of data. */
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
/*
 * The SIZE bytes of the next record (as peeked), where they stand or, when they go around the
 * ring's end, copied to SCRATCH (RING_MAX_RECORD_BYTES).
 */
const uint8_t *ring_record(const struct ring *r, size_t size, uint8_t *scratch);
void ring_pop(struct ring *r, size_t size);
/* Gives the space of all popped records back to the kernel. */
void ring_release(struct ring *r);
/* Forgets everything looked at; returns how many bytes. */
uint64_t ring_drop(struct ring *r);
