/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods are chosen by what runtimes tell of them, and what the sampler is told of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/daemon/pod_choices.h"
#include "agent/server/metadata/containers.h"
#include "base/cleanup.h"
#include "tests/unit/fake_sampler.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define POD "1111111111111111111111111111111111111111111111111111111111111111"
#define POD2 "2222222222222222222222222222222222222222222222222222222222222222"

enum { NONE = 0x100 };

/* A pod `shop` of `prod` with the container A, `web`; without the label or annotation if NULL. */
static struct containers *told(const char *name, const struct container_pair *label,
	const struct container_pair *annotation)
{
	struct containers *c;

	assert_int_equal(containers_create("containerd", &c), 0);
	assert_int_equal(containers_add(c,
				 &(struct containers_container){
					 .id = A, .pod_id = POD, .name = "web", .image = "" }),
		0);
	assert_int_equal(containers_add_pod(c,
				 &(struct containers_pod){
					 .id = POD,
					 .name = name,
					 .namespace = "prod",
					 .uid = name,
					 .labels = label,
					 .label_count = label != NULL,
					 .annotations = annotation,
					 .annotation_count = annotation != NULL,
				 }),
		0);
	assert_int_equal(containers_finish(c, NULL, 1, 0), 0);
	containers_set_times(c, (struct containers_times){ 100, 200 });
	return c;
}

static struct container_choices *chosen(const struct pod_choices_options *options,
	struct containers *one, struct containers *two, bool waiting)
{
	struct metadata_view view = { .waiting = waiting };
	struct container_choices *choices;

	if (one)
		view.tables[view.count++] = one;
	if (two)
		view.tables[view.count++] = two;
	assert_int_equal(pod_choices_make(options, &view, &choices), 0);
	metadata_view_deinit(&view);
	return choices;
}

/* What is said of A; NONE = nothing. */
static uint32_t flags_of(const struct pod_choices_options *options, struct containers *one)
{
	struct container_choices *choices = chosen(options, one, NULL, false);
	uint32_t flags = NONE;

	(void)container_choices_find(choices, A, "", &flags);
	container_choices_destroy(choices);
	return flags;
}

static uint32_t flags_by_annotation(
	enum pod_annotations annotations, const char *name, const char *value)
{
	const struct container_pair pair = { name, value };

	return flags_of(&(struct pod_choices_options){ .annotations = annotations },
		told("shop", NULL, name ? &pair : NULL));
}

static void pods_choose_by_annotation(void **state)
{
	static const char *const names[] = { "fathom.dev/profile",
		"profiles.grafana.com/cpu.ebpf.enabled" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *name = names[i];

		assert_int_equal(flags_by_annotation(PODS_OPT_OUT, name, "true"), CONTAINER_ASKED);
		assert_int_equal(
			flags_by_annotation(PODS_OPT_OUT, name, "FALSE"), CONTAINER_DECLINED);
		assert_int_equal(flags_by_annotation(PODS_OPT_OUT, name, "no"), 0);
		assert_int_equal(flags_by_annotation(PODS_OPT_OUT, name, ""), 0);
		assert_int_equal(flags_by_annotation(PODS_OPT_IN, name, "True"), CONTAINER_ASKED);
		assert_int_equal(flags_by_annotation(PODS_OPT_IN, name, "yes"), CONTAINER_DECLINED);
		assert_int_equal(flags_by_annotation(PODS_IGNORED, name, "false"), 0);
	}
	assert_int_equal(flags_by_annotation(PODS_OPT_OUT, NULL, NULL), 0);
	assert_int_equal(flags_by_annotation(PODS_OPT_IN, NULL, NULL), CONTAINER_DECLINED);
	assert_int_equal(flags_by_annotation(PODS_OPT_OUT, "other", "false"), 0);
}

static void our_annotation_is_stronger(void **state)
{
	static const struct container_pair both[] = {
		{ "profiles.grafana.com/cpu.ebpf.enabled", "true" },
		{ "fathom.dev/profile", "false" },
	};
	struct containers *c;

	(void)state;
	assert_int_equal(containers_create("containerd", &c), 0);
	assert_int_equal(containers_add(c,
				 &(struct containers_container){
					 .id = A, .pod_id = POD, .name = "web", .image = "" }),
		0);
	assert_int_equal(containers_add_pod(c,
				 &(struct containers_pod){
					 .id = POD,
					 .name = "shop",
					 .annotations = both,
					 .annotation_count = ARRAY_SIZE(both),
				 }),
		0);
	assert_int_equal(containers_finish(c, NULL, 1, 0), 0);
	assert_int_equal(flags_of(&(struct pod_choices_options){ NULL, PODS_OPT_OUT }, c),
		CONTAINER_DECLINED);
}

