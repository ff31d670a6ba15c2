/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_figures.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"

enum { MAX_NAMES = 1 << 20, MAX_NAME_BYTES = 1 << 20 };

/* A function, as long as a window has calls of it. */
struct history_function {
	char *text; /* probe, function and binary, each with its NUL; NULL = unused place */
	size_t size;
	uint64_t hash;
	uint32_t windows; /* that have calls of it */
};

struct history_entry {
	uint32_t function; /* place in latency_history.functions */
	uint32_t bucket_count;
	uint64_t calls, total_ns, max_ns;
	struct latency_bucket *buckets; /* ascending, in the window's memory */
};

struct history_window {
	int64_t time_ms, duration_ms;
	struct history_entry *entries; /* that with the longest total time first */
	size_t entry_count;
	struct latency_bucket *buckets; /* of all entries */
	size_t bytes;
	uint64_t left_out_functions, left_out_calls;
};

struct latency_history {
	struct latency_history_limits limits;
	struct history_window *windows; /* a ring */
	size_t first, window_count;
	struct history_function *functions;
	size_t function_count, function_capacity;
	struct map by_hash; /* → place in functions */
	size_t bytes;
};

/* ---- functions ------------------------------------------------------------------------------ */

static void history_release(struct latency_history *h, uint32_t place)
{
	struct history_function *f = &h->functions[place];

	if (--f->windows)
		return;
	map_remove(&h->by_hash, f->hash);
	h->bytes -= f->size;
	free(f->text);
	*f = (struct history_function){ 0 };
	while (h->function_count && !h->functions[h->function_count - 1].text)
		h->function_count--;
}

static int history_unused_place(struct latency_history *h, uint32_t *ret_place)
{
	size_t place = 0;
	int err;

	while (place < h->function_count && h->functions[place].text)
		place++;
	err = array_reserve(h->functions, h->function_capacity, place + 1, MAX_NAMES);
	if (!err)
		*ret_place = (uint32_t)place;
	return err;
}

static int history_add_function(
	struct latency_history *h, const struct buffer *text, uint64_t hash, uint32_t *ret_place)
{
	char *copy = malloc(text->size);
	uint32_t place;
	int err = copy ? history_unused_place(h, &place) : -ENOMEM;

	if (!err)
		err = map_set(&h->by_hash, hash, place);
	if (err) {
		free(copy);
		return err;
	}
	memcpy(copy, text->bytes, text->size);
	h->functions[place] =
		(struct history_function){ .text = copy, .size = text->size, .hash = hash };
	h->function_count = MAX(h->function_count, (size_t)place + 1);
	h->bytes += text->size;
	*ret_place = place;
	return 0;
}

/* Adds a window to the function's; history_release() takes it back. */
static int history_hold(
	struct latency_history *h, const struct latency_history_name *name, uint32_t *ret_place)
{
	autocall(buffer_deinit) struct buffer text;
	uint64_t hash, known;
	int err;

	buffer_init(&text, MAX_NAME_BYTES);
	buffer_append(&text, name->probe, strlen(name->probe) + 1);
	buffer_append(&text, name->function, strlen(name->function) + 1);
	err = buffer_append(&text, name->binary, strlen(name->binary) + 1);
	if (err)
		return err;
	hash = hash_bytes(text.bytes, text.size);
	if (map_get(&h->by_hash, hash, &known)) {
		const struct history_function *f = &h->functions[known];

		*ret_place = (uint32_t)known;
		err = f->size == text.size && !memcmp(f->text, text.bytes, text.size) ? 0 : -EEXIST;
	} else {
		err = history_add_function(h, &text, hash, ret_place);
	}
	if (!err)
		h->functions[*ret_place].windows++;
	return err;
}

/* ---- windows -------------------------------------------------------------------------------- */

static void history_window_deinit(struct latency_history *h, struct history_window *w)
{
	for (size_t i = 0; i < w->entry_count; i++)
		history_release(h, w->entries[i].function);
	h->bytes -= w->bytes;
	free(w->entries);
	free(w->buckets);
	*w = (struct history_window){ 0 };
}

