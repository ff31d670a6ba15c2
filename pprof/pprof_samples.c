/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/pprof_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "pprof/wire.h"

enum {
	SAMPLE_FIELD = 2,
	LOCATION_FIELD = 1,
	VALUE_FIELD = 2,
	LABEL_FIELD = 3,
	MAX_SAMPLES = 8 << 20,
	MAX_LOCATIONS = 16 << 20, /* of all stacks */
	MAX_LABELS = 1 << 20, /* of all sets */
	MAX_LABEL_BYTES = 64 << 20,
};

/* While samples are decoded. */
struct samples_reader {
	struct pprof_samples *s;
	const struct pprof_samples_known *known;
	struct cursor last_stack; /* the only field of the last stack; empty = none, or several */
	bool shares_stack; /* the sample has that of the one before, so far */
};

/* ---- stacks --------------------------------------------------------------------------------- */

static bool samples_equal(const struct cursor *a, const struct cursor *b)
{
	size_t size = (size_t)(a->end - a->at);

	return size == (size_t)(b->end - b->at) && !memcmp(a->at, b->at, size);
}

static int samples_add_location(struct samples_reader *r, uint64_t id)
{
	struct pprof_samples *s = r->s;
	struct pprof_sample_part *stack = &s->stacks[s->stack_count - 1];
	uint64_t index;

	if (stack->count++ >= PPROF_MAX_FRAMES)
		return 0;
	if (!pprof_ids_get(r->known->locations, id, &index))
		return -EBADMSG;
	s->locations[s->location_count++] = (uint32_t)index;
	return 0;
}

/* The locations of one field, packed or not. */
static int samples_add_locations(struct samples_reader *r, struct wire_field *f)
{
	struct pprof_samples *s = r->s;
	struct cursor *c = &f->bytes;
	size_t most = f->wire == WIRE_BYTES ? (size_t)(c->end - c->at) : 1;
	int err;

	if (f->wire != WIRE_BYTES && f->wire != WIRE_NUMBER)
		return -EBADMSG;
	err = array_reserve(s->locations, s->location_capacity,
		s->location_count + MIN(most, (size_t)PPROF_MAX_FRAMES), MAX_LOCATIONS);
	if (!err && f->wire == WIRE_NUMBER)
		err = samples_add_location(r, f->value);
	while (!err && f->wire == WIRE_BYTES && c->at < c->end)
		err = samples_add_location(r, wire_number(c)) ?: c->bad ? -EBADMSG : 0;
	return err;
}

static int samples_begin_stack(struct samples_reader *r)
{
	struct pprof_samples *s = r->s;
	int err = array_reserve(s->stacks, s->stack_capacity, s->stack_count + 1, MAX_SAMPLES);

	if (err)
		return err;
	s->stacks[s->stack_count++] =
		(struct pprof_sample_part){ .first = (uint32_t)s->location_count };
	r->last_stack = cursor_over(NULL, 0);
	return 0;
}

/* The sample has more than the stack that it was to share. */
static int samples_unshare_stack(struct samples_reader *r)
{
	struct wire_field before = { .wire = WIRE_BYTES, .bytes = r->last_stack };

	return samples_begin_stack(r) ?: samples_add_locations(r, &before);
}

/* FIRST: the sample has no locations so far. A stack is one field, but need not be. */
static int samples_add_stack(struct samples_reader *r, struct wire_field *f, bool first)
{
	const bool whole = first && f->wire == WIRE_BYTES;
	const struct cursor bytes = whole ? f->bytes : cursor_over(NULL, 0);
	int err;

	if (whole && cursor_left(&bytes) && samples_equal(&bytes, &r->last_stack)) {
		r->shares_stack = true;
		return 0;
	}
	err = first ? samples_begin_stack(r) : r->shares_stack ? samples_unshare_stack(r) : 0;
	if (!err)
		err = samples_add_locations(r, f);
	r->shares_stack = false;
	r->last_stack = bytes;
	return err;
}

/* ---- labels --------------------------------------------------------------------------------- */

static bool samples_decode_label(
	const struct samples_reader *r, struct cursor c, struct pprof_sample_label *ret_label)
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
	return !c.bad && (uint64_t)ret_label->key < r->known->strings &&
	       (uint64_t)ret_label->str < r->known->strings;
}

static int samples_decode_set(struct samples_reader *r, struct cursor c)
{
	struct pprof_samples *s = r->s;
	struct pprof_sample_part *set = &s->sets[s->set_count - 1];
	struct wire_field f;
	int err = 0;

	while (!err && wire_next(&c, &f)) {
		if (f.number != LABEL_FIELD || set->count++ >= PPROF_MAX_LABELS)
			continue;
		err = array_reserve(s->labels, s->label_capacity, s->label_count + 1, MAX_LABELS);
		if (!err && !samples_decode_label(r, f.bytes, &s->labels[s->label_count++]))
			err = -EBADMSG;
	}
	s->most_labels = MAX(s->most_labels, (size_t)set->count);
	set->count = MIN(set->count, (uint32_t)PPROF_MAX_LABELS);
	return err;
}

/* C has all labels of a sample, and maybe more fields. */
static int samples_find_set(struct samples_reader *r, struct cursor c, uint32_t *ret_set)
{
	struct pprof_samples *s = r->s;
	int err = intern_bytes(&s->encoded, c.at, (size_t)(c.end - c.at), ret_set);

	if (err || *ret_set < s->set_count)
		return err;
	err = array_reserve(s->sets, s->set_capacity, s->set_count + 1, MAX_SAMPLES);
	if (err)
		return err;
	s->sets[s->set_count++] = (struct pprof_sample_part){ .first = (uint32_t)s->label_count };
	return samples_decode_set(r, c);
}

