/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of samples to spans: a link is a trace id (16 bytes) and a span id (8 bytes), which
 * programs write as hexadecimal labels. Labels that are no such ids stay plain attributes;
 * Datadog's, for example, are decimal.
 */
#include <stdbool.h>
#include <string.h>

#include "agent/server/export/remote/otlp_internal.h"

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

struct link_ids {
	uint8_t trace[TRACE_ID_BYTES], span[SPAN_ID_BYTES];
};

static bool link_digit(char letter, uint8_t *ret_digit)
{
	static const char digits[] = "0123456789abcdef";
	const char lower = letter >= 'A' && letter <= 'F' ? (char)(letter - 'A' + 'a') : letter;
	const char *digit = lower ? strchr(digits, lower) : NULL;

	if (digit)
		*ret_digit = (uint8_t)(digit - digits);
	return digit != NULL;
}

/* Returns false if TEXT is not SIZE bytes in hexadecimal, or all of them are 0, which is no id. */
static bool link_read_id(const char *text, uint8_t *ret_bytes, size_t size)
{
	uint8_t any = 0;

	if (strlen(text) != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		uint8_t high, low;

		if (!link_digit(text[2 * i], &high) || !link_digit(text[2 * i + 1], &low))
			return false;
		ret_bytes[i] = (uint8_t)(high << 4 | low);
		any |= ret_bytes[i];
	}
	return any != 0;
}

/* A sample's label KEY, or with a blank in place of its underscore. "" = none. */
static const char *link_label(
	const struct otlp *o, const Perftools__Profiles__Sample *sample, const char *key)
{
	for (size_t i = 0; i < sample->n_label; i++) {
		const char *name = otlp_pprof_text(o, sample->label[i]->key);
		size_t same = strcspn(key, "_");

		if (strlen(name) == strlen(key) && !strncmp(name, key, same) &&
			(name[same] == '_' || name[same] == ' ') &&
			!strcmp(name + same + 1, key + same + 1))
			return otlp_pprof_text(o, sample->label[i]->str);
	}
	return "";
}

int otlp_link(struct otlp *o, const Perftools__Profiles__Sample *sample, int32_t *ret_index)
{
	struct link_ids ids;
	uint32_t number;
	int err;

	*ret_index = 0;
	if (!link_read_id(link_label(o, sample, "trace_id"), ids.trace, sizeof(ids.trace)) ||
		!link_read_id(link_label(o, sample, "span_id"), ids.span, sizeof(ids.span)))
		return 0;
	err = intern_bytes(&o->links, &ids, sizeof(ids), &number);
	if (!err)
		*ret_index = (int32_t)number;
	return err;
}

int otlp_link_table(struct otlp *o, Otlp__ProfilesDictionary *d)
{
	size_t count = o->links.count;
	Otlp__Link *links = otlp_alloc(o, count, sizeof(*links));

	d->link_table = otlp_alloc(o, count, sizeof(*d->link_table));
	if (!links || !d->link_table)
		return o->arena.error;
	/*
	 * Entry 0. Ids of all zeroes would mean "none" as well, and profiles.proto prefers them,
	 * but Parca 0.28 only accepts a message without fields.
	 */
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *ids = (void *)intern_text(&o->links, i);

		otlp__link__init(&links[i]);
		if (i) {
			links[i].trace_id = (ProtobufCBinaryData){ TRACE_ID_BYTES, ids };
			links[i].span_id =
				(ProtobufCBinaryData){ SPAN_ID_BYTES, ids + TRACE_ID_BYTES };
		}
		d->link_table[i] = &links[i];
	}
	d->n_link_table = count;
	return 0;
}
