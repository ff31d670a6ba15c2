/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/spool/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/intern.h"
#include "base/io.h"

enum {
	MAGIC = 0x52535046, /* FPSR */
	HASHED_BYTES = 32, /* of the header */
	SCAN_BYTES = 16 << 10, /* chunk size of the search for a record */
	SCAN_SKIP_BYTES = 4096, /* skipped after a read error */
};

struct header {
	uint32_t magic, body_size;
	uint64_t number;
	int64_t time_ns;
	uint64_t body_hash, header_hash;
};

_Static_assert(sizeof(struct header) == SEGMENT_HEADER_BYTES, "written as it lies in memory");

/* ---- writing -------------------------------------------------------------------------------- */

static void segment_put(struct buffer *out, const void *bytes, size_t size)
{
	(void)buffer_append(out, bytes, size);
}

static void put_labels(struct buffer *out, const struct labels *labels)
{
	uint16_t count = (uint16_t)labels->count;

	segment_put(out, &count, sizeof(count));
	for (size_t i = 0; i < labels->count; i++) {
		const struct label *label = &labels->items[i];
		uint16_t sizes[2] = { (uint16_t)strlen(label->name),
			(uint16_t)strlen(label->value) };

		segment_put(out, sizes, sizeof(sizes));
		segment_put(out, label->name, sizes[0]);
		segment_put(out, label->value, sizes[1]);
	}
}

int segment_encode(const struct payload *payload, uint64_t number, struct buffer *out)
{
	struct header header = { .magic = MAGIC, .number = number, .time_ns = payload->time_ns };
	const size_t start = out->size;
	size_t size;

	segment_put(out, &header, sizeof(header));
	segment_put(out, &payload->time_ns, 8);
	segment_put(out, &payload->duration_ns, 8);
	segment_put(out, &payload->raw_bytes, 8);
	segment_put(out, &payload->samples, 8);
	put_labels(out, &payload->labels);
	segment_put(out, payload->pprof.bytes, payload->pprof.size);
	if (out->error)
		return out->error;
	size = out->size - start - sizeof(header);
	if (size > SEGMENT_BODY_LIMIT)
		return -E2BIG;
	header.body_size = (uint32_t)size;
	header.body_hash = hash_bytes(out->bytes + start + sizeof(header), size);
	header.header_hash = hash_bytes(&header, HASHED_BYTES);
	memcpy(out->bytes + start, &header, sizeof(header));
	return 0;
}

/* ---- finding -------------------------------------------------------------------------------- */

static bool segment_read_header(const void *bytes, size_t size, struct header *ret_header)
{
	struct cursor c = cursor_over(bytes, size);
	const void *all = cursor_bytes(&c, sizeof(*ret_header));
	struct header header;

	if (!all)
		return false;
	memcpy(&header, all, sizeof(header));
	if (header.magic != MAGIC || header.body_size > SEGMENT_BODY_LIMIT ||
		header.header_hash != hash_bytes(&header, HASHED_BYTES))
		return false;
	*ret_header = header;
	return true;
}

/* Reads a complete record at OFFSET. *RET_TORN: an unfinished one begins there. */
static bool record_at(
	int fd, uint64_t offset, uint64_t end, struct segment_record *ret_record, bool *ret_torn)
{
	uint8_t bytes[SEGMENT_HEADER_BYTES];
	ssize_t size = io_read_at(fd, offset, bytes, MIN(sizeof(bytes), end - offset));
	struct header header;
	const uint32_t magic = MAGIC;

	*ret_torn = size >= 0 && size < SEGMENT_HEADER_BYTES &&
		    !memcmp(bytes, &magic, MIN((size_t)size, sizeof(magic)));
	if (size < 0 || !segment_read_header(bytes, (size_t)size, &header))
		return false;
	if (header.body_size > end - offset - SEGMENT_HEADER_BYTES) {
		*ret_torn = true;
		return false;
	}
	*ret_record = (struct segment_record){
		.number = header.number,
		.time_ns = header.time_ns,
		.offset = offset,
		.end = offset + SEGMENT_HEADER_BYTES + header.body_size,
		.body_hash = header.body_hash,
	};
	return true;
}

