/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/stacks.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_FUNCTIONS = 1 << 22,
	MAX_TEXT_BYTES = 256 << 20,
};

DEFINE_AUTO(stacks);

/* A function is its name and its module: `NAME NUL MODULE` in the table of names. */
struct function {
	uint64_t self_count, total_count;
	uint64_t counted_in; /* the last sample it was added to the total for, from 1 */
};

struct hottest {
	struct intern names;
	struct function *functions; /* by number in names */
	size_t function_capacity;
	struct intern frames; /* runs of function numbers, innermost first; the stacks' ids */
};

static void hottest_deinit(struct hottest *h)
{
	intern_deinit(&h->names);
	intern_deinit(&h->frames);
	free(h->functions);
}

static int function_of(
	struct hottest *h, const char *name, const char *module, uint32_t *ret_function)
{
	size_t name_size = strlen(name) + 1, size = name_size + strlen(module);
	size_t known = h->names.count;
	autofree char *key = malloc(size + 1);
	uint32_t number;
	int err;

	if (!key)
		return -ENOMEM;
	memcpy(key, name, name_size);
	memcpy(key + name_size, module, size + 1 - name_size);
	err = array_reserve(h->functions, h->function_capacity, known + 1, MAX_FUNCTIONS);
	if (err)
		return err;
	err = intern_bytes(&h->names, key, size, &number);
	if (err)
		return err;
	if (number == known)
		h->functions[number] = (struct function){ 0 };
	*ret_function = number;
	return 0;
}

static int add_frame(void *context, const struct symbolized *frame, uint32_t *ret_id)
{
	const char *module = frame->mapping ? frame->mapping->content.file : "";
	struct hottest *h = context;
	uint32_t functions[INDEX_MAX_FRAMES];
	size_t count = frame->line_count;
	int err;

	for (size_t i = 0; i < count; i++) {
		err = function_of(h, frame->lines[i].name, module, &functions[i]);
		if (err)
			return err;
	}
	if (count == 0) {
		err = function_of(h, "[unknown]", module, &functions[count++]);
		if (err)
			return err;
	}
	return intern_bytes(&h->frames, functions, count * sizeof(*functions), ret_id);
}

static void count_frame(struct hottest *h, uint32_t frame, uint64_t sample_number, uint64_t count)
{
	const uint32_t *functions = (const void *)intern_text(&h->frames, frame);
	size_t function_count = intern_size(&h->frames, frame) / sizeof(*functions);

	for (size_t i = 0; i < function_count; i++) {
		struct function *function = &h->functions[functions[i]];

		if (function->counted_in != sample_number)
			function->total_count += count;
		function->counted_in = sample_number;
	}
}

static int count_samples(struct hottest *h, struct stacks *stacks, const struct profile *profile)
{
	const struct stack_facts *facts;
	const uint32_t *leaf;
	int err;

	for (size_t n = 0; n < profile_sample_count(profile); n++) {
		const struct profile_sample *sample = profile_sample_at(profile, n);

		err = stacks_get(stacks, sample, &facts);
		if (err)
			return err;
		leaf = (const void *)intern_text(&h->frames, stacks->ids[facts->first]);
		h->functions[*leaf].self_count += sample->count;
		for (uint32_t i = 0; i < facts->count; i++)
			count_frame(h, stacks->ids[facts->first + i], n + 1, sample->count);
	}
	return 0;
}

static int hotter(const void *a, const void *b, void *context)
{
	const struct hottest *h = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct function *f = &h->functions[x], *g = &h->functions[y];

	if (f->self_count != g->self_count)
		return f->self_count > g->self_count ? -1 : 1;
	if (f->total_count != g->total_count)
		return f->total_count > g->total_count ? -1 : 1;
	return strcmp(intern_text(&h->names, x), intern_text(&h->names, y));
}

static int make_list(struct hottest *h, struct report_hot **ret_list, size_t max, size_t *ret_count)
{
	size_t all = h->names.count - 1, count = MIN(all, max);
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
		const char *name = intern_text(&h->names, order[i]);

		list[i].name = strdup(name);
		list[i].module = strdup(name + strlen(name) + 1);
		list[i].self_count = h->functions[order[i]].self_count;
		list[i].total_count = h->functions[order[i]].total_count;
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

	err = intern_init(&h.names, MAX_FUNCTIONS, MAX_TEXT_BYTES);
	if (err)
		return err;
	err = intern_init(&h.frames, MAX_FUNCTIONS, MAX_TEXT_BYTES);
	if (err)
		return err;
	err = stacks_create(sources, NULL, add_frame, &h, &stacks);
	if (err)
		return err;
	err = count_samples(&h, stacks, sources->profile);
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
