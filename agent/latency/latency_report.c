/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"

enum {
	MAX_FUNCTIONS = 1 << 20,
	MAX_HISTOGRAMS = 1 << 20, /* in all functions */
	MAX_KEYS = 1 << 20,
	MAX_STRINGS = 1 << 22,
	MAX_STRING_BYTES = 256 << 20,
	MAX_IDENTITY_BYTES = 1 << 20,
};

/* ---- tables ---------------------------------------------------------------------------------- */

static const char *const by_names[] = {
	[ABI_LATENCY_BY_FIBER] = "goid",
	[ABI_LATENCY_BY_PROCESS] = "pid",
	[ABI_LATENCY_BY_CGROUP] = "cgroup",
};

const char *latency_by_name(enum abi_latency_by by)
{
	return by_names[by];
}

int latency_by_of_name(const char *name, enum abi_latency_by *ret_by)
{
	for (enum abi_latency_by by = ABI_LATENCY_BY_FIBER; by < ARRAY_SIZE(by_names); by++) {
		if (!strcmp(name, by_names[by])) {
			*ret_by = by;
			return 0;
		}
	}
	return -EINVAL;
}

static const struct latency_loss_row {
	const char *name, *text;
} loss_rows[LATENCY_LOSSES] = {
#define LATENCY_LOSS(id, name_, text_) [LATENCY_LOSS_##id] = { .name = (name_), .text = (text_) },
#include "agent/latency/latency_losses.def"
#undef LATENCY_LOSS
};

const char *latency_loss_name(enum latency_loss loss)
{
	return loss_rows[loss].name;
}

const char *latency_loss_text(enum latency_loss loss)
{
	return loss_rows[loss].text;
}

uint64_t latency_bucket_last(uint32_t bucket)
{
	return bucket + 1 < ABI_LATENCY_BUCKETS ? abi_latency_bucket_start(bucket + 1) - 1
						: UINT64_MAX;
}

/* ---- functions ------------------------------------------------------------------------------- */

int latency_report_init(struct latency_report *report, enum abi_latency_by by)
{
	int err;

	*report = (struct latency_report){ .by = by };
	map_init(&report->key_names, MAX_KEYS);
	err = intern_init(&report->strings, MAX_STRINGS, MAX_STRING_BYTES);
	if (!err)
		err = intern_init(&report->identities, MAX_FUNCTIONS, MAX_STRING_BYTES);
	if (err)
		latency_report_deinit(report);
	return err;
}

static void latency_function_clear(struct latency_function *f)
{
	for (size_t i = 0; i < f->histogram_count; i++)
		free(f->histograms[i].buckets);
	free(f->histograms);
	map_deinit(&f->by_key);
	f->histograms = NULL;
	f->histogram_count = f->histogram_capacity = 0;
	f->calls = f->total_ns = f->max_ns = 0;
	f->factor = 1;
}

void latency_report_deinit(struct latency_report *report)
{
	for (size_t i = 0; i < report->function_count; i++)
		latency_function_clear(&report->functions[i]);
	free(report->functions);
	map_deinit(&report->key_names);
	intern_deinit(&report->strings);
	intern_deinit(&report->identities);
	*report = (struct latency_report){ 0 };
}

void latency_report_clear(struct latency_report *report)
{
	for (size_t i = 0; i < report->function_count; i++)
		latency_function_clear(&report->functions[i]);
	memset(report->lost, 0, sizeof(report->lost));
	report->histogram_count = 0;
	report->hits = report->duration_ns = report->estimated = 0;
}

static int latency_report_string(
	struct latency_report *report, const char *text, const char **ret_text)
{
	uint32_t number;
	int err = intern_string(&report->strings, text, &number);

	if (!err)
		*ret_text = intern_text(&report->strings, number);
	return err;
}

static int latency_report_copy_identity(struct latency_report *report,
	const struct latency_identity *from, struct latency_identity *ret_to)
{
	struct latency_identity to = { .address = from->address };
	int err = latency_report_string(report, from->name, &to.name);

	if (!err)
		err = latency_report_string(report, from->linkage, &to.linkage);
	if (!err)
		err = latency_report_string(report, from->binary, &to.binary);
	if (!err)
		err = latency_report_string(report, from->build_id, &to.build_id);
	if (!err)
		*ret_to = to;
	return err;
}

/* A NUL follows each string, so that different identities have different texts. */
static int latency_identity_text(const struct latency_identity *identity, struct buffer *text)
{
	const char *const strings[] = { identity->name, identity->linkage, identity->binary,
		identity->build_id };

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		buffer_append(text, strings[i], strlen(strings[i]) + 1);
	return buffer_append(text, &identity->address, sizeof(identity->address));
}

