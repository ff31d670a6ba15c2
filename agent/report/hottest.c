/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/functions.h"
#include "agent/report/stacks.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum { MAX_FUNCTIONS = 1 << 22 };

DEFINE_AUTO(stacks);

struct weight {
	uint64_t self_count, total_count;
	uint64_t counted_in; /* number (from 1) of the last sample in total_count */
};

struct hottest {
	struct functions functions;
	struct weight *weights; /* by function */
	size_t capacity;
};

static void hottest_deinit(struct hottest *h)
{
	functions_deinit(&h->functions);
	free(h->weights);
}

/* Makes room for all functions known so far, zeroed. */
static int hottest_grow(struct hottest *h)
{
	size_t need = functions_count(&h->functions) + 1, before = h->capacity;
	int err = array_reserve(h->weights, h->capacity, need, MAX_FUNCTIONS);

	if (err)
		return err;
	for (size_t i = before; i < h->capacity; i++)
		h->weights[i] = (struct weight){ 0 };
	return 0;
}

static void count_frame(struct hottest *h, uint32_t frame, uint64_t sample_number, uint64_t count)
{
	size_t function_count;
	const uint32_t *functions = functions_of_frame(&h->functions, frame, &function_count);

	for (size_t i = 0; i < function_count; i++) {
		struct weight *weight = &h->weights[functions[i]];

		if (weight->counted_in != sample_number)
			weight->total_count += count;
		weight->counted_in = sample_number;
	}
}

static int hottest_count_samples(
	struct hottest *h, struct stacks *stacks, const struct profile *profile)
{
	const struct stack_facts *facts;
	uint32_t self;
	int err;

	for (size_t n = 0; n < profile_sample_count(profile); n++) {
		const struct profile_sample *sample = profile_sample_at(profile, n);

		if (sample->type != SAMPLE_TYPE_TICKS)
			continue;
		err = stacks_get(stacks, sample, &facts) ?: hottest_grow(h);
		if (err)
			return err;
		self = functions_innermost(&h->functions, stacks->ids[facts->first]);
		h->weights[self].self_count += sample->count;
		for (uint32_t i = 0; i < facts->count; i++)
			count_frame(h, stacks->ids[facts->first + i], n + 1, sample->count);
	}
	return 0;
}

static int hotter(const void *a, const void *b, void *context)
{
	const struct hottest *h = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct weight *f = &h->weights[x], *g = &h->weights[y];

	if (f->self_count != g->self_count)
		return f->self_count > g->self_count ? -1 : 1;
	if (f->total_count != g->total_count)
		return f->total_count > g->total_count ? -1 : 1;
	return strcmp(functions_name(&h->functions, x), functions_name(&h->functions, y));
}

/* Names are foreign: control characters could drive the terminal. */
static char *clean_copy(const char *text)
{
	char *copy = strdup(text);

	if (copy)
		utf8_clean(copy, strlen(copy));
	return copy;
}

static int make_list(struct hottest *h, struct report_hot **ret_list, size_t max, size_t *ret_count)
{
	size_t all = functions_count(&h->functions), count = MIN(all, max);
	autofree uint32_t *order = calloc(all + 1, sizeof(*order));
	struct report_hot *list;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		order[i] = (uint32_t)i + 1;
	qsort_r(order, all, sizeof(*order), hotter, h);
	list = calloc(count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		list[i].name = clean_copy(functions_name(&h->functions, order[i]));
		list[i].module = clean_copy(functions_module(&h->functions, order[i]));
		list[i].self_count = h->weights[order[i]].self_count;
		list[i].total_count = h->weights[order[i]].total_count;
		if (!list[i].name || !list[i].module) {
			report_hottest_free(list, i + 1);
			return -ENOMEM;
		}
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

int report_hottest(const struct report_sources *sources, struct report_hot **ret_list, size_t max,
	size_t *ret_count)
{
	autocall(hottest_deinit) struct hottest h = { 0 };
	autocall(auto_stacks_destroy) struct stacks *stacks = NULL;
	int err;

	err = functions_init(&h.functions);
	if (err)
		return err;
	err = stacks_create(sources, NULL, functions_add, &h.functions, &stacks);
	if (err)
		return err;
	err = hottest_count_samples(&h, stacks, sources->profile);
	if (err)
		return err;
	return make_list(&h, ret_list, max, ret_count);
}

void report_hottest_free(struct report_hot *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((char *)list[i].name);
		free((char *)list[i].module);
	}
	free(list);
}
