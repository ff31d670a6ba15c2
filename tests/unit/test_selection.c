/* SPDX-License-Identifier: Apache-2.0 */
/* `--include` and `--exclude`: their syntax, and which processes they select. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/processes.h"
#include "agent/sampler/process/selection.h"

static char nginx_path[] = "/usr/sbin/nginx";
static struct module nginx_file = { .path = nginx_path };
static const struct process NGINX = {
	.pid = 4711,
	.comm = "nginx: worker",
	.container_id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.executable = &nginx_file,
};
static const struct process THREAD = { .pid = 17, .comm = "kworker/0:1", .kernel_thread = true };

static bool chosen(const char *include, const char *exclude, const struct process *p)
{
	struct selection *s = NULL;
	bool second, wants;

	assert_int_equal(selection_create(include, exclude, &s, &second), 0);
	assert_non_null(s);
	wants = selection_wants(s, p);
	selection_destroy(s);
	return wants;
}

static void no_selectors_select_everything(void **state)
{
	struct selection *s = NULL;
	bool second;

	(void)state;
	assert_int_equal(selection_create(NULL, NULL, &s, &second), 0);
	assert_null(s);
	assert_int_equal(selection_create("", "", &s, &second), 0);
	assert_null(s);
	selection_destroy(NULL);
}

static void each_key_chooses(void **state)
{
	(void)state;
	assert_true(chosen("pid=4711", NULL, &NGINX));
	assert_false(chosen("pid=471", NULL, &NGINX));
	assert_true(chosen("comm=nginx: *", NULL, &NGINX));
	assert_false(chosen("comm=nginx", NULL, &NGINX));
	assert_true(chosen("container_id=0123456789ab*", NULL, &NGINX));
	assert_false(chosen("container_id=0123456789ab", NULL, &NGINX));
}

static void program_by_name_or_path(void **state)
{
	(void)state;
	assert_true(chosen("executable=nginx", NULL, &NGINX));
	assert_true(chosen("executable=/usr/sbin/*", NULL, &NGINX));
	assert_true(chosen("executable=*/nginx", NULL, &NGINX));
	assert_false(chosen("executable=sbin", NULL, &NGINX));
	assert_false(chosen("executable=/sbin/nginx", NULL, &NGINX));
	assert_false(chosen("executable=*", NULL, &THREAD));
}

static void a_comma_behind_a_backslash_is_part_of_a_glob(void **state)
{
	const struct process list = { .pid = 18, .comm = "a,b" };

	(void)state;
	assert_true(chosen("comm=x,comm=a\\,?", NULL, &list));
	assert_false(chosen("comm=x", "comm=a\\,b,comm=y", &list));
}

static void a_control_group_by_its_path(void **state)
{
	static const char text[] = "4:cpu:/a/b\n3:memory:/c:d\n0::/a/b\nnonsense\n";
	struct process p = NGINX;

	(void)state;
	assert_false(chosen("cgroup=*", NULL, &p));
	assert_int_equal(cgroup_paths_read(text, strlen(text), &p.cgroups), 0);
	assert_true(chosen("cgroup=/a/*", NULL, &p));
	assert_true(chosen("cgroup=/c:d", NULL, &p));
	assert_false(chosen("cgroup=/a", NULL, &p));
	assert_false(chosen(NULL, "cgroup=/a/b", &p));
	assert_false(chosen("cgroup=nonsense", NULL, &p));
	assert_false(cgroup_paths_are_unified(p.cgroups));
	assert_true(cgroup_paths_have(p.cgroups, "/c:d"));
	assert_false(cgroup_paths_have(p.cgroups, "/c"));
	cgroup_paths_unref(p.cgroups);
	assert_int_equal(cgroup_paths_read("0::/x\n", 6, &p.cgroups), 0);
	assert_true(cgroup_paths_are_unified(p.cgroups));
	cgroup_paths_unref(p.cgroups);
	assert_int_equal(cgroup_paths_read("", 0, &p.cgroups), 0);
	assert_false(cgroup_paths_are_unified(p.cgroups));
	assert_false(cgroup_paths_match(p.cgroups, "*"));
	cgroup_paths_unref(p.cgroups);
	cgroup_paths_unref(NULL);
}

/* A pod with everything but a container's name. */
static const char *pod_value(void *context, const char *key, const char *name)
{
	(void)context;
	if (!strcmp(key, "namespace"))
		return "prod";
	if (!strcmp(key, "pod"))
		return "shop-1";
	if (!strcmp(key, "container"))
		return "";
	if (!strcmp(key, "label"))
		return strcmp(name, "app.kubernetes.io/name") ? NULL : "shop";
	assert_string_equal(key, "annotation");
	return strcmp(name, "a=b") ? NULL : "x";
}

