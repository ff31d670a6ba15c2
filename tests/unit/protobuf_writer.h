/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes protobuf messages field by field, as in its encoding's description, valid or not. */
#include <stdint.h>
#include <string.h>

#include "tests/unit/bytes.h"

static inline void pb_bytes(struct buffer *out, uint32_t field, const void *bytes, size_t size)
{
	put_uleb128(out, field << 3 | 2);
	put_uleb128(out, size);
	buffer_append(out, bytes, size);
}

static inline void pb_text(struct buffer *out, uint32_t field, const char *text)
{
	pb_bytes(out, field, text, strlen(text));
}

static inline void pb_number(struct buffer *out, uint32_t field, uint64_t number)
{
	put_uleb128(out, field << 3);
	put_uleb128(out, number);
}

/* Appends MESSAGE as a field and frees it. */
static inline void pb_message(struct buffer *out, uint32_t field, struct buffer *message)
{
	pb_bytes(out, field, message->bytes ? message->bytes : (const void *)"", message->size);
	buffer_deinit(message);
}

static inline void pb_pair(struct buffer *out, uint32_t field, const char *key, const char *value)
{
	struct buffer pair;

	buffer_init(&pair, 1 << 20);
	pb_text(&pair, 1, key);
	pb_text(&pair, 2, value);
	pb_message(out, field, &pair);
}
