/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions are kept as ascending, disjoint pieces, so that a lookup is one binary search. New
 * lines are first overlaid on each other, later ones on top, and the result is overlaid on the
 * existing pieces. Both steps are sweeps by address. What a later line leaves uncovered of an
 * earlier one stays, because interpreters write one big entry with stubs inside it.
 */
#include "symbolizer/perf_map/perf_map_pieces.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

void pieces_deinit(struct pieces *p)
{
	free(p->items);
}

static int pieces_add(struct pieces *to, const struct piece *piece)
{
	struct piece *last = to->count ? &to->items[to->count - 1] : NULL;
	int err;

	/* Rejoins adjacent parts of one line. */
	if (last && last->name == piece->name && piece_end(last) == piece->start) {
		last->size += piece->size;
		return 0;
	}
	err = array_reserve(to->items, to->capacity, to->count + 1, PIECES_LIMIT);
	if (!err)
		to->items[to->count++] = *piece;
	return err;
}

/* Returns the part of P in [START, END). */
static struct piece cut(const struct piece *p, uint64_t start, uint64_t end)
{
	return (struct piece){
		.start = start,
		.size = (uint32_t)(end - start),
		.before = p->before + (uint32_t)(start - p->start),
		.name = p->name,
	};
}

/* Name offsets grow with each line, so the greater one is the later line. */
static int compare_starts(const void *a, const void *b)
{
	const struct piece *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name;
}

/* Heap of the lines that cover the sweep's address; the latest, which wins, is on top. */
struct cover {
	const struct piece **items;
	size_t count;
};

static void cover_push(struct cover *c, const struct piece *p)
{
	size_t i = c->count++;

	for (; i > 0 && c->items[(i - 1) / 2]->name < p->name; i = (i - 1) / 2)
		c->items[i] = c->items[(i - 1) / 2];
	c->items[i] = p;
}

static void cover_pop(struct cover *c)
{
	const struct piece *last = c->items[--c->count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < c->count) {
		if (child + 1 < c->count && c->items[child + 1]->name > c->items[child]->name)
			child++;
		if (c->items[child]->name <= last->name)
			break;
		c->items[i] = c->items[child];
		i = child;
	}
	c->items[i] = last;
}

/*
 * Emits what is visible from *AT to LIMIT, where the next line begins. Expired lines are popped
 * once they reach the top; below it they are harmless.
 */
static int perf_map_pieces_sweep(struct cover *c, uint64_t *at, uint64_t limit, struct pieces *out)
{
	while (c->count && *at < limit) {
		const struct piece *top = c->items[0];
		uint64_t end = MIN(piece_end(top), limit);

		if (piece_end(top) > *at) {
			struct piece visible = cut(top, *at, end);
			int err = pieces_add(out, &visible);

			if (err)
				return err;
			*at = end;
		}
		if (piece_end(top) <= *at)
			cover_pop(c);
	}
	*at = limit;
	return 0;
}

int pieces_flatten(struct pieces *lines, struct pieces *out)
{
	autofree const struct piece **items = calloc(lines->count + 1, sizeof(*items));
	struct cover c = { .items = items };
	uint64_t at = 0;
	int err = 0;

	if (!items)
		return -ENOMEM;
	qsort(lines->items, lines->count, sizeof(*lines->items), compare_starts);
	for (size_t i = 0; i < lines->count && !err; i++) {
		err = perf_map_pieces_sweep(&c, &at, lines->items[i].start, out);
		cover_push(&c, &lines->items[i]);
	}
	return err ? err : perf_map_pieces_sweep(&c, &at, UINT64_MAX, out);
}

/*
 * Emits the parts of P that TOP leaves uncovered, and TOP's pieces up to the end of P; *NEXT is the
 * first piece of TOP that may cover P.
 */
static int add_uncovered(
	const struct piece *p, const struct pieces *top, size_t *next, struct pieces *out)
{
	uint64_t at = p->start, end = piece_end(p);
	int err = 0;

	while (*next < top->count && piece_end(&top->items[*next]) <= at) {
		err = pieces_add(out, &top->items[(*next)++]);
		if (err)
			return err;
	}
	while (*next < top->count && top->items[*next].start < end && !err) {
		const struct piece *cover = &top->items[*next];

		if (cover->start > at) {
			struct piece visible = cut(p, at, cover->start);

			err = pieces_add(out, &visible);
		}
		at = MAX(at, piece_end(cover));
		if (at > end)
			return err; /* reaches into the next piece: emitted then */
		if (!err)
			err = pieces_add(out, &top->items[(*next)++]);
	}
	if (!err && at < end) {
		struct piece visible = cut(p, at, end);

		err = pieces_add(out, &visible);
	}
	return err;
}

int pieces_lay_over(const struct pieces *bottom, const struct pieces *top, struct pieces *out)
{
	size_t next = 0;
	int err = array_reserve(out->items, out->capacity,
		MIN(bottom->count + top->count, PIECES_LIMIT), PIECES_LIMIT);

	for (size_t i = 0; i < bottom->count && !err; i++)
		err = add_uncovered(&bottom->items[i], top, &next, out);
	for (; next < top->count && !err; next++)
		err = pieces_add(out, &top->items[next]);
	return err;
}