static struct history_window *history_window(const struct latency_history *h, size_t number)
{
	return &h->windows[(h->first + number) % h->limits.windows];
}

static void history_remove_oldest(struct latency_history *h)
{
	history_window_deinit(h, history_window(h, 0));
	h->first = (h->first + 1) % h->limits.windows;
	h->window_count--;
}

int latency_history_create(
	const struct latency_history_limits *limits, struct latency_history **ret_history)
{
	struct latency_history *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->limits = *limits;
	map_init(&h->by_hash, MAX_NAMES);
	h->windows = calloc(limits->windows, sizeof(*h->windows));
	if (!h->windows) {
		latency_history_destroy(h);
		return -ENOMEM;
	}
	*ret_history = h;
	return 0;
}

void latency_history_destroy(struct latency_history *h)
{
	if (!h)
		return;
	while (h->window_count)
		history_remove_oldest(h);
	map_deinit(&h->by_hash);
	free(h->functions);
	free(h->windows);
	free(h);
}

size_t latency_history_bytes(const struct latency_history *h)
{
	return h->bytes;
}

/* ---- adding --------------------------------------------------------------------------------- */

/* The numbers of names as those of the first that is equal. */
static int history_merge_names(const struct latency_history_measured *m, uint32_t **ret_firsts)
{
	autocall(intern_deinit) struct intern texts = { 0 };
	autocall(buffer_deinit) struct buffer text;
	autofree uint32_t *firsts = calloc(m->name_count + 1, sizeof(*firsts));
	autofree uint32_t *of_text = calloc(m->name_count + 2, sizeof(*of_text));
	int err =
		firsts && of_text ? intern_init(&texts, MAX_NAMES, MAX_NAME_BYTES * 256) : -ENOMEM;

	buffer_init(&text, MAX_NAME_BYTES);
	for (uint32_t i = 0; !err && i < m->name_count; i++) {
		const struct latency_history_name *name = &m->names[i];
		size_t known = texts.count;
		uint32_t number;

		text.size = 0;
		buffer_append(&text, name->probe, strlen(name->probe) + 1);
		buffer_append(&text, name->function, strlen(name->function) + 1);
		err = buffer_append(&text, name->binary, strlen(name->binary) + 1);
		if (!err)
			err = intern_bytes(&texts, text.bytes, text.size, &number);
		if (err)
			break;
		if (number == known)
			of_text[number] = i;
		firsts[i] = of_text[number];
	}
	if (!err)
		*ret_firsts = take(firsts);
	return err;
}

static int history_compare_cells(const void *a, const void *b)
{
	const struct latency_history_cell *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->bucket < y->bucket ? -1 : x->bucket > y->bucket;
}

static int history_compare_entries(const void *a, const void *b)
{
	const struct history_entry *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->calls > y->calls ? -1 : x->calls < y->calls;
}

/* Cells in order → one entry for each function, whose buckets follow each other in W's. */
static void history_add_cell(
	struct history_window *w, size_t *bucket_count, const struct latency_history_cell *cell)
{
	struct history_entry *e = w->entry_count ? &w->entries[w->entry_count - 1] : NULL;
	struct latency_bucket *b;

	if (!e || e->function != cell->function) {
		e = &w->entries[w->entry_count++];
		*e = (struct history_entry){ .function = cell->function,
			.buckets = &w->buckets[*bucket_count] };
	}
	b = e->bucket_count ? &e->buckets[e->bucket_count - 1] : NULL;
	if (!b || b->number != cell->bucket) {
		b = &w->buckets[(*bucket_count)++];
		*b = (struct latency_bucket){ .number = cell->bucket };
		e->bucket_count++;
	}
	b->calls += cell->calls;
	e->calls += cell->calls;
	e->total_ns += cell->total_ns;
	e->max_ns = MAX(e->max_ns, cell->max_ns);
}

