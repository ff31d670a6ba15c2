/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/json_pieces.h"

#include <errno.h>
#include <string.h>

enum {
	DEPTH_LIMIT = 128, /* a pod has about fifteen */
	REST_BYTES = 64 << 10,
	DEPTH_OF_ITEMS = 2,
	DEPTH_OF_ARRAY = 1,
};

void json_pieces_init(struct json_pieces *p, enum json_pieces_form form, size_t limit_bytes,
	json_pieces_fn *on_value, void *context)
{
	*p = (struct json_pieces){ .form = form, .on_value = on_value, .context = context };
	buffer_init(&p->value, limit_bytes);
	buffer_init(&p->rest, REST_BYTES);
}

void json_pieces_deinit(struct json_pieces *p)
{
	buffer_deinit(&p->value);
	buffer_deinit(&p->rest);
}

static bool json_pieces_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* ---- bytes to where they belong ------------------------------------------------------------- */

/* A value over its limit is no error: the next one is another's. */
static int json_pieces_keep(struct json_pieces *p, const char *from, const char *to)
{
	size_t size = (size_t)(to - from);

	if (!size)
		return 0;
	if (!p->in_value)
		return buffer_append(&p->rest, from, size);
	if (p->skips)
		return 0;
	if (size > p->value.limit - p->value.size) {
		p->skips = true;
		p->value.size = 0;
		return 0;
	}
	return buffer_append(&p->value, from, size);
}

static int json_pieces_end_value(struct json_pieces *p)
{
	int err = 0;

	p->in_value = false;
	p->values++;
	if (p->skips)
		p->too_large++;
	else
		err = p->on_value(p->context, p->value.bytes, p->value.size);
	p->skips = false;
	p->value.size = 0;
	return err;
}

/* Whether REST ends in `"items":`, so that an array which begins now is the list's. */
static bool json_pieces_is_at_items(const struct json_pieces *p)
{
	static const char key[] = "\"items\"";
	const char *text = (const char *)p->rest.bytes;
	size_t at = p->rest.size;

	while (at && json_pieces_is_space(text[at - 1]))
		at--;
	if (!at || text[--at] != ':')
		return false;
	while (at && json_pieces_is_space(text[at - 1]))
		at--;
	return at >= strlen(key) && !memcmp(text + at - strlen(key), key, strlen(key));
}

/* ---- brackets ------------------------------------------------------------------------------- */

static unsigned int json_pieces_depth_outside(const struct json_pieces *p)
{
	return p->form == JSON_PIECES_ITEMS   ? DEPTH_OF_ITEMS
	       : p->form == JSON_PIECES_ARRAY ? DEPTH_OF_ARRAY
					      : 0;
}

static bool json_pieces_begins_value(const struct json_pieces *p)
{
	return !p->in_value && p->depth == json_pieces_depth_outside(p) &&
	       (p->form == JSON_PIECES_VALUES || p->in_items);
}

static bool json_pieces_begins_items(const struct json_pieces *p, char bracket)
{
	if (bracket != '[')
		return false;
	if (p->form == JSON_PIECES_ARRAY)
		return !p->depth;
	return p->form == JSON_PIECES_ITEMS && p->depth == 1 && json_pieces_is_at_items(p);
}

/* Parsers are recursive: a value that is too deep is left out as one that is too large. */
static int json_pieces_descend(struct json_pieces *p)
{
	if (++p->depth <= DEPTH_LIMIT)
		return 0;
	if (!p->in_value)
		return -EBADMSG;
	p->skips = true;
	p->value.size = 0;
	return 0;
}

/* FROM: the first byte that is not kept yet. AT: the bracket, which what comes after it keeps. */
static int json_pieces_open(struct json_pieces *p, const char **from, const char *at)
{
	int err;

	if (p->ended)
		return -EBADMSG;
	if (p->in_value)
		return json_pieces_descend(p);
	err = json_pieces_keep(p, *from, at);
	*from = at;
	if (err)
		return err;
	if (json_pieces_begins_value(p)) {
		if (*at != '{')
			return -EBADMSG;
		p->in_value = true;
	} else if (json_pieces_begins_items(p, *at)) {
		p->in_items = true;
	}
	return json_pieces_descend(p);
}

static int json_pieces_close(struct json_pieces *p, const char **from, const char *at)
{
	int err = 0;

	if (!p->depth)
		return -EBADMSG;
	p->depth--;
	if (p->in_value && p->depth == json_pieces_depth_outside(p)) {
		err = json_pieces_keep(p, *from, at + 1);
		*from = at + 1;
		return err ? err : json_pieces_end_value(p);
	}
	if (p->in_items && p->depth < json_pieces_depth_outside(p))
		p->in_items = false;
	p->ended = p->form != JSON_PIECES_VALUES && !p->depth;
	return 0;
}

/* What is between values: white space, and in a list commas, of which none is kept. */
static int json_pieces_between(struct json_pieces *p, const char **from, const char *at)
{
	bool is_comma = *at == ',' && p->in_items;
	int err = json_pieces_keep(p, *from, at);

	*from = at + 1;
	return !is_comma && !json_pieces_is_space(*at) ? -EBADMSG : err;
}

/* Only an array is in brackets of its own. */
static bool json_pieces_can_open(const struct json_pieces *p, char bracket)
{
	return p->depth || (bracket == '[') == (p->form == JSON_PIECES_ARRAY);
}

static int json_pieces_byte(struct json_pieces *p, const char **from, const char *at)
{
	bool outside = !p->in_value && (p->ended || !p->depth || p->in_items);

	if (p->in_string) {
		p->in_string = p->escaped || *at != '"';
		p->escaped = !p->escaped && *at == '\\';
		return 0;
	}
	if (*at == '{' || *at == '[')
		return json_pieces_can_open(p, *at) ? json_pieces_open(p, from, at) : -EBADMSG;
	if (*at == '}' || *at == ']')
		return json_pieces_close(p, from, at);
	if (outside)
		return json_pieces_between(p, from, at);
	p->in_string = *at == '"';
	return 0;
}

int json_pieces_take(struct json_pieces *p, const void *bytes, size_t size)
{
	const char *from = bytes, *end = from + size;
	int err = p->error;

	for (const char *at = from; !err && at < end; at++)
		err = json_pieces_byte(p, &from, at);
	if (!err)
		err = json_pieces_keep(p, from, end);
	p->error = err;
	return err;
}

bool json_pieces_is_whole(const struct json_pieces *p)
{
	if (p->error || p->depth || p->in_string)
		return false;
	return p->form == JSON_PIECES_VALUES || p->ended;
}
