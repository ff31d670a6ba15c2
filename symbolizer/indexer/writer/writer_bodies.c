/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/writer/writer_bodies.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/demangle.h"
#include "symbolizer/indexer/writer/writer_state.h"

enum { MAX_CANDIDATES = 1 << 25 };

/* How much is known of a candidate's code: the best one of an entry decides. */
enum candidate_rank {
	CANDIDATE_RANGES, /* of a node */
	CANDIDATE_SIZED, /* a symbol */
	CANDIDATE_SIZELESS,
	CANDIDATE_TYPELESS, /* only a name */
};

/* A name of an entry. */
struct candidate {
	uint32_t low;
	enum candidate_rank rank;
	uint32_t number; /* order in which they came */
	uint32_t high; /* of a symbol: its end, of a sizeless one where it ends at the latest */
	uint32_t first_range, range_count; /* of a node, in the writer's ranges */
	uint32_t linkage, name;
	bool is_resolver;
	bool is_foreign; /* from a debug file, or only a name */
};

struct writer_bodies {
	struct index_writer *w;
	struct writer_part *described; /* by address */
	size_t described_count;
	struct candidate *candidates; /* by entry, the best one of an entry first */
	size_t count, capacity;
	struct writer_part *cold; /* by address */
	size_t cold_count, cold_capacity;
	/* Of the function that is passed on. */
	struct writer_part *parts;
	size_t part_count, part_capacity;
	struct writer_body_name *names;
	size_t name_count, name_capacity;
};

void writer_bodies_destroy(struct writer_bodies *bodies)
{
	if (!bodies)
		return;
	free(bodies->described);
	free(bodies->candidates);
	free(bodies->cold);
	free(bodies->parts);
	free(bodies->names);
	free(bodies);
}

/* Returns true if NAME is that of a part that was moved away: it ends in `.cold` or `.cold.N`. */
static bool name_is_cold(const char *name)
{
	static const char suffix[] = ".cold";
	size_t end = strlen(name), length = sizeof(suffix) - 1;

	while (end && isdigit((unsigned char)name[end - 1]))
		end--;
	if (name[end] && end && name[end - 1] == '.')
		end--;
	else if (name[end])
		return false;
	return end > length && !strncmp(name + end - length, suffix, length);
}

/* ---- what the module's own file describes --------------------------------------------------- */