/* How many different functions and buckets the cells, which are in order, have. */
static void history_count_cells(
	const struct latency_history_measured *m, size_t *ret_functions, size_t *ret_buckets)
{
	*ret_functions = *ret_buckets = 0;
	for (size_t i = 0; i < m->cell_count; i++) {
		const struct latency_history_cell *cell = &m->cells[i];
		bool same = i && cell[-1].function == cell->function;

		*ret_functions += !same;
		*ret_buckets += !same || cell[-1].bucket != cell->bucket;
	}
}

static int history_sort_cells(const struct latency_history_measured *m)
{
	autofree uint32_t *firsts = NULL;
	int err = history_merge_names(m, &firsts);

	for (size_t i = 0; !err && i < m->cell_count; i++) {
		struct latency_history_cell *cell = &m->cells[i];

		if (cell->function >= m->name_count || cell->bucket >= ABI_LATENCY_BUCKETS)
			return -EINVAL;
		cell->function = firsts[cell->function];
	}
	if (!err && m->cell_count)
		qsort(m->cells, m->cell_count, sizeof(*m->cells), history_compare_cells);
	return err;
}

static void history_cut(const struct latency_history *h, struct history_window *w)
{
	while (w->entry_count > h->limits.functions) {
		w->left_out_calls += w->entries[--w->entry_count].calls;
		w->left_out_functions++;
	}
}

/* Entries have indexes of names instead of functions at first. */
static int history_hold_functions(struct latency_history *h,
	const struct latency_history_measured *m, struct history_window *w)
{
	for (size_t i = 0; i < w->entry_count; i++) {
		struct history_entry *e = &w->entries[i];
		int err = history_hold(h, &m->names[e->function], &e->function);

		if (err) {
			w->entry_count = i;
			return err;
		}
	}
	return 0;
}

/* The buckets of the entries that are left, in memory of their size. */
static int history_pack(struct history_window *w)
{
	struct latency_bucket *packed;
	size_t count = 0, at = 0;

	for (size_t i = 0; i < w->entry_count; i++)
		count += w->entries[i].bucket_count;
	packed = calloc(count + 1, sizeof(*packed));
	if (!packed)
		return -ENOMEM;
	for (size_t i = 0; i < w->entry_count; i++) {
		struct history_entry *e = &w->entries[i];

		memcpy(&packed[at], e->buckets, e->bucket_count * sizeof(*packed));
		e->buckets = &packed[at];
		at += e->bucket_count;
	}
	free(w->buckets);
	w->buckets = packed;
	w->bytes = count * sizeof(*packed) + w->entry_count * sizeof(*w->entries);
	return 0;
}

static int history_make_window(struct latency_history *h, const struct latency_history_measured *m,
	struct history_window *w)
{
	size_t functions, buckets, at = 0;
	int err = history_sort_cells(m);

	if (err)
		return err;
	history_count_cells(m, &functions, &buckets);
	w->entries = calloc(functions + 1, sizeof(*w->entries));
	w->buckets = calloc(buckets + 1, sizeof(*w->buckets));
	if (!w->entries || !w->buckets)
		return -ENOMEM;
	for (size_t i = 0; i < m->cell_count; i++)
		history_add_cell(w, &at, &m->cells[i]);
	qsort(w->entries, w->entry_count, sizeof(*w->entries), history_compare_entries);
	history_cut(h, w);
	err = history_pack(w);
	if (!err && w->bytes > h->limits.bytes / 2)
		err = -E2BIG;
	return err;
}