int latency_report_function(struct latency_report *report, const struct latency_identity *identity,
	uint32_t *ret_number)
{
	autocall(buffer_deinit) struct buffer text;
	struct latency_function f = { .factor = 1 };
	uint32_t number;
	int err;

	buffer_init(&text, MAX_IDENTITY_BYTES);
	err = latency_identity_text(identity, &text);
	if (!err)
		err = latency_report_copy_identity(report, identity, &f.identity);
	if (!err)
		err = array_reserve(report->functions, report->function_capacity,
			report->function_count + 1, MAX_FUNCTIONS);
	/* Last, because a new number is a new function: number 1 is function 0. */
	if (!err)
		err = intern_bytes(&report->identities, text.bytes, text.size, &number);
	if (err)
		return err;
	map_init(&f.by_key, MAX_HISTOGRAMS);
	if (number > report->function_count)
		report->functions[report->function_count++] = f;
	*ret_number = number - 1;
	return 0;
}

void latency_report_factor(struct latency_report *report, uint32_t function, uint32_t factor)
{
	if (function < report->function_count)
		report->functions[function].factor =
			MAX(report->functions[function].factor, factor);
}

int latency_report_name_key(struct latency_report *report, uint64_t key, const char *name)
{
	uint32_t number;
	int err = intern_string(&report->strings, name, &number);

	return err ? err : map_set(&report->key_names, key, number);
}

const char *latency_report_key_name(const struct latency_report *report, uint64_t key)
{
	uint64_t number = 0;

	map_get(&report->key_names, key, &number);
	return intern_text(&report->strings, (uint32_t)number);
}

/* ---- histograms ------------------------------------------------------------------------------ */

static int latency_report_add_histogram(
	struct latency_report *report, struct latency_function *f, uint64_t key)
{
	int err = report->histogram_count < MAX_HISTOGRAMS ? 0 : -E2BIG;

	if (!err)
		err = array_reserve(f->histograms, f->histogram_capacity, f->histogram_count + 1,
			MAX_HISTOGRAMS);
	if (!err)
		err = map_set(&f->by_key, key, f->histogram_count);
	if (err)
		return err;
	f->histograms[f->histogram_count++] = (struct latency_histogram){ .key = key };
	report->histogram_count++;
	return 0;
}

static int latency_report_histogram(struct latency_report *report, struct latency_function *f,
	uint64_t key, struct latency_histogram **ret_histogram)
{
	uint64_t number = f->histogram_count;

	if (!map_get(&f->by_key, key, &number)) {
		int err = latency_report_add_histogram(report, f, key);

		if (err)
			return err;
	}
	*ret_histogram = &f->histograms[number];
	return 0;
}

/* Adds CALLS to a bucket; the buckets stay in order. */
static int latency_histogram_add(struct latency_histogram *h, uint32_t bucket, uint64_t calls)
{
	size_t at = h->bucket_count;
	int err;

	while (at > 0 && h->buckets[at - 1].number > bucket)
		at--;
	if (at > 0 && h->buckets[at - 1].number == bucket) {
		h->buckets[at - 1].calls += calls;
		return 0;
	}
	err = array_reserve(
		h->buckets, h->bucket_capacity, h->bucket_count + 1, ABI_LATENCY_BUCKETS);
	if (err)
		return err;
	memmove(&h->buckets[at + 1], &h->buckets[at], (h->bucket_count - at) * sizeof(*h->buckets));
	h->buckets[at] = (struct latency_bucket){ .number = bucket, .calls = calls };
	h->bucket_count++;
	return 0;
}

int latency_report_add(struct latency_report *report, const struct latency_report_cell *cell)
{
	struct latency_histogram *h;
	struct latency_function *f;
	uint64_t max_ns;
	int err;

	if (cell->function >= report->function_count || cell->bucket >= ABI_LATENCY_BUCKETS)
		return -EINVAL;
	if (!cell->calls)
		return 0;
	f = &report->functions[cell->function];
	err = latency_report_histogram(report, f, cell->key, &h);
	if (!err)
		err = latency_histogram_add(h, cell->bucket, cell->calls);
	if (err)
		return err;
	/* A cell that was read while it was written may have a call whose time is not yet there. */
	max_ns = MAX(cell->max_ns, abi_latency_bucket_start(cell->bucket));
	h->calls += cell->calls;
	h->total_ns += cell->total_ns;
	h->max_ns = MAX(h->max_ns, max_ns);
	f->calls += cell->calls;
	f->total_ns += cell->total_ns;
	f->max_ns = MAX(f->max_ns, max_ns);
	return 0;
}

/* ---- intervals ------------------------------------------------------------------------------- */

