/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/json_value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	PARSED_BYTES = 16 << 20,
	PAIRS_LIMIT = 4096, /* looked at */
};

/* ---- memory --------------------------------------------------------------------------------- */

/*
 * jansson's allocator has no context. It is called only by the thread that parses: two bytes of
 * JSON can take two hundred of its memory.
 */
static _Thread_local size_t json_value_left_bytes;
static _Thread_local int
	json_value_memory_error; /* of the first failure; jansson does not tell all */

static void *json_value_malloc(size_t size)
{
	void *memory = size <= json_value_left_bytes ? malloc(size) : NULL;

	if (memory)
		json_value_left_bytes -= size;
	else if (!json_value_memory_error)
		json_value_memory_error = size <= json_value_left_bytes ? -ENOMEM : -E2BIG;
	return memory;
}

void json_value_free(json_t **value)
{
	json_decref(*value);
}

int json_value_load(const void *bytes, size_t size, json_t **ret_value)
{
	json_error_t error;

	json_set_alloc_funcs(json_value_malloc, free);
	json_value_left_bytes = PARSED_BYTES;
	json_value_memory_error = 0;
	*ret_value = json_loadb(size ? bytes : "", size, JSON_ALLOW_NUL, &error);
	/* Without memory jansson may leave out a member and succeed. */
	if (json_value_memory_error)
		return json_value_memory_error;
	return *ret_value ? 0 : -EBADMSG;
}

/* ---- what is in a value --------------------------------------------------------------------- */

const char *json_value_text(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : "";
}

void json_value_printable(const json_t *object, const char *key, char *text, size_t size)
{
	snprintf(text, size, "%s", json_value_text(object, key));
	utf8_clean(text, strlen(text));
}

/* A NUL becomes another control character, which is replaced later. */
static const char *json_value_copy(struct arena *arena, const json_t *value)
{
	const char *text = json_string_value(value);
	size_t length = json_string_length(value);
	char *copy = arena_strndup(arena, text ? text : "", length);

	for (size_t i = 0; copy && i < length; i++)
		copy[i] = copy[i] ? copy[i] : '\1';
	return copy;
}

int json_value_pairs(struct arena *arena, json_t *object, const struct container_pair **ret_pairs,
	size_t *ret_count, uint64_t *refused)
{
	size_t size = MIN(json_object_size(object), (size_t)PAIRS_LIMIT), count = 0;
	struct container_pair *pairs = arena_alloc(arena, MAX(size, 1) * sizeof(*pairs));
	json_t *value;
	const char *name;

	*refused += json_object_size(object) - size;
	if (!pairs)
		return arena->error;
	json_object_foreach(object, name, value)
	{
		if (count == size)
			break;
		pairs[count].name = name;
		pairs[count].value = json_value_copy(arena, value);
		if (!pairs[count++].value)
			return arena->error;
	}
	*ret_pairs = pairs;
	*ret_count = count;
	return 0;
}