static int part_by_low(const void *a, const void *b)
{
	const struct writer_part *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static int bodies_copy_described(
	struct writer_bodies *bodies, const struct writer_part *described, size_t count)
{
	if (!count)
		return 0;
	bodies->described = calloc(count, sizeof(*described));
	if (!bodies->described)
		return -ENOMEM;
	memcpy(bodies->described, described, count * sizeof(*described));
	bodies->described_count = count;
	qsort(bodies->described, count, sizeof(*described), part_by_low);
	return 0;
}

/* Sets the end of PART, which a debug file knows. False: it is not described from its start on. */
static bool bodies_confirm_part(const struct writer_bodies *bodies, struct writer_part *part)
{
	const struct writer_part *found = NULL;

	if (bodies->described_count)
		found = bsearch(part, bodies->described, bodies->described_count,
			sizeof(*bodies->described), part_by_low);
	if (found)
		part->high = found->high;
	return found;
}

static bool bodies_confirm_parts(struct writer_bodies *bodies)
{
	for (size_t i = 0; i < bodies->part_count; i++)
		if (!bodies_confirm_part(bodies, &bodies->parts[i]))
			return false;
	return true;
}

/* ---- the moved parts ------------------------------------------------------------------------ */

static int bodies_find_cold(struct writer_bodies *bodies)
{
	const struct index_writer *w = bodies->w;
	int err = 0;

	for (size_t i = 0; i < w->symbol_count && !err; i++) {
		const struct build_symbol *s = &w->symbols[i];
		struct writer_part part = { .low = w->base + s->low, .high = w->base + s->high };

		if (!s->high || !name_is_cold(intern_text(&w->strings, s->name)))
			continue;
		if (s->is_foreign && !bodies_confirm_part(bodies, &part))
			continue;
		err = array_reserve(bodies->cold, bodies->cold_capacity, bodies->cold_count + 1,
			MAX_CANDIDATES);
		if (!err)
			bodies->cold[bodies->cold_count++] = part;
	}
	if (bodies->cold_count)
		qsort(bodies->cold, bodies->cold_count, sizeof(*bodies->cold), part_by_low);
	return err;
}

bool writer_bodies_cold(
	const struct writer_bodies *bodies, uint64_t address, struct writer_part *ret_part)
{
	size_t low = 0, high = bodies->cold_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (bodies->cold[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= bodies->cold[low - 1].high)
		return false;
	*ret_part = bodies->cold[low - 1];
	return true;
}

static bool bodies_begins_cold(const struct writer_bodies *bodies, uint32_t low)
{
	struct writer_part part;

	return writer_bodies_cold(bodies, bodies->w->base + low, &part) &&
	       part.low == bodies->w->base + low;
}

/* ---- candidates ----------------------------------------------------------------------------- */

static int bodies_add(struct writer_bodies *bodies, const struct candidate *candidate)
{
	int err = array_reserve(
		bodies->candidates, bodies->capacity, bodies->count + 1, MAX_CANDIDATES);

	if (err)
		return err;
	bodies->candidates[bodies->count] = *candidate;
	bodies->candidates[bodies->count].number = (uint32_t)bodies->count;
	bodies->count++;
	return 0;
}

/* The ranges of a node follow each other; the entry is in the first one that is not a moved part.
 */
static int bodies_add_node(struct writer_bodies *bodies, size_t first, size_t count)
{
	const struct index_writer *w = bodies->w;
	const struct build_node *node = &w->nodes[w->ranges[first].id];
	size_t entry = first;

	if (node->parent != WRITER_NONE || !node->linkage)
		return 0;
	while (entry < first + count && bodies_begins_cold(bodies, w->ranges[entry].low))
		entry++;
	if (entry == first + count)
		return 0;
	return bodies_add(bodies, &(struct candidate){
					  .low = w->ranges[entry].low,
					  .rank = CANDIDATE_RANGES,
					  .first_range = (uint32_t)first,
					  .range_count = (uint32_t)count,
					  .linkage = node->linkage,
					  .name = node->name,
					  .is_foreign = node->is_foreign,
				  });
}

static int bodies_add_nodes(struct writer_bodies *bodies)
{
	const struct index_writer *w = bodies->w;
	size_t count;
	int err = 0;

	for (size_t i = 0; i < w->range_count && !err; i += count) {
		count = 1;
		while (i + count < w->range_count && w->ranges[i + count].id == w->ranges[i].id)
			count++;
		err = bodies_add_node(bodies, i, count);
	}
	return err;
}

static int bodies_add_symbols(struct writer_bodies *bodies)
{
	const struct index_writer *w = bodies->w;
	int err = 0;

	for (size_t i = 0; i < w->symbol_count && !err; i++) {
		const struct build_symbol *s = &w->symbols[i];
		const char *name = intern_text(&w->strings, s->name);
		struct candidate candidate = {
			.low = s->low,
			.rank = s->high ? CANDIDATE_SIZED : CANDIDATE_SIZELESS,
			.high = s->high ? s->high : s->limit,
			.linkage = s->name,
			.is_resolver = s->is_resolver,
			.is_foreign = s->is_foreign,
		};

		if (s->rank == WRITER_SYMBOL_NOTYPE) {
			candidate.rank = CANDIDATE_TYPELESS;
			candidate.is_foreign = true;
		}
		if (!name_is_cold(name) && !s->is_stub)
			err = bodies_add(bodies, &candidate);
	}
	return err;
}

static int candidate_by_low(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->is_foreign != y->is_foreign)
		return x->is_foreign ? 1 : -1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

int writer_bodies_create(struct index_writer *w, const struct writer_part *described, size_t count,
	struct writer_bodies **ret_bodies)
{
	struct writer_bodies *bodies = calloc(1, sizeof(*bodies));
	int err;

	if (!bodies)
		return -ENOMEM;
	bodies->w = w;
	err = bodies_copy_described(bodies, described, count);
	if (!err)
		err = writer_link_symbols(w);
	if (!err)
		err = bodies_find_cold(bodies);
	if (!err)
		err = bodies_add_nodes(bodies);
	if (!err)
		err = bodies_add_symbols(bodies);
	if (err) {
		writer_bodies_destroy(bodies);
		return err;
	}
	if (bodies->count)
		qsort(bodies->candidates, bodies->count, sizeof(*bodies->candidates),
			candidate_by_low);
	*ret_bodies = bodies;
	return 0;
}

/* ---- one function --------------------------------------------------------------------------- */

static int bodies_add_part(struct writer_bodies *bodies, uint32_t low, uint32_t high)
{
	int err = array_reserve(
		bodies->parts, bodies->part_capacity, bodies->part_count + 1, MAX_CANDIDATES);

	if (!err)
		bodies->parts[bodies->part_count++] = (struct writer_part){
			.low = bodies->w->base + low,
			.high = bodies->w->base + high,
		};
	return err;
}

/* The part with the entry comes first. NEXT is the entry of the next function. */
static int bodies_set_parts(
	struct writer_bodies *bodies, const struct candidate *best, uint32_t next)
{
	const struct interval *ranges;
	int err = 0;

	bodies->part_count = 0;
	if (best->rank == CANDIDATE_SIZELESS)
		return bodies_add_part(bodies, best->low, MIN(best->high, next));
	if (best->rank == CANDIDATE_SIZED)
		return bodies_add_part(bodies, best->low, best->high);
	ranges = &bodies->w->ranges[best->first_range];
	for (size_t i = 0; i < best->range_count && !err; i++)
		if (ranges[i].low == best->low)
			err = bodies_add_part(bodies, ranges[i].low, ranges[i].high);
	for (size_t i = 0; i < best->range_count && !err; i++)
		if (ranges[i].low != best->low)
			err = bodies_add_part(bodies, ranges[i].low, ranges[i].high);
	return err;
}

/*
 * Debug information calls the clone f.part.0 by the name of f. Returns true if candidate NODE has
 * such a name, and one of the COUNT symbols at its address the clone's own.
 */
static bool bodies_is_clone(struct writer_bodies *bodies, const struct candidate *node,
	const struct candidate *all, size_t count)
{
	const struct intern *strings = &bodies->w->strings;
	const char *name = intern_text(strings, node->linkage);
	bool is_clone = false;

	for (size_t i = 0; i < count; i++) {
		const char *symbol = intern_text(strings, all[i].linkage);
		size_t length;

		/* All functions of a file may be at one address, and all its symbols. */
		if (all[i].rank == CANDIDATE_RANGES ||
			!work_spend(writer_work(bodies->w), strlen(symbol) + 1))
			continue;
		if (all[i].linkage == node->linkage)
			return false;
		length = demangle_plain_length(symbol);
		is_clone |=
			symbol[length] && strlen(name) == length && !strncmp(symbol, name, length);
	}
	return is_clone;
}

static int bodies_set_names(struct writer_bodies *bodies, const struct candidate *all, size_t count)
{
	int err = 0;

	bodies->name_count = 0;
	for (size_t i = 0; i < count && !err; i++) {
		if (all[i].rank == CANDIDATE_RANGES && bodies_is_clone(bodies, &all[i], all, count))
			continue;
		err = array_reserve(bodies->names, bodies->name_capacity, bodies->name_count + 1,
			MAX_CANDIDATES);
		if (!err)
			bodies->names[bodies->name_count++] = (struct writer_body_name){
				.linkage = all[i].linkage,
				.name = all[i].name,
				.is_resolver = all[i].is_resolver,
			};
	}
	return err;
}

/* ALL are the COUNT candidates of one entry. */
static int bodies_pass(struct writer_bodies *bodies, const struct candidate *all, size_t count,
	uint32_t next, writer_body_sink *sink, void *context)
{
	struct writer_body body = {
		.entry = bodies->w->base + all->low,
		.has_end = all->rank != CANDIDATE_SIZELESS,
	};
	int err;

	if (all->rank == CANDIDATE_TYPELESS)
		return 0;
	err = bodies_set_parts(bodies, all, next);
	if (!err)
		err = bodies_set_names(bodies, all, count);
	if (err || !bodies->name_count)
		return err;
	body.is_confirmed = !all->is_foreign || bodies_confirm_parts(bodies);
	body.parts = bodies->parts;
	body.part_count = bodies->part_count;
	body.names = bodies->names;
	body.name_count = bodies->name_count;
	return sink(context, &body);
}

int writer_bodies_each(struct writer_bodies *bodies, writer_body_sink *sink, void *context)
{
	const struct candidate *all = bodies->candidates;
	size_t end, next = 0;
	int err = 0;

	for (size_t i = 0; i < bodies->count && !err; i = end) {
		end = i + 1;
		while (end < bodies->count && all[end].low == all[i].low)
			end++;
		while (next < bodies->count && (next < end || all[next].rank == CANDIDATE_TYPELESS))
			next++;
		err = bodies_pass(bodies, all + i, end - i,
			next < bodies->count ? all[next].low : UINT32_MAX, sink, context);
	}
	return err;
}
