/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gzip.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/cursor.h"

enum { LIKELY_RATIO = 32 }; /* of plain bytes to compressed ones: profiles have 3 to 8 */

static const size_t LEAST_ROOM_BYTES = (size_t)64 << 10;

static void free_decompressor(struct libdeflate_decompressor **d)
{
	libdeflate_free_decompressor(*d);
}

static void free_compressor(struct libdeflate_compressor **c)
{
	libdeflate_free_compressor(*c);
}

/*
 * The length that the last member says it has, if it could be true. It is as a rule the only one,
 * and then fits at once.
 */
static size_t gzip_likely_size(const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_over(bytes, size);
	size_t likely;

	if (size < sizeof(uint32_t) || !cursor_skip(&c, size - sizeof(uint32_t)))
		return 4 * size;
	likely = cursor_u32(&c);
	return likely / LIKELY_RATIO <= size ? likely : 4 * size;
}

/* Inflates the member at *AT. Its size is not known: retries with more room until it fits. */
static int inflate_member(struct libdeflate_decompressor *d, const uint8_t *bytes, size_t size,
	size_t *at, struct buffer *out)
{
	size_t room_bytes = MAX(gzip_likely_size(bytes + *at, size - *at), LEAST_ROOM_BYTES);

	for (;;) {
		enum libdeflate_result result;
		size_t used, made;
		void *room;

		room_bytes = MIN(room_bytes, out->limit - out->size);
		room = buffer_room(out, room_bytes);
		if (!room)
			return out->error ?: -E2BIG;
		result = libdeflate_gzip_decompress_ex(
			d, bytes + *at, size - *at, room, room_bytes, &used, &made);
		if (result == LIBDEFLATE_SUCCESS) {
			*at += used;
			out->size += made;
			return 0;
		}
		if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
			return -EBADMSG;
		if (room_bytes == out->limit - out->size)
			return -E2BIG;
		room_bytes = MAX(2 * room_bytes, 4 * (size - *at));
	}
}

bool gzip_is(const void *bytes, size_t size)
{
	const uint8_t *b = bytes;

	return size > 2 && b[0] == 0x1f && b[1] == 0x8b;
}

int gzip_inflate(const void *bytes, size_t size, struct buffer *out)
{
	autocall(free_decompressor) struct libdeflate_decompressor *d =
		libdeflate_alloc_decompressor();
	const uint8_t *b = bytes;
	size_t at = 0;
	int err;

	if (!d)
		return -ENOMEM;
	do {
		err = inflate_member(d, b, size, &at, out);
		if (err)
			return err;
	} while (gzip_is(b + at, size - at));
	return 0;
}

int gzip_deflate(const void *bytes, size_t size, int level, struct buffer *out)
{
	autocall(free_compressor) struct libdeflate_compressor *c =
		libdeflate_alloc_compressor(level);
	size_t bound, made;
	void *room;

	if (!c)
		return -ENOMEM;
	/* The bound is for incompressible bytes: output may fit in less. */
	bound = MIN(libdeflate_gzip_compress_bound(c, size), out->limit - out->size);
	room = buffer_room(out, bound);
	if (!room)
		return out->error ?: -E2BIG;
	made = libdeflate_gzip_compress(c, bytes, size, room, bound);
	if (!made)
		return -E2BIG;
	out->size += made;
	return 0;
}