static void selectors_match_what_is_told(void **state)
{
	static const struct container_pair label = { "team", "core" }, annotation = { "a/b", "c" };
	static const struct {
		const char *include, *exclude;
		uint32_t flags;
	} cases[] = {
		{ "namespace=prod", NULL, CONTAINER_INCLUDED },
		{ "pod=shop", "container=w?b", CONTAINER_INCLUDED | CONTAINER_EXCLUDED },
		{ "pod=other", "label.team=core", CONTAINER_EXCLUDED },
		{ "annotation.a/b=c", NULL, CONTAINER_INCLUDED },
		{ "annotation.a/b=d,label.x=*", NULL, 0 },
		{ "comm=x", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pod_choices_options options = { .annotations = PODS_IGNORED };
		struct selection *s = NULL;
		bool second;

		assert_int_equal(
			selection_create(cases[i].include, cases[i].exclude, &s, &second), 0);
		options.selection = s;
		assert_int_equal(
			flags_of(&options, told("shop", &label, &annotation)), cases[i].flags);
		selection_destroy(s);
	}
}

/* Whose container it is, is not known: nothing but that is said. */
static void what_is_in_dispute_is_unsettled(void **state)
{
	static const struct pod_choices_options options = { NULL, PODS_OPT_IN };
	struct container_choices *choices;
	struct containers *lonely;
	uint32_t flags = NONE;

	(void)state;
	choices = chosen(&options, told("shop", NULL, NULL), told("victim", NULL, NULL), false);
	assert_true(container_choices_find(choices, A, "", &flags));
	assert_int_equal(flags, CONTAINER_UNSETTLED);
	container_choices_destroy(choices);
	/* A container of a pod that is not told of. */
	assert_int_equal(containers_create("containerd", &lonely), 0);
	assert_int_equal(containers_add(lonely,
				 &(struct containers_container){
					 .id = A, .pod_id = POD2, .name = "web", .image = "" }),
		0);
	assert_int_equal(containers_finish(lonely, NULL, 1, 0), 0);
	assert_int_equal(flags_of(&options, lonely), CONTAINER_UNSETTLED);
}

static void who_is_on_no_list(void **state)
{
	static const struct pod_choices_options lax = { NULL, PODS_OPT_OUT },
						strict = { NULL, PODS_OPT_IN };
	struct container_choices *choices = chosen(&lax, NULL, NULL, false);
	struct containers *later = told("shop", NULL, NULL);

	(void)state;
	assert_false(choices->incomplete);
	container_choices_destroy(choices);
	choices = chosen(&lax, NULL, NULL, true);
	assert_true(choices->incomplete);
	assert_int_equal(choices->listed_until_ns, 0);
	container_choices_destroy(choices);
	choices = chosen(&strict, NULL, NULL, false);
	assert_true(choices->incomplete);
	assert_int_equal(choices->listed_until_ns, 0);
	container_choices_destroy(choices);
	containers_set_times(later, (struct containers_times){ 150, 300 });
	choices = chosen(&lax, told("shop", NULL, NULL), later, false);
	assert_true(choices->incomplete);
	assert_int_equal(choices->listed_from_ns, 100);
	assert_int_equal(choices->listed_until_ns, 300);
	container_choices_destroy(choices);
}

static void the_sampler_is_told_of_changes_only(void **state)
{
	const struct pod_choices_options lax = { NULL, PODS_OPT_OUT },
					 strict = { NULL, PODS_OPT_IN };
	struct sampler sampler = { 0 };
	struct pod_choices p = { 0 };
	const struct container_choices *first;

	(void)state;
	assert_int_equal(pod_choices_tell(&p, &lax, NULL, &sampler, true), 0);
	assert_null(sampler.choices);
	assert_int_equal(pod_choices_tell(&p, &strict, NULL, &sampler, true), 0);
	first = sampler.choices;
	assert_non_null(first);
	assert_true(first->incomplete);
	assert_int_equal(pod_choices_tell(&p, &strict, NULL, &sampler, false), 0);
	assert_ptr_equal(sampler.choices, first);
	assert_int_equal(pod_choices_tell(&p, &lax, NULL, &sampler, true), 0);
	assert_null(sampler.choices);
	pod_choices_deinit(&p);
}

static void settings_that_need_a_runtime(void **state)
{
	struct pod_choices_options options = { NULL, PODS_OPT_OUT };
	enum pod_annotations annotations = PODS_IGNORED;
	struct selection *s = NULL;
	bool second;

	(void)state;
	assert_false(pod_choices_need_runtime(&options));
	options.annotations = PODS_OPT_IN;
	assert_true(pod_choices_need_runtime(&options));
	options.annotations = PODS_IGNORED;
	assert_int_equal(selection_create("comm=x", "pod=y", &s, &second), 0);
	options.selection = s;
	assert_true(pod_choices_need_runtime(&options));
	selection_destroy(s);
	assert_true(pod_annotations_parse("opt-out", &annotations));
	assert_int_equal(annotations, PODS_OPT_OUT);
	assert_true(pod_annotations_parse("opt-in", &annotations));
	assert_int_equal(annotations, PODS_OPT_IN);
	assert_true(pod_annotations_parse("ignore", &annotations));
	assert_int_equal(annotations, PODS_IGNORED);
	assert_false(pod_annotations_parse("", &annotations));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_choose_by_annotation),
		cmocka_unit_test(our_annotation_is_stronger),
		cmocka_unit_test(selectors_match_what_is_told),
		cmocka_unit_test(what_is_in_dispute_is_unsettled),
		cmocka_unit_test(who_is_on_no_list),
		cmocka_unit_test(the_sampler_is_told_of_changes_only),
		cmocka_unit_test(settings_that_need_a_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