static void pods_are_matched_apart_from_processes(void **state)
{
	static const struct {
		const char *list;
		bool matches;
	} cases[] = { { "namespace=pro*", true }, { "namespace=pr", false }, { "pod=shop-?", true },
		{ "container=*", false }, { "label.app.kubernetes.io/name=shop", true },
		{ "label.app=shop", false }, { "label.app=*", false }, { "comm=shop,pod=*", true },
		{ "comm=*,pid=*,executable=*,container_id=*,cgroup=*", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct selection *s = NULL;
		bool second;

		assert_int_equal(selection_create(NULL, cases[i].list, &s, &second), 0);
		assert_int_equal(selection_matches_pod(s, SELECTION_EXCLUDE, pod_value, NULL),
			cases[i].matches);
		assert_false(selection_matches_pod(s, SELECTION_INCLUDE, pod_value, NULL));
		selection_destroy(s);
	}
	assert_false(selection_matches_pod(NULL, SELECTION_INCLUDE, pod_value, NULL));
}

static void what_a_selection_needs_to_know(void **state)
{
	struct selection *s = NULL;
	bool second;

	(void)state;
	assert_int_equal(selection_create("comm=x", "annotation.a=b", &s, &second), 0);
	assert_true(selection_needs_pods(s));
	assert_true(selection_needs_process(s, SELECTION_INCLUDE));
	assert_false(selection_needs_process(s, SELECTION_EXCLUDE));
	assert_false(selection_needs_paths(s));
	selection_destroy(s);
	s = NULL;
	assert_int_equal(selection_create("cgroup=x", NULL, &s, &second), 0);
	assert_false(selection_needs_pods(s));
	assert_false(selection_needs_process(s, SELECTION_INCLUDE));
	assert_true(selection_needs_paths(s));
	assert_true(selection_is_empty(s, SELECTION_EXCLUDE));
	assert_false(selection_is_empty(s, SELECTION_INCLUDE));
	selection_destroy(s);
	assert_false(selection_needs_pods(NULL));
	assert_true(selection_is_empty(NULL, SELECTION_INCLUDE));
}

static void exclude_wins(void **state)
{
	(void)state;
	assert_false(chosen("executable=nginx", "pid=4711", &NGINX));
	assert_false(chosen(NULL, "comm=kworker*", &THREAD));
	assert_true(chosen(NULL, "comm=kworker*", &NGINX));
	assert_true(chosen("comm=x,executable=nginx", "comm=y", &NGINX));
}

static void refused(const char *include, const char *exclude, int error, bool in_second)
{
	struct selection *untouched = (struct selection *)&NGINX, *s = untouched;
	bool second = !in_second;

	assert_int_equal(selection_create(include, exclude, &s, &second), error);
	assert_ptr_equal(s, untouched);
	assert_int_equal(second, in_second);
}

static void invalid_values_are_refused(void **state)
{
	static const char *const bad[] = { "nginx", "=nginx", "pid=", "Pid=1", "executable",
		"pid=1,", ",pid=1", "pid=1,,comm=x", "name=x" };
	char many[(SELECTION_MAX + 1) * sizeof("pid=1")];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		refused(bad[i], NULL, -EINVAL, false);
		refused("pid=1", bad[i], -EINVAL, true);
	}
	for (size_t i = 0; i < sizeof(many); i++)
		many[i] = "pid=1,"[i % sizeof("pid=1")];
	many[sizeof(many) - 1] = 0;
	refused(many, NULL, -E2BIG, false);
	/* With one condition less the list is accepted. */
	assert_false(chosen(many + sizeof("pid=1"), NULL, &NGINX));
}

static void written(const char *include, const char *exclude)
{
	struct buffer lists[2];
	struct selection *s = NULL;
	bool second;

	assert_int_equal(selection_create(include, exclude, &s, &second), 0);
	for (int i = 0; i < 2; i++) {
		buffer_init(&lists[i], 4096);
		assert_int_equal(selection_write(s, i, &lists[i]), 0);
		assert_int_equal(buffer_append(&lists[i], "", 1), 0);
		assert_string_equal((char *)lists[i].bytes, i ? exclude : include);
		buffer_deinit(&lists[i]);
	}
	selection_destroy(s);
}

static void selectors_are_written_as_they_were_read(void **state)
{
	(void)state;
	written("", "");
	written("pid=1", "");
	written("", "comm=a\\,b,container_id=01*");
	written("executable=/usr/*,pid=2,comm=x", "comm=kworker*");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_selectors_select_everything),
		cmocka_unit_test(each_key_chooses),
		cmocka_unit_test(program_by_name_or_path),
		cmocka_unit_test(a_comma_behind_a_backslash_is_part_of_a_glob),
		cmocka_unit_test(a_control_group_by_its_path),
		cmocka_unit_test(pods_are_matched_apart_from_processes),
		cmocka_unit_test(what_a_selection_needs_to_know),
		cmocka_unit_test(exclude_wins),
		cmocka_unit_test(invalid_values_are_refused),
		cmocka_unit_test(selectors_are_written_as_they_were_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
