/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A bounds-checked reader for untrusted bytes: ELF, DWARF, pclntab, perf records, index files.
 * Foreign files are read only through it.
 *
 * The first read past the end sets `bad`; from then on every read returns 0 or NULL, so a parser
 * may read a whole header and check once. Values are little-endian, as on both supported
 * architectures; unaligned input is fine.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *start;
	const uint8_t *at;
	const uint8_t *end;
	bool bad; /* a read went past the end, or a LEB128 did not fit */
};

/* BYTES may be NULL: the cursor is empty, with valid pointers (adding to NULL is undefined). */
static inline struct cursor cursor_over(const void *bytes, size_t size)
{
	const uint8_t *start = bytes ? bytes : (const void *)"";

	return (struct cursor){ .start = start, .at = start, .end = bytes ? start + size : start };
}

static inline size_t cursor_left(const struct cursor *c)
{
	return c->bad ? 0 : (size_t)(c->end - c->at);
}

static inline size_t cursor_offset(const struct cursor *c)
{
	return (size_t)(c->at - c->start);
}

/* Returns the next SIZE bytes. NULL, with `bad` set, if fewer are left. */
static inline const void *cursor_bytes(struct cursor *c, size_t size)
{
	const uint8_t *bytes = c->at;

	if (c->bad || size > (size_t)(c->end - c->at)) {
		c->bad = true;
		return NULL;
	}
	c->at += size;
	return bytes;
}

static inline bool cursor_skip(struct cursor *c, uint64_t size)
{
	if (c->bad || size > (uint64_t)(c->end - c->at)) {
		c->bad = true;
		return false;
	}
	if (size)
		c->at += size;
	return true;
}

static inline bool cursor_seek(struct cursor *c, uint64_t offset)
{
	if (c->bad || offset > (uint64_t)(c->end - c->start)) {
		c->bad = true;
		return false;
	}
	c->at = offset ? c->start + offset : c->start;
	return true;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	const uint8_t *p = cursor_bytes(c, 1);

	return p ? *p : 0;
}

static inline uint16_t cursor_u16(struct cursor *c)
{
	const void *p = cursor_bytes(c, 2);
	uint16_t value = 0;

	if (p)
		memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint32_t cursor_u32(struct cursor *c)
{
	const void *p = cursor_bytes(c, 4);
	uint32_t value = 0;

	if (p)
		memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint64_t cursor_u64(struct cursor *c)
{
	const void *p = cursor_bytes(c, 8);
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, sizeof(value));
	return value;
}

/* An unsigned number of 1 to 8 bytes; a larger SIZE sets `bad`. */
uint64_t cursor_unsigned(struct cursor *c, unsigned int size);
/* DWARF's LEB128 (DWARF 5, 7.6); more than 64 significant bits set `bad`. */
uint64_t cursor_uleb128(struct cursor *c);
int64_t cursor_sleb128(struct cursor *c);
/* Returns a NUL-terminated string. NULL, with `bad` set, if no NUL is within bounds. */
const char *cursor_string(struct cursor *c);
/* A cursor over the SIZE bytes at OFFSET (from C's start); `bad` is set if they are out of bounds.
 */
struct cursor cursor_slice(const struct cursor *c, uint64_t offset, uint64_t size);
