/* SPDX-License-Identifier: Apache-2.0 */
/* What runtimes tell of containers and pods: what is taken over, what is refused, who is whose. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "agent/server/metadata/containers.h"
#include "base/cleanup.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define POD "1111111111111111111111111111111111111111111111111111111111111111"
#define POD2 "2222222222222222222222222222222222222222222222222222222222222222"

static struct containers *begin(void)
{
	struct containers *c;

	assert_int_equal(containers_create("containerd", &c), 0);
	return c;
}

static void pod(struct containers *c, const char *id, const char *name, const char *namespace)
{
	assert_int_equal(
		containers_add_pod(c,
			&(struct containers_pod){
				.id = id, .name = name, .namespace = namespace, .uid = name }),
		0);
}

static void container(struct containers *c, const char *id, const char *of, const char *name)
{
	assert_int_equal(
		containers_add(c,
			&(struct containers_container){
				.id = id, .pod_id = of, .name = name, .image = "image:1" }),
		0);
}

static struct containers *finish(
	struct containers *c, struct containers *old, uint64_t now_ns, uint64_t keep_since_ns)
{
	assert_int_equal(containers_finish(c, old, now_ns, keep_since_ns), 0);
	containers_unref(old);
	return c;
}

static const char *pod_of(const struct containers *c, const char *id)
{
	const struct container_facts *facts = containers_find(c, id);

	return facts ? facts->pod->name : "none";
}

static void a_container_is_its_pods_in_either_order(void **state)
{
	struct containers *c = begin();

	(void)state;
	container(c, A, POD, "web");
	pod(c, POD, "shop", "prod");
	container(c, B, POD, "log");
	finish(c, NULL, 1, 0);
	assert_string_equal(containers_find(c, A)->name, "web");
	assert_string_equal(containers_find(c, A)->id, A);
	assert_string_equal(containers_find(c, A)->image, "image:1");
	assert_string_equal(containers_find(c, A)->runtime, "containerd");
	assert_string_equal(containers_find(c, A)->pod->namespace, "prod");
	assert_string_equal(containers_find(c, B)->name, "log");
	assert_string_equal(pod_of(c, B), "shop");
	/* the sandbox itself */
	assert_string_equal(containers_find(c, POD)->name, "");
	assert_string_equal(pod_of(c, POD), "shop");
	assert_null(containers_find(c, C));
	assert_null(containers_find(c, ""));
	assert_int_equal(containers_count(c), 3);
	assert_int_equal(containers_pod_count(c), 1);
	containers_unref(c);
}

static void without_its_pod_a_container_is_not_found(void **state)
{
	struct containers *c = begin();

	(void)state;
	container(c, A, POD2, "web");
	pod(c, POD, "shop", "prod");
	finish(c, NULL, 1, 0);
	assert_null(containers_find(c, A));
	containers_unref(c);
}

static void ids_and_names_are_valid_or_refused(void **state)
{
	static const char *const bad_ids[] = { NULL, "", "abc", A "a",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	static const char *const bad_names[] = { NULL, "", "a\nb", "\x7f", "\xff", "\x01" };
	char longest[CONTAINER_NAME_LIMIT + 2];
	struct containers *c = begin();

	(void)state;
	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(bad_ids); i++) {
		container(c, bad_ids[i], POD, "web");
		container(c, A, bad_ids[i], "web");
		pod(c, bad_ids[i], "shop", "prod");
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad_names); i++) {
		container(c, A, POD, bad_names[i]);
		pod(c, POD, bad_names[i], "prod");
	}
	container(c, A, POD, longest);
	pod(c, POD, longest, "prod");
	pod(c, POD, "shop", "p\x1brod");
	pod(c, POD, "shop", longest);
	assert_int_equal(containers_refused(c)->invalid,
		3 * ARRAY_SIZE(bad_ids) + 2 * ARRAY_SIZE(bad_names) + 4);
	/* As long as allowed, with any UTF-8 */
	longest[CONTAINER_NAME_LIMIT] = 0;
	container(c, A, POD, longest);
	pod(c, POD, "sh\xc3\xb6p", "");
	finish(c, NULL, 1, 0);
	assert_string_equal(containers_find(c, A)->name, longest);
	assert_string_equal(pod_of(c, A), "sh\xc3\xb6p");
	containers_unref(c);
}

static void what_is_told_twice_differently_is_nobodys(void **state)
{
	struct containers *c = begin();

	(void)state;
	pod(c, POD, "shop", "prod");
	pod(c, POD, "shop", "prod");
	container(c, A, POD, "web");
	container(c, A, POD, "web");
	assert_int_equal(containers_refused(c)->conflicts, 0);
	pod(c, POD2, "victim", "kube-system");
	container(c, A, POD2, "web");
	container(c, B, POD2, "one");
	container(c, B, POD2, "two");
	container(c, C, POD2, "fine");
	finish(c, NULL, 1, 0);
	assert_null(containers_find(c, A));
	assert_null(containers_find(c, B));
	assert_string_equal(pod_of(c, C), "victim");
	assert_int_equal(containers_refused(c)->conflicts, 2);
	containers_unref(c);

	c = begin();
	pod(c, POD, "shop", "prod");
	pod(c, POD, "victim", "prod");
	container(c, A, POD, "web");
	finish(c, NULL, 1, 0);
	assert_null(containers_find(c, A));
	assert_null(containers_find(c, POD));
	containers_unref(c);

	/* A container with the ID of a pod's sandbox */
	c = begin();
	pod(c, POD, "shop", "prod");
	pod(c, POD2, "victim", "prod");
	container(c, POD, POD2, "web");
	finish(c, NULL, 1, 0);
	assert_null(containers_find(c, POD));
	containers_unref(c);
}

