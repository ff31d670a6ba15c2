/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a profile is encoded that others are compressed and merged with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "pprof/records.h"

/* While locations are sorted. */
struct location_order {
	const struct pprof *p;
	const uint32_t *ranks; /* of mappings, by id */
};

void pprof_order_deinit(struct pprof_order *order)
{
	free(take(order->samples));
	free(take(order->locations));
	free(take(order->location_ids));
	free(take(order->functions));
	free(take(order->function_ids));
}

/* The ids of a table, from the first to the last. */
static uint32_t *sort_ids(const struct intern *table)
{
	uint32_t *ids = calloc(table->count, sizeof(*ids));

	for (uint32_t i = 0; ids && i + 1 < table->count; i++)
		ids[i] = i + 1;
	return ids;
}

/* Numbers by id; the first of IDS gets 1. */
static uint32_t *sort_numbers(const struct intern *table, const uint32_t *ids)
{
	uint32_t *numbers = calloc(table->count, sizeof(*numbers));

	for (uint32_t i = 0; numbers && i + 1 < table->count; i++)
		numbers[ids[i]] = i + 1;
	return numbers;
}

/* ---- locations ------------------------------------------------------------------------------ */

static int compare_mappings(const void *left, const void *right, void *context)
{
	const struct pprof *p = context;
	const uint32_t ids[] = { *(const uint32_t *)left, *(const uint32_t *)right };
	const struct mapping_record *a = (const void *)intern_text(&p->mappings, ids[0]);
	const struct mapping_record *b = (const void *)intern_text(&p->mappings, ids[1]);
	int order = strcmp(intern_text(&p->strings, a->file), intern_text(&p->strings, b->file));

	if (!order)
		order = strcmp(intern_text(&p->strings, a->build_id),
			intern_text(&p->strings, b->build_id));
	if (!order && a->start != b->start)
		order = a->start < b->start ? -1 : 1;
	return order ?: ids[0] < ids[1] ? -1 : ids[0] > ids[1];
}

static int compare_locations(const void *left, const void *right, void *context)
{
	const struct location_order *order = context;
	const uint32_t ids[] = { *(const uint32_t *)left, *(const uint32_t *)right };
	const struct location_record *a = (const void *)intern_text(&order->p->locations, ids[0]);
	const struct location_record *b = (const void *)intern_text(&order->p->locations, ids[1]);

	if (a->mapping != b->mapping)
		return order->ranks[a->mapping] < order->ranks[b->mapping] ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return ids[0] < ids[1] ? -1 : ids[0] > ids[1];
}

static int sort_locations(const struct pprof *p, struct pprof_order *order)
{
	autofree uint32_t *mappings = sort_ids(&p->mappings), *ranks = NULL;

	order->locations = sort_ids(&p->locations);
	if (!mappings || !order->locations)
		return -ENOMEM;
	qsort_r(mappings, p->mappings.count - 1, sizeof(*mappings), compare_mappings, (void *)p);
	ranks = sort_numbers(&p->mappings, mappings);
	if (!ranks)
		return -ENOMEM;
	qsort_r(order->locations, p->locations.count - 1, sizeof(uint32_t), compare_locations,
		&(struct location_order){ p, ranks });
	order->location_ids = sort_numbers(&p->locations, order->locations);
	return order->location_ids ? 0 : -ENOMEM;
}

/* ---- functions ------------------------------------------------------------------------------ */

/* As the sorted locations have them; those of none are the last. */
static void number_functions(const struct pprof *p, struct pprof_order *order)
{
	uint32_t count = 0, *numbers = order->function_ids;

	for (uint32_t i = 0; i + 1 < p->locations.count; i++) {
		const struct location_record *location =
			(const void *)intern_text(&p->locations, order->locations[i]);

		for (uint32_t k = 0; k < location->line_count; k++) {
			uint32_t *number = &numbers[location->lines[k].function];

			*number = *number ?: ++count;
		}
	}
	for (uint32_t id = 1; id < p->functions.count; id++) {
		numbers[id] = numbers[id] ?: ++count;
		order->functions[numbers[id] - 1] = id;
	}
}

static int sort_functions(const struct pprof *p, struct pprof_order *order)
{
	order->functions = calloc(p->functions.count, sizeof(uint32_t));
	order->function_ids = calloc(p->functions.count, sizeof(uint32_t));
	if (!order->functions || !order->function_ids)
		return -ENOMEM;
	number_functions(p, order);
	return 0;
}

/* ---- samples -------------------------------------------------------------------------------- */

static int compare_samples(const void *left, const void *right, void *context)
{
	const struct pprof *p = context;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const uint32_t *numbers = p->order.location_ids;
	uint32_t depth_a, depth_b;
	const uint32_t *stack_a = pprof_stack_of(p, a, &depth_a);
	const uint32_t *stack_b = pprof_stack_of(p, b, &depth_b);

	while (depth_a && depth_b && stack_a[depth_a - 1] == stack_b[depth_b - 1]) {
		depth_a--;
		depth_b--;
	}
	if (depth_a && depth_b)
		return numbers[stack_a[depth_a - 1]] < numbers[stack_b[depth_b - 1]] ? -1 : 1;
	if (depth_a != depth_b)
		return depth_a < depth_b ? -1 : 1;
	return a < b ? -1 : a > b;
}

int pprof_sort(struct pprof *p)
{
	int err;

	pprof_order_deinit(&p->order);
	err = sort_locations(p, &p->order) ?: sort_functions(p, &p->order);
	if (!err && !(p->order.samples = sort_ids(&p->samples)))
		err = -ENOMEM;
	if (err) {
		pprof_order_deinit(&p->order);
		return err;
	}
	qsort_r(p->order.samples, p->samples.count - 1, sizeof(uint32_t), compare_samples, p);
	return 0;
}
