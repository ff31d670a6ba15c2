/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/pprof_samples.h"

#include "base/cleanup.h"
#include "pprof/wire.h"

enum { SAMPLE_FIELD = 2 };

void pprof_samples_begin(struct pprof_samples *s, struct cursor fields)
{
	s->rest = fields;
	s->last_stack = cursor_over(NULL, 0);
	s->location_count = s->last_label_count = 0;
}

static bool samples_equal(const struct cursor *a, const struct cursor *b)
{
	size_t size = (size_t)(a->end - a->at);

	return size == (size_t)(b->end - b->at) && !memcmp(a->at, b->at, size);
}

static bool samples_add_numbers(
	struct wire_field *f, uint64_t *numbers, size_t capacity, size_t *count)
{
	struct cursor *c = &f->bytes;

	if (f->wire == WIRE_NUMBER) {
		if ((*count)++ < capacity)
			numbers[*count - 1] = f->value;
		return true;
	}
	if (f->wire != WIRE_BYTES)
		return false;
	while (c->at < c->end && !c->bad) {
		uint64_t number = wire_number(c);

		if ((*count)++ < capacity)
			numbers[*count - 1] = number;
	}
	return !c->bad;
}

/* FIRST: the sample has no locations so far. A stack is one field, but need not be. */
static bool samples_add_stack(struct pprof_samples *s, struct wire_field *f, bool first)
{
	const struct cursor bytes = f->wire == WIRE_BYTES ? f->bytes : cursor_over(NULL, 0);

	if (first && f->wire == WIRE_BYTES && samples_equal(&bytes, &s->last_stack))
		return true;
	s->same_stack = false;
	if (first)
		s->location_count = 0;
	s->last_stack = first ? bytes : cursor_over(NULL, 0);
	return samples_add_numbers(f, s->locations, PPROF_MAX_FRAMES, &s->location_count);
}

static bool samples_decode_label(struct cursor c, struct pprof_sample_label *ret_label)
{
	int64_t *const fields[] = { &ret_label->key, &ret_label->str, &ret_label->num,
		&ret_label->num_unit };
	struct wire_field f;

	*ret_label = (struct pprof_sample_label){ 0 };
	while (wire_next(&c, &f)) {
		if (f.number - 1 >= ARRAY_SIZE(fields))
			continue;
		if (f.wire != WIRE_NUMBER)
			return false;
		*fields[f.number - 1] = (int64_t)f.value;
	}
	return !c.bad;
}

static bool samples_add_label(struct pprof_samples *s, const struct wire_field *f)
{
	size_t at = s->label_count++;

	if (f->wire != WIRE_BYTES)
		return false;
	if (at >= PPROF_MAX_LABELS ||
		(at < s->last_label_count && samples_equal(&f->bytes, &s->last_labels[at])))
		return true;
	s->last_labels[at] = f->bytes;
	s->last_label_count = MAX(s->last_label_count, at + 1);
	return samples_decode_label(f->bytes, &s->labels[at]);
}

static bool samples_decode(struct pprof_samples *s, struct cursor c)
{
	bool first = true, good = true;
	struct wire_field f;

	s->same_stack = true;
	s->value_count = s->label_count = 0;
	while (good && wire_next(&c, &f)) {
		if (f.number == 1) {
			good = samples_add_stack(s, &f, first);
			first = false;
		} else if (f.number == 2) {
			good = samples_add_numbers(
				&f, (uint64_t *)s->values, PPROF_MAX_TYPES, &s->value_count);
		} else if (f.number == 3) {
			good = samples_add_label(s, &f);
		}
	}
	if (first) {
		s->same_stack = !s->location_count;
		s->location_count = 0;
		s->last_stack = cursor_over(NULL, 0);
	}
	return good && !c.bad;
}

bool pprof_samples_next(struct pprof_samples *s)
{
	struct wire_field f;

	while (wire_next(&s->rest, &f)) {
		if (f.number != SAMPLE_FIELD)
			continue;
		if (f.wire != WIRE_BYTES || !samples_decode(s, f.bytes))
			s->rest.bad = true;
		return !s->rest.bad;
	}
	return false;
}