static struct containers *told_of(const char *id, const char *pod_name)
{
	struct containers *c = begin();

	pod(c, POD, pod_name, "prod");
	container(c, id, POD, "web");
	return c;
}

static void what_has_ended_is_kept_for_a_time(void **state)
{
	struct containers *c = finish(told_of(A, "shop"), NULL, 100, 0);

	(void)state;
	c = finish(begin(), c, 200, 100);
	assert_string_equal(pod_of(c, A), "shop");
	assert_int_equal(containers_count(c), 0);
	assert_int_equal(containers_pod_count(c), 0);
	/* Kept again, by the time it was last told of */
	c = finish(begin(), c, 300, 100);
	assert_string_equal(pod_of(c, A), "shop");
	c = finish(begin(), c, 400, 101);
	assert_null(containers_find(c, A));
	containers_unref(c);
}

static void an_id_does_not_change_its_pod(void **state)
{
	struct containers *c = finish(told_of(A, "shop"), NULL, 100, 0);

	(void)state;
	c = finish(told_of(A, "shop"), c, 200, 0);
	assert_string_equal(pod_of(c, A), "shop");
	c = finish(told_of(A, "victim"), c, 300, 0);
	assert_null(containers_find(c, A));
	assert_true(containers_refused(c)->conflicts > 0);
	/* Neither by being told again, nor by leaving it out for a while */
	c = finish(told_of(A, "victim"), c, 400, 0);
	assert_null(containers_find(c, A));
	c = finish(begin(), c, 500, 0);
	c = finish(told_of(A, "victim"), c, 600, 0);
	assert_null(containers_find(c, A));
	containers_unref(c);
}

static void an_ended_container_keeps_its_pod_though_others_come(void **state)
{
	struct containers *c = finish(told_of(A, "shop"), NULL, 100, 0), *next = begin();

	(void)state;
	pod(next, POD2, "other", "prod");
	container(next, B, POD2, "web");
	c = finish(next, c, 200, 0);
	assert_string_equal(pod_of(c, A), "shop");
	assert_string_equal(pod_of(c, B), "other");
	containers_unref(c);
}

static void too_many_are_counted(void **state)
{
	struct containers *c = begin();
	char id[80];

	(void)state;
	for (size_t i = 0; i < CONTAINERS_LIMIT + 10; i++) {
		snprintf(id, sizeof(id), "%064zx", i);
		pod(c, id, "p", "n");
	}
	assert_int_equal(containers_refused(c)->over_limit, 10);
	assert_int_equal(containers_pod_count(c), CONTAINERS_LIMIT);
	finish(c, NULL, 1, 0);
	snprintf(id, sizeof(id), "%064x", CONTAINERS_LIMIT - 1);
	assert_string_equal(pod_of(c, id), "p");
	containers_unref(c);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static void pairs_are_sorted_and_clean(void **state)
{
	char long_name[CONTAINER_KEY_LIMIT + 2], long_value[CONTAINER_VALUE_LIMIT + 2];
	const struct container_pair from[] = { { "z", "last" }, { "a", "overwritten" },
		{ "m\n", "x" }, { "", "x" }, { NULL, "x" }, { "a", "l\x01\xff\n\xc3\xb6" },
		{ "b", NULL }, { long_name, "x" }, { "long", long_value } };
	struct container_pairs pairs = { 0 };
	struct arena arena;
	uint64_t refused = 0;

	(void)state;
	memset(long_name, 'n', sizeof(long_name) - 1);
	memset(long_value, 'v', sizeof(long_value) - 1);
	long_name[sizeof(long_name) - 1] = long_value[sizeof(long_value) - 1] = 0;
	arena_init(&arena, 1 << 20);
	assert_int_equal(container_pairs_copy(&arena, from, ARRAY_SIZE(from), &pairs, &refused), 0);
	assert_int_equal(pairs.count, 3);
	assert_int_equal(refused, 6);
	assert_string_equal(pairs.items[0].name, "a");
	assert_string_equal(pairs.items[0].value, "l???\xc3\xb6");
	assert_string_equal(container_pairs_get(&pairs, "b"), "");
	assert_string_equal(container_pairs_get(&pairs, "z"), "last");
	assert_null(container_pairs_get(&pairs, "long"));
	assert_null(container_pairs_get(&pairs, "zz"));
	assert_null(container_pairs_get(&pairs, ""));
	arena_deinit(&arena);
}

static void pairs_have_a_limit(void **state)
{
	struct container_pair from[CONTAINER_PAIRS_LIMIT + 5];
	char names[CONTAINER_PAIRS_LIMIT + 5][8];
	struct container_pairs pairs = { 0 };
	struct arena arena;
	uint64_t refused = 0;

	(void)state;
	arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", i);
		from[i] = (struct container_pair){ names[i], "v" };
	}
	assert_int_equal(container_pairs_copy(&arena, from, ARRAY_SIZE(from), &pairs, &refused), 0);
	assert_int_equal(pairs.count, CONTAINER_PAIRS_LIMIT);
	assert_int_equal(refused, 5);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_is_its_pods_in_either_order),
		cmocka_unit_test(without_its_pod_a_container_is_not_found),
		cmocka_unit_test(ids_and_names_are_valid_or_refused),
		cmocka_unit_test(what_is_told_twice_differently_is_nobodys),
		cmocka_unit_test(what_has_ended_is_kept_for_a_time),
		cmocka_unit_test(an_id_does_not_change_its_pod),
		cmocka_unit_test(an_ended_container_keeps_its_pod_though_others_come),
		cmocka_unit_test(too_many_are_counted),
		cmocka_unit_test(pairs_are_sorted_and_clean),
		cmocka_unit_test(pairs_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
