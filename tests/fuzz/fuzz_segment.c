/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool segment of any bytes: the walk ends, goes forward, and returns payloads or an error. The
 * first byte says whether good records stand before and after the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/server/export/spool/segment.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append_good(struct buffer *out, uint64_t number)
{
	struct payload p = { .time_ns = 7 };

	if (labels_set(&p.labels, "a", "b"))
		abort();
	buffer_init(&p.pprof, 64);
	if (buffer_string(&p.pprof, "profile") || segment_encode(&p, number, out))
		abort();
	payload_deinit(&p);
}

static uint64_t walk(int fd, uint64_t end)
{
	struct segment_record record = { 0 };
	uint64_t good = 0, at = 0;

	while (!segment_next(fd, at, end, &record)) {
		struct payload p = { 0 };

		if (record.offset < at || record.end <= record.offset || record.end > end)
			abort();
		if (!segment_payload(fd, &record, &p) && p.time_ns == 7)
			good++;
		payload_deinit(&p);
		at = record.end;
	}
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autocall(buffer_deinit) struct buffer all;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct payload p = { 0 };

	buffer_init(&all, 1 << 24);
	if (size && data[0] & 1)
		append_good(&all, 1);
	if (buffer_append(&all, data, size))
		abort();
	if (size && data[0] & 2)
		append_good(&all, 2);
	if (fd < 0 || write(fd, all.bytes, all.size) != (ssize_t)all.size)
		abort();
	/* The record before is always found; the one after may be hidden by the bytes. */
	if (walk(fd, all.size) < (size ? data[0] & 1 : 0))
		abort();
	if (!segment_decode(data, size, &p))
		payload_deinit(&p);
	close(fd);
	return 0;
}
