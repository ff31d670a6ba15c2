/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics, parsed as strictly as OpenMetrics 1.0 requires. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/exposition.h"
#include "base/cleanup.h"

enum { MAX_LINES = 1024, NAME = 128 };

static const struct exposition_figure figures[] = {
	{ "fathom_build_info", "version=\"1\"", "The version", EXPOSITION_GAUGE, 1 },
	{ "fathom_overhead_cpu_seconds_total", "part=\"user\"", "CPU time", EXPOSITION_COUNTER,
		0.25 },
	{ "fathom_overhead_cpu_seconds_total", "part=\"bpf\"", "", EXPOSITION_COUNTER, 1e-9 },
	{ "process_start_time_seconds", "", "Start, since 1970", EXPOSITION_GAUGE, 1795262400.125 },
	{ "process_open_fds", "", "Descriptors", EXPOSITION_GAUGE, 17 },
};

/* ---- a strict reader ------------------------------------------------------------------------ */

struct reader {
	char family[NAME], type[NAME]; /* the one whose lines come now */
	char families[MAX_LINES][NAME];
	char samples[MAX_LINES][2 * NAME]; /* `name{labels}` */
	double values[MAX_LINES];
	size_t family_count, sample_count;
	bool helped; /* the family has its HELP */
};

static void read_type(struct reader *r, const char *line)
{
	char name[NAME], type[NAME];

	assert_int_equal(sscanf(line, "# TYPE %127[a-z_] %127[a-z]", name, type), 2);
	assert_true(
		!strcmp(type, "counter") || !strcmp(type, "gauge") || !strcmp(type, "histogram"));
	for (size_t i = 0; i < r->family_count; i++)
		assert_string_not_equal(r->families[i], name);
	memcpy(r->families[r->family_count++], name, sizeof(name));
	memcpy(r->family, name, sizeof(name));
	memcpy(r->type, type, sizeof(type));
	r->helped = false;
}

static void read_help(struct reader *r, const char *line)
{
	char name[NAME];
	int used = 0;

	assert_int_equal(sscanf(line, "# HELP %127[a-z_] %n", name, &used), 1);
	assert_string_equal(name, r->family);
	assert_false(r->helped);
	assert_true(strlen(line + used) > 3);
	assert_null(strchr(line, '\\'));
	r->helped = true;
}

/* `{name="value",…}`; returns the text after it. */
static const char *skip_labels(const char *at)
{
	assert_int_equal(*at, '{');
	do {
		size_t length = strspn(++at, "abcdefghijklmnopqrstuvwxyz_");

		assert_true(length > 0);
		at += length;
		assert_memory_equal(at, "=\"", 2);
		at += 2;
		at += strcspn(at, "\"\\");
		assert_int_equal(*at++, '"');
	} while (*at == ',');
	assert_int_equal(*at, '}');
	return at + 1;
}

/* Whether what follows the family's name suits its type. */
static bool suffix_is_right(const struct reader *r, const char *suffix, size_t length)
{
	static const char *const of_histograms[] = { "_bucket", "_sum", "_count" };

	if (!strcmp(r->type, "gauge"))
		return length == 0;
	if (!strcmp(r->type, "counter"))
		return length == strlen("_total") && !strncmp(suffix, "_total", length);
	for (size_t i = 0; i < ARRAY_SIZE(of_histograms); i++) {
		if (length == strlen(of_histograms[i]) &&
			!strncmp(suffix, of_histograms[i], length))
			return true;
	}
	return false;
}

static void read_sample(struct reader *r, const char *line)
{
	size_t length = strspn(line, "abcdefghijklmnopqrstuvwxyz_"), family = strlen(r->family);
	const char *end = line + length;
	char *sample = r->samples[r->sample_count], *rest;

	assert_true(r->helped);
	assert_memory_equal(line, r->family, family);
	assert_true(length >= family);
	assert_true(suffix_is_right(r, line + family, length - family));
	if (*end == '{')
		end = skip_labels(end);
	snprintf(sample, sizeof(r->samples[0]), "%.*s", (int)(end - line), line);
	for (size_t i = 0; i < r->sample_count; i++)
		assert_string_not_equal(r->samples[i], sample);
	assert_int_equal(*end, ' ');
	assert_true(isdigit((unsigned char)end[1]));
	r->values[r->sample_count++] = strtod(end + 1, &rest);
	assert_string_equal(rest, "");
}

/* Fails the test at the first malformed line. */
static void read_text(struct reader *r, char *text)
{
	char *line;
	bool ended = false;

	*r = (struct reader){ 0 };
	assert_int_equal(text[strlen(text) - 1], '\n');
	text[strlen(text) - 1] = 0;
	while ((line = strsep(&text, "\n")) != NULL) {
		assert_false(ended);
		if (!strcmp(line, "# EOF"))
			ended = true;
		else if (!strncmp(line, "# TYPE ", 7))
			read_type(r, line);
		else if (!strncmp(line, "# HELP ", 7))
			read_help(r, line);
		else
			read_sample(r, line);
	}
	assert_true(ended);
}

static double value_of(const struct reader *r, const char *sample)
{
	for (size_t i = 0; i < r->sample_count; i++) {
		if (!strcmp(r->samples[i], sample))
			return r->values[i];
	}
	fail_msg("no %s", sample);
	return NAN;
}

