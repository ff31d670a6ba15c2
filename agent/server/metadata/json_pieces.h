/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cuts JSON that comes in pieces of any length into values that are parsed one by one, so that
 * memory does not grow with their number: the elements of the array `items` of one object (a list
 * of Kubernetes), those of one array (a list of Docker), or values one after the other (a watch).
 * It looks at brackets and quotes only; whether a value is JSON is for its parser to say.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum json_pieces_form {
	JSON_PIECES_ITEMS, /* one object; the elements of its `items` are the values */
	JSON_PIECES_ARRAY, /* one array of objects, which are the values */
	JSON_PIECES_VALUES, /* any number of objects */
};

/* BYTES is one value. Returns 0, or a negative errno that ends everything. */
typedef int json_pieces_fn(void *context, const void *bytes, size_t size);

struct json_pieces {
	enum json_pieces_form form;
	json_pieces_fn *on_value;
	void *context;
	struct buffer value; /* being received */
	struct buffer rest; /* of a list: the object, with `items` empty */
	unsigned int depth; /* of open brackets */
	bool in_items, in_value, in_string, escaped;
	bool ended; /* the list's object, or array, is complete */
	bool skips; /* the value is over its limit: it is left out */
	uint64_t values; /* complete ones */
	uint64_t too_large; /* of these, left out */
	int error; /* of the first failure; 0 = none */
};

/* LIMIT_BYTES: of one value. */
void json_pieces_init(struct json_pieces *p, enum json_pieces_form form, size_t limit_bytes,
	json_pieces_fn *on_value, void *context);
void json_pieces_deinit(struct json_pieces *p); /* fine on a zeroed struct */
/*
 * Takes the next SIZE bytes. Returns -EBADMSG if they cannot be of this form, -E2BIG if a list's
 * object without its items is over 64 KB, -ENOMEM, or what on_value() returned.
 */
int json_pieces_take(struct json_pieces *p, const void *bytes, size_t size);
/* Whether the bytes may end here. */
bool json_pieces_is_whole(const struct json_pieces *p);