/* The next offset from FROM on where a record may begin; END if there is none. */
static uint64_t find_magic(int fd, uint64_t from, uint64_t end)
{
	uint8_t bytes[SCAN_BYTES];
	const uint32_t magic = MAGIC;

	while (from + sizeof(magic) <= end) {
		ssize_t size = io_read_at(fd, from, bytes, MIN((uint64_t)SCAN_BYTES, end - from));
		const uint8_t *found;

		if (size < 0) {
			from = (from / SCAN_SKIP_BYTES + 1) * SCAN_SKIP_BYTES;
			continue;
		}
		if (size < (ssize_t)sizeof(magic))
			break;
		found = memmem(bytes, (size_t)size, &magic, sizeof(magic));
		if (found)
			return from + (uint64_t)(found - bytes);
		from += (uint64_t)size - sizeof(magic) + 1;
	}
	return end;
}

int segment_next(int fd, uint64_t offset, uint64_t end, struct segment_record *ret_record)
{
	uint64_t at = offset;
	bool torn = false;

	while (at < end) {
		if (record_at(fd, at, end, ret_record, &torn)) {
			ret_record->after_damage = at > offset;
			return 0;
		}
		/* More records may follow damage or a truncated record: search on. */
		at = find_magic(fd, at + 1, end);
	}
	*ret_record = (struct segment_record){ .offset = offset, .end = end };
	if (offset < end) {
		struct segment_record none;

		(void)record_at(fd, offset, end, &none, &torn);
		ret_record->after_damage = !torn;
	}
	return -ENOENT;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_label(struct cursor *c, struct labels *labels)
{
	uint16_t name_size = cursor_u16(c), value_size = cursor_u16(c);
	const char *name_bytes = cursor_bytes(c, name_size);
	const char *value_bytes = cursor_bytes(c, value_size);
	autofree char *name = NULL, *value = NULL;
	int err;

	if (!name_bytes || !value_bytes)
		return -EBADMSG;
	name = strndup(name_bytes, name_size);
	value = strndup(value_bytes, value_size);
	if (!name || !value)
		return -ENOMEM;
	err = labels_set(labels, name, value);
	return err && err != -ENOMEM ? -EBADMSG : err;
}

static int read_body(struct cursor *c, struct payload *payload)
{
	uint16_t count;
	size_t left;
	int err = 0;

	payload->time_ns = (int64_t)cursor_u64(c);
	payload->duration_ns = (int64_t)cursor_u64(c);
	payload->raw_bytes = cursor_u64(c);
	payload->samples = cursor_u64(c);
	count = cursor_u16(c);
	if (count > LABELS_LIMIT)
		return -EBADMSG;
	for (uint16_t i = 0; !err && i < count; i++)
		err = read_label(c, &payload->labels);
	if (err || c->bad)
		return err ? err : -EBADMSG;
	left = cursor_left(c);
	buffer_init(&payload->pprof, SEGMENT_BODY_LIMIT);
	return buffer_append(&payload->pprof, cursor_bytes(c, left), left);
}

static int decode_body(const void *bytes, size_t size, uint64_t hash, struct payload *ret_payload)
{
	struct cursor c = cursor_over(bytes, size);
	struct payload payload = { 0 };
	int err;

	if (hash_bytes(bytes, size) != hash)
		return -EBADMSG;
	err = read_body(&c, &payload);
	if (err) {
		payload_deinit(&payload);
		return err;
	}
	*ret_payload = payload;
	return 0;
}

int segment_payload(int fd, const struct segment_record *record, struct payload *ret_payload)
{
	const size_t size = (size_t)(record->end - record->offset) - SEGMENT_HEADER_BYTES;
	autofree void *bytes = malloc(size + 1);
	ssize_t got;

	if (!bytes)
		return -ENOMEM;
	got = io_read_at(fd, record->offset + SEGMENT_HEADER_BYTES, bytes, size);
	if (got != (ssize_t)size)
		return -EBADMSG;
	return decode_body(bytes, size, record->body_hash, ret_payload);
}

int segment_decode(const void *bytes, size_t size, struct payload *ret_payload)
{
	struct header header;

	if (!segment_read_header(bytes, size, &header) ||
		header.body_size != size - SEGMENT_HEADER_BYTES)
		return -EBADMSG;
	return decode_body((const uint8_t *)bytes + SEGMENT_HEADER_BYTES, header.body_size,
		header.body_hash, ret_payload);
}