static struct reader *written(const struct metrics *metrics)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct buffer out;

	assert_non_null(r);
	buffer_init(&out, 1 << 20);
	exposition_counters(&out, metrics);
	exposition_figures(&out, figures, ARRAY_SIZE(figures));
	assert_int_equal(exposition_end(&out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_int_equal(strlen((char *)out.bytes), out.size - 1);
	read_text(r, (char *)out.bytes);
	buffer_deinit(&out);
	return r;
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void every_counter_is_there_once(void **state)
{
	struct metrics metrics = { 0 };
	autofree struct reader *r = NULL;
	char sample[2 * NAME];

	(void)state;
	for (enum metric id = 0; id < METRIC_COUNT; id++)
		metrics_add(&metrics, id, 1000 + (uint64_t)id);
	r = written(&metrics);
	assert_int_equal(r->sample_count, METRIC_COUNT + ARRAY_SIZE(figures));
	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		const struct metric_text *t = &metric_texts[id];

		snprintf(sample, sizeof(sample), *t->label ? "%s{%s}" : "%s", t->name, t->label);
		assert_true(value_of(r, sample) == 1000 + (double)id);
	}
}

static void figures_follow(void **state)
{
	struct metrics metrics = { 0 };
	autofree struct reader *r = written(&metrics);

	(void)state;
	assert_true(value_of(r, "fathom_build_info{version=\"1\"}") == 1);
	assert_true(value_of(r, "fathom_overhead_cpu_seconds_total{part=\"user\"}") == 0.25);
	assert_true(value_of(r, "fathom_overhead_cpu_seconds_total{part=\"bpf\"}") == 1e-9);
	assert_true(value_of(r, "process_start_time_seconds") == 1795262400.125);
	assert_true(value_of(r, "process_open_fds") == 17);
}

/* A counter that has run for years is written in full. */
static void large_counts(void **state)
{
	struct metrics metrics = { 0 };
	autofree struct reader *r = NULL;

	(void)state;
	metrics_add(&metrics, METRIC_SAMPLES_USER, UINT64_C(999999999999999));
	metrics_add(&metrics, METRIC_SAMPLES_KERNEL, UINT64_MAX);
	r = written(&metrics);
	assert_true(value_of(r, "fathom_samples_total{type=\"user\"}") == 999999999999999);
	assert_true(value_of(r, "fathom_samples_total{type=\"kernel\"}") > 1.8e19);
}

static void names_follow_the_conventions(void **state)
{
	(void)state;
	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		const char *name = metric_texts[id].name;
		size_t length = strlen(name);

		assert_memory_equal(name, "fathom_", 7);
		assert_true(length > 13 && !strcmp(name + length - 6, "_total"));
		assert_true(strspn(name, "abcdefghijklmnopqrstuvwxyz_") == length);
	}
}

/* Buckets are cumulative, in ascending order, and the last one has all that the count has. */
static void histograms_are_cumulative(void **state)
{
	static const double bounds[] = { 0.0025, 1, 10 };
	static const uint64_t counts[] = { 5, 0, 2, 1 };
	autofree struct reader *r = calloc(1, sizeof(*r));
	struct buffer out;

	(void)state;
	buffer_init(&out, 4096);
	exposition_histogram(&out, &(struct exposition_histogram){
					   .name = "fathom_loop_turn_seconds",
					   .help = "How long turns took",
					   .bounds = bounds,
					   .bound_count = ARRAY_SIZE(bounds),
					   .counts = counts,
					   .sum = 23.5,
				   });
	assert_int_equal(exposition_end(&out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	read_text(r, (char *)out.bytes);
	buffer_deinit(&out);
	assert_int_equal(r->sample_count, 6);
	assert_string_equal(r->samples[0], "fathom_loop_turn_seconds_bucket{le=\"0.0025\"}");
	assert_string_equal(r->samples[1], "fathom_loop_turn_seconds_bucket{le=\"1.0\"}");
	assert_string_equal(r->samples[2], "fathom_loop_turn_seconds_bucket{le=\"10.0\"}");
	assert_true(r->values[0] == 5 && r->values[1] == 5 && r->values[2] == 7);
	assert_true(value_of(r, "fathom_loop_turn_seconds_bucket{le=\"+Inf\"}") == 8);
	assert_true(value_of(r, "fathom_loop_turn_seconds_count") == 8);
	assert_true(value_of(r, "fathom_loop_turn_seconds_sum") == 23.5);
}

static void a_full_buffer_is_reported(void **state)
{
	struct metrics metrics = { 0 };
	struct buffer out;

	(void)state;
	buffer_init(&out, 1000);
	exposition_counters(&out, &metrics);
	exposition_figures(&out, figures, ARRAY_SIZE(figures));
	assert_int_equal(exposition_end(&out), -E2BIG);
	buffer_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_counter_is_there_once),
		cmocka_unit_test(figures_follow),
		cmocka_unit_test(large_counts),
		cmocka_unit_test(names_follow_the_conventions),
		cmocka_unit_test(histograms_are_cumulative),
		cmocka_unit_test(a_full_buffer_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