static uint64_t latency_minus(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* NULL if there is none. */
static const struct latency_histogram *latency_histogram_before(
	const struct latency_report *before, uint32_t function, uint64_t key)
{
	uint64_t number;

	if (function >= before->function_count ||
		!map_get(&before->functions[function].by_key, key, &number))
		return NULL;
	return &before->functions[function].histograms[number];
}

static uint64_t latency_calls_in(const struct latency_histogram *h, uint32_t bucket)
{
	for (size_t i = 0; h && i < h->bucket_count; i++) {
		if (h->buckets[i].number == bucket)
			return h->buckets[i].calls;
	}
	return 0;
}

/* Adds what NOW has more than BEFORE, which may be NULL. */
static int latency_report_add_growth(struct latency_report *report, uint32_t function,
	const struct latency_histogram *now, const struct latency_histogram *before)
{
	uint64_t max_ns = !before || now->max_ns > before->max_ns ? now->max_ns : 0;
	uint64_t total_ns = latency_minus(now->total_ns, before ? before->total_ns : 0);
	int err = 0;

	for (size_t i = now->bucket_count; !err && i-- > 0;) {
		uint32_t bucket = now->buckets[i].number;
		uint64_t calls =
			latency_minus(now->buckets[i].calls, latency_calls_in(before, bucket));

		if (!calls)
			continue;
		if (!max_ns)
			max_ns = MIN(latency_bucket_last(bucket), now->max_ns);
		err = latency_report_add(
			report, &(struct latency_report_cell){ .function = function,
					.bucket = bucket,
					.key = now->key,
					.calls = calls,
					.total_ns = total_ns,
					.max_ns = max_ns });
		/* The total is the histogram's, and counted once. */
		total_ns = 0;
	}
	return err;
}

static int latency_report_copy_names(struct latency_report *to, const struct latency_report *from)
{
	uint64_t key, name;
	size_t iterator = 0;
	uint32_t number;
	int err = 0;

	for (size_t i = 0; !err && i < from->function_count; i++)
		err = latency_report_function(to, &from->functions[i].identity, &number);
	for (uint32_t i = 0; !err && i < from->function_count; i++)
		latency_report_factor(to, i, from->functions[i].factor);
	while (!err && map_next(&from->key_names, &iterator, &key, &name))
		err = latency_report_name_key(to, key, intern_text(&from->strings, (uint32_t)name));
	return err;
}

static int latency_report_add_growths(struct latency_report *report,
	const struct latency_report *now, const struct latency_report *before)
{
	int err = 0;

	for (uint32_t f = 0; !err && f < now->function_count; f++) {
		const struct latency_function *function = &now->functions[f];

		for (size_t i = 0; !err && i < function->histogram_count; i++) {
			const struct latency_histogram *h = &function->histograms[i];

			err = latency_report_add_growth(
				report, f, h, latency_histogram_before(before, f, h->key));
		}
	}
	return err;
}

int latency_report_since(const struct latency_report *now, const struct latency_report *before,
	struct latency_report *ret_report)
{
	struct latency_report report;
	int err = latency_report_init(&report, now->by);

	if (err)
		return err;
	err = latency_report_copy_names(&report, now);
	if (!err)
		err = latency_report_add_growths(&report, now, before);
	if (err) {
		latency_report_deinit(&report);
		return err;
	}
	for (int i = 0; i < LATENCY_LOSSES; i++)
		report.lost[i] = latency_minus(now->lost[i], before->lost[i]);
	report.duration_ns = latency_minus(now->duration_ns, before->duration_ns);
	report.hits = latency_minus(now->hits, before->hits);
	report.estimated = latency_minus(now->estimated, before->estimated);
	report.trap_ns = now->trap_ns;
	report.kernel_way = now->kernel_way;
	*ret_report = report;
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

uint64_t latency_report_calls(const struct latency_report *report)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < report->function_count; i++)
		calls += report->functions[i].calls;
	return calls;
}

static int latency_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int latency_compare_functions(const void *a, const void *b, void *context)
{
	const struct latency_function *functions = context;
	const struct latency_function *f = &functions[*(const uint32_t *)a];
	const struct latency_function *g = &functions[*(const uint32_t *)b];

	return latency_compare(g->total_ns, f->total_ns)
		?: latency_compare(g->calls, f->calls)
		?: strcmp(f->identity.name, g->identity.name)
		?: strcmp(f->identity.binary, g->identity.binary)
		?: latency_compare(f->identity.address, g->identity.address);
}

static int latency_compare_histograms(const void *a, const void *b, void *context)
{
	const struct latency_histogram *histograms = context;
	const struct latency_histogram *h = &histograms[*(const uint32_t *)a];
	const struct latency_histogram *i = &histograms[*(const uint32_t *)b];

	return latency_compare(i->total_ns, h->total_ns)
		?: latency_compare(i->calls, h->calls)
		?: latency_compare(h->key, i->key);
}

static int latency_order(size_t count, void *items,
	int (*compare)(const void *a, const void *b, void *context), uint32_t **ret_order)
{
	uint32_t *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare, items);
	*ret_order = order;
	return 0;
}

int latency_report_order(const struct latency_report *report, uint32_t **ret_order)
{
	return latency_order(
		report->function_count, report->functions, latency_compare_functions, ret_order);
}

int latency_function_order(const struct latency_function *function, uint32_t **ret_order)
{
	return latency_order(function->histogram_count, function->histograms,
		latency_compare_histograms, ret_order);
}