/* ---- samples -------------------------------------------------------------------------------- */

static bool samples_add_values(struct samples_reader *r, struct wire_field *f, size_t *count)
{
	struct pprof_samples *s = r->s;
	int64_t *values = &s->values[s->count * s->value_count];
	struct cursor *c = &f->bytes;

	if (f->wire != WIRE_BYTES && f->wire != WIRE_NUMBER)
		return false;
	if (f->wire == WIRE_NUMBER && (*count)++ < s->value_count)
		values[*count - 1] = (int64_t)f->value;
	while (f->wire == WIRE_BYTES && c->at < c->end && !c->bad) {
		uint64_t number = wire_number(c);

		if ((*count)++ < s->value_count)
			values[*count - 1] = (int64_t)number;
	}
	return f->wire == WIRE_NUMBER || !c->bad;
}

static int samples_make_room(struct pprof_samples *s)
{
	return array_reserve(s->rows, s->capacity, s->count + 1, MAX_SAMPLES)
		       ?: array_reserve(s->values, s->value_capacity,
				  (s->count + 1) * s->value_count, SIZE_MAX / 8);
}

/* Adds a stack without locations, unless the last one is such. */
static int samples_add_no_stack(struct samples_reader *r)
{
	struct pprof_samples *s = r->s;

	if (s->stack_count && !s->stacks[s->stack_count - 1].count)
		return 0;
	return samples_begin_stack(r);
}

/* LABELS: from the first label on, which is the end if there are no other fields behind. */
static int samples_decode_fields(
	struct samples_reader *r, struct cursor c, struct cursor *ret_labels, bool *ret_has_stack)
{
	const struct cursor all = c;
	bool in_labels = false;
	size_t values = 0;
	struct wire_field f;
	int err = 0;

	*ret_has_stack = false;
	*ret_labels = cursor_over(c.end, 0);
	for (const uint8_t *at = c.at; !err && wire_next(&c, &f); at = c.at) {
		if (f.number == LABEL_FIELD) {
			err = f.wire == WIRE_BYTES ? 0 : -EBADMSG;
			if (!in_labels)
				*ret_labels = cursor_over(at, (size_t)(c.end - at));
			in_labels = true;
			continue;
		}
		if (in_labels)
			*ret_labels = all;
		if (f.number == LOCATION_FIELD) {
			err = samples_add_stack(r, &f, !*ret_has_stack);
			*ret_has_stack = true;
		} else if (f.number == VALUE_FIELD) {
			err = samples_add_values(r, &f, &values) ? 0 : -EBADMSG;
		}
	}
	if (err)
		return err;
	return c.bad || values != r->known->types ? -EBADMSG : 0;
}

static int samples_decode(struct samples_reader *r, struct cursor c)
{
	struct pprof_samples *s = r->s;
	struct pprof_sample_row row;
	struct cursor labels;
	bool has_stack;
	int err;

	err = samples_make_room(s);
	if (!err)
		err = samples_decode_fields(r, c, &labels, &has_stack);
	if (!err && !has_stack)
		err = samples_add_no_stack(r);
	if (!err)
		err = samples_find_set(r, labels, &row.labels);
	if (err)
		return err;
	row.stack = (uint32_t)s->stack_count - 1;
	s->most_locations = MAX(s->most_locations, (size_t)s->stacks[row.stack].count);
	s->rows[s->count++] = row;
	return 0;
}

/* The table has what fits, `most_locations` what there was. */
static void samples_cut_stacks(struct pprof_samples *s)
{
	for (size_t i = 0; i < s->stack_count; i++)
		s->stacks[i].count = MIN(s->stacks[i].count, (uint32_t)PPROF_MAX_FRAMES);
}

static int samples_begin(struct pprof_samples *s, const struct pprof_samples_known *known)
{
	int err;

	*s = (struct pprof_samples){ .value_count = MIN(known->types, (size_t)PPROF_MAX_TYPES) };
	err = intern_init(&s->encoded, MAX_SAMPLES, MAX_LABEL_BYTES)
		      ?: array_reserve(s->sets, s->set_capacity, 1, MAX_SAMPLES);
	if (!err)
		s->sets[s->set_count++] = (struct pprof_sample_part){ 0 };
	return err;
}

int pprof_samples_init(
	struct pprof_samples *s, struct cursor fields, const struct pprof_samples_known *known)
{
	struct samples_reader r = { .s = s, .known = known, .last_stack = cursor_over(NULL, 0) };
	struct wire_field f;
	int err = samples_begin(s, known);

	while (!err && wire_next(&fields, &f)) {
		if (f.number == SAMPLE_FIELD)
			err = f.wire == WIRE_BYTES ? samples_decode(&r, f.bytes) : -EBADMSG;
	}
	if (!err && fields.bad)
		err = -EBADMSG;
	if (err)
		pprof_samples_deinit(s);
	else
		samples_cut_stacks(s);
	return err;
}

void pprof_samples_deinit(struct pprof_samples *s)
{
	free(s->rows);
	free(s->values);
	free(s->stacks);
	free(s->sets);
	free(s->locations);
	free(s->labels);
	intern_deinit(&s->encoded);
	*s = (struct pprof_samples){ 0 };
}
