/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms over an agent's life: what is added up, the limits, what is dropped, the text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_series.h"
#include "base/cleanup.h"

enum { LIMIT = 3, BIG = 1 << 20 };

static int setup(void **state)
{
	struct latency_series_set *set = malloc(sizeof(*set));

	latency_series_init(set, LIMIT);
	*state = set;
	return 0;
}

static int teardown(void **state)
{
	latency_series_deinit(*state);
	free(*state);
	return 0;
}

static struct latency_series *find(struct latency_series_set *set, const char *labels)
{
	size_t place;

	assert_int_equal(latency_series_find(set, labels, strlen(labels), 7, &place), 0);
	return &set->items[place];
}

static void equal_labels_are_one_histogram(void **state)
{
	struct latency_series_set *set = *state;

	latency_series_add(find(set, "a=\"1\""), abi_latency_bucket(1000), 2, 1999);
	latency_series_add(find(set, "a=\"2\""), abi_latency_bucket(1000), 5, 5000);
	latency_series_add(find(set, "a=\"1\""), abi_latency_bucket(1023), 1, 1023);
	latency_series_add(find(set, "a=\"1\""), abi_latency_bucket(1024), 1, 1024);
	assert_int_equal(set->count, 2);
	assert_int_equal(find(set, "a=\"1\"")->rows.calls[9], 3);
	assert_int_equal(find(set, "a=\"1\"")->rows.calls[10], 1);
	assert_int_equal(find(set, "a=\"1\"")->total_ns, 4046);
	assert_int_equal(find(set, "a=\"2\"")->total_ns, 5000);
}

static void no_more_than_the_limit(void **state)
{
	struct latency_series_set *set = *state;
	size_t place = 77;

	find(set, "a");
	find(set, "b");
	find(set, "c");
	assert_int_equal(latency_series_find(set, "d", 1, 7, &place), -E2BIG);
	assert_int_equal(place, 77);
	find(set, "b");
	latency_series_set_limit(set, 1);
	find(set, "c");
	assert_int_equal(set->count, 3);
	latency_series_set_limit(set, 4);
	find(set, "d");
}

/* Two names of 800 bytes take the room of three histograms. */
static void long_labels_count_for_more(void **state)
{
	struct latency_series_set *set = *state;
	char text[801];
	size_t place;

	memset(text, 'x', sizeof(text));
	assert_int_equal(latency_series_find(set, text, 800, 7, &place), 0);
	assert_int_equal(latency_series_find(set, text, 799, 7, &place), -E2BIG);
	find(set, "a");
	assert_int_equal(set->labels_bytes, 801);
}

static bool is_b_or_d(void *context, struct latency_series *series)
{
	++*(unsigned int *)context;
	return !strcmp(series->labels, "b") || !strcmp(series->labels, "d");
}

static void the_others_keep_their_counts(void **state)
{
	struct latency_series_set *set = *state;
	unsigned int asked = 0;

	latency_series_set_limit(set, 5);
	for (const char *name = "abcde"; *name; name++) {
		const char text[] = { *name, 0 };

		latency_series_add(find(set, text), 100, (uint64_t)*name, 1);
	}
	assert_int_equal(latency_series_drop(set, is_b_or_d, &asked), 2);
	assert_int_equal(asked, 5);
	assert_int_equal(set->count, 3);
	assert_int_equal(set->labels_bytes, 3);
	for (const char *name = "ace"; *name; name++) {
		const char text[] = { *name, 0 };

		assert_int_equal(find(set, text)->rows.calls[latency_row(100)], *name);
	}
	assert_int_equal(set->count, 3);
	/* It begins anew. */
	assert_int_equal(find(set, "b")->rows.calls[latency_row(100)], 0);
}

static bool always(void *context, struct latency_series *series)
{
	(void)context;
	(void)series;
	return true;
}

static void all_may_go(void **state)
{
	struct latency_series_set *set = *state;

	find(set, "a");
	find(set, "b");
	assert_int_equal(latency_series_drop(set, always, NULL), 2);
	assert_int_equal(latency_series_drop(set, always, NULL), 0);
	assert_int_equal(set->labels_bytes, 0);
	find(set, "c");
	assert_int_equal(set->count, 1);
}

static const char *text_of(const struct latency_series_set *set, struct buffer *out)
{
	buffer_init(out, BIG);
	latency_series_write(set, out);
	assert_int_equal(buffer_append(out, "", 1), 0);
	return (const char *)out->bytes;
}

static void without_histograms_there_is_no_family(void **state)
{
	autocall(buffer_deinit) struct buffer out;

	assert_string_equal(text_of(*state, &out), "");
}

/* Bounds belong to their buckets, and all of them are ends of the buckets that calls are in. */
static void the_text_has_cumulative_buckets(void **state)
{
	struct latency_series_set *set = *state;
	struct latency_series *series = find(set, "a=\"1\"");
	autocall(buffer_deinit) struct buffer out;
	const char *text;

	latency_series_add(series, abi_latency_bucket(3), 1, 3);
	latency_series_add(series, abi_latency_bucket(255), 1, 255);
	latency_series_add(series, abi_latency_bucket(256), 1, 256);
	latency_series_add(
		series, abi_latency_bucket(UINT64_C(70000000000)), 4, UINT64_C(280000000000));
	text = text_of(set, &out);
	assert_non_null(strstr(text, "# TYPE fathom_function_latency_seconds histogram\n"));
	assert_non_null(strstr(text, "_bucket{a=\"1\",le=\"2.55e-07\"} 2\n"));
	assert_non_null(strstr(text, "_bucket{a=\"1\",le=\"5.11e-07\"} 3\n"));
	assert_non_null(strstr(text, "_bucket{a=\"1\",le=\"68.719476735\"} 3\n"));
	assert_non_null(strstr(text, "_bucket{a=\"1\",le=\"+Inf\"} 7\n"));
	assert_non_null(strstr(text, "_count{a=\"1\"} 7\n"));
	assert_non_null(strstr(text, "_sum{a=\"1\"} 280.000000514\n"));
	assert_null(strstr(text, "le=\"1.27e-07\""));
	assert_null(strstr(text, "le=\"137."));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(equal_labels_are_one_histogram),
		CASE(no_more_than_the_limit),
		CASE(long_labels_count_for_more),
		CASE(the_others_keep_their_counts),
		CASE(all_may_go),
		CASE(without_histograms_there_is_no_family),
		CASE(the_text_has_cumulative_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