int latency_history_add(struct latency_history *h, const struct latency_history_measured *m)
{
	struct history_window w = { .time_ms = m->time_ms, .duration_ms = m->duration_ms };
	int err = history_make_window(h, m, &w);

	if (err) {
		free(w.entries);
		free(w.buckets);
		return err;
	}
	h->bytes += w.bytes;
	err = history_hold_functions(h, m, &w);
	if (err) {
		history_window_deinit(h, &w);
		return err;
	}
	while (h->window_count == h->limits.windows ||
		(h->window_count && h->bytes > h->limits.bytes))
		history_remove_oldest(h);
	*history_window(h, h->window_count++) = w;
	return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void history_write_entry(const struct history_entry *e, uint32_t function, struct json *j)
{
	struct latency_sums sums = { 0 };
	struct latency_figures figures;

	latency_sums_add(&sums, &(struct latency_histogram){ .calls = e->calls,
					.total_ns = e->total_ns,
					.max_ns = e->max_ns,
					.buckets = e->buckets,
					.bucket_count = e->bucket_count });
	figures = latency_figures(&sums);
	json_object(j, NULL);
	json_number(j, "function", function);
	json_number(j, "calls", e->calls);
	json_number(j, "total_ns", e->total_ns);
	json_number(j, "p50_ns", figures.p50_ns);
	json_number(j, "p90_ns", figures.p90_ns);
	json_number(j, "p99_ns", figures.p99_ns);
	json_number(j, "max_ns", e->max_ns);
	json_array(j, "buckets");
	for (uint32_t i = 0; i < e->bucket_count; i++) {
		json_number(j, NULL, e->buckets[i].number);
		json_number(j, NULL, e->buckets[i].calls);
	}
	json_close(j);
	json_close(j);
}

static void history_write_window(
	const struct history_window *w, const uint32_t *numbers, struct json *j)
{
	json_object(j, NULL);
	json_signed(j, "time_ms", w->time_ms);
	json_signed(j, "duration_ms", w->duration_ms);
	json_number(j, "left_out_functions", w->left_out_functions);
	json_number(j, "left_out_calls", w->left_out_calls);
	json_array(j, "functions");
	for (size_t i = 0; i < w->entry_count; i++)
		history_write_entry(&w->entries[i], numbers[w->entries[i].function], j);
	json_close(j);
	json_close(j);
}

static void history_write_function(const struct history_function *f, struct json *j)
{
	const char *function = f->text + strlen(f->text) + 1;

	json_object(j, NULL);
	json_text(j, "probe", f->text);
	json_text(j, "function", function);
	json_text(j, "binary", function + strlen(function) + 1);
	json_close(j);
}

static bool history_overlaps(const struct history_window *w, int64_t from_ms, int64_t to_ms)
{
	return w->time_ms < to_ms && w->time_ms + w->duration_ms > from_ms;
}

/* Sets NUMBERS of the functions that have calls in the range, from 0 on in the output's order. */
static void history_number_functions(const struct latency_history *h, int64_t from_ms,
	int64_t to_ms, uint32_t *numbers, struct json *j)
{
	uint32_t count = 0;

	for (size_t i = 0; i < h->function_count; i++)
		numbers[i] = UINT32_MAX;
	for (size_t i = 0; i < h->window_count; i++) {
		const struct history_window *w = history_window(h, i);

		for (size_t e = 0; history_overlaps(w, from_ms, to_ms) && e < w->entry_count; e++) {
			uint32_t place = w->entries[e].function;

			if (numbers[place] != UINT32_MAX)
				continue;
			numbers[place] = count++;
			history_write_function(&h->functions[place], j);
		}
	}
}

static void history_write_bounds(struct json *j)
{
	json_array(j, "bucket_starts_ns");
	for (uint32_t i = 0; i < ABI_LATENCY_BUCKETS; i++)
		json_number(j, NULL, abi_latency_bucket_start(i));
	json_close(j);
}

int latency_history_write(
	const struct latency_history *h, int64_t from_ms, int64_t to_ms, struct json *j)
{
	autofree uint32_t *numbers = calloc(h->function_count + 1, sizeof(*numbers));

	if (!numbers)
		return -ENOMEM;
	history_write_bounds(j);
	json_array_by_line(j, "functions");
	history_number_functions(h, from_ms, to_ms, numbers, j);
	json_close(j);
	json_array_by_line(j, "windows");
	for (size_t i = 0; i < h->window_count; i++) {
		const struct history_window *w = history_window(h, i);

		if (history_overlaps(w, from_ms, to_ms))
			history_write_window(w, numbers, j);
	}
	json_close(j);
	return 0;
}
