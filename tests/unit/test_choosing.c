/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes are profiled by what is told of their containers, and which control groups not at
 * all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/choosing.h"
#include "agent/sampler/process/left_out_cgroups.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/process/selection.h"
#include "base/cleanup.h"

#define SIXTEEN "0123456789abcdef"
#define ONE SIXTEEN SIXTEEN SIXTEEN SIXTEEN
#define TWO SIXTEEN SIXTEEN SIXTEEN "fedcba9876543210"
#define SLICE "/kubepods.slice/cri-containerd-"

enum { LISTED_FROM = 1000, LISTED_UNTIL = 1100 };

struct fixture {
	struct choosing choosing;
	struct selection *selection;
	struct left_out_cgroups cgroups;
	struct process process;
	/* What the kernel is told, and says. */
	uint64_t left_out[4];
	size_t left_out_count;
	int leave_out_error, path_error;
	char path[256]; /* of every group */
	unsigned int paths_asked;
};

static int leave_out(void *context, uint64_t id, bool out)
{
	struct fixture *f = context;

	if (out && f->leave_out_error)
		return f->leave_out_error;
	if (out) {
		f->left_out[f->left_out_count++] = id;
		return 0;
	}
	for (size_t i = 0; i < f->left_out_count; i++) {
		if (f->left_out[i] == id) {
			f->left_out[i] = f->left_out[--f->left_out_count];
			return 0;
		}
	}
	fail_msg("%llu is not left out", (unsigned long long)id);
	return 0;
}

/* The id is not used: test fixtures have one path. */
static struct fixture *path_fixture;

static int path_of(uint64_t id, char *path, size_t size)
{
	(void)id;
	path_fixture->paths_asked++;
	if (path_fixture->path_error)
		return path_fixture->path_error;
	snprintf(path, size, "%s", path_fixture->path);
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	choosing_init(&f->choosing);
	left_out_cgroups_init(&f->cgroups, &(struct left_out_cgroups_options){
						   .choosing = &f->choosing,
						   .path_of = path_of,
						   .leave_out = leave_out,
						   .context = f,
					   });
	path_fixture = f;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	left_out_cgroups_deinit(&f->cgroups);
	choosing_deinit(&f->choosing);
	selection_destroy(f->selection);
	cgroup_paths_unref(f->process.cgroups);
	free(f);
	return 0;
}

static void select_lists(struct fixture *f, const char *include, const char *exclude)
{
	bool second;

	choosing_select(&f->choosing, NULL);
	selection_destroy(f->selection);
	f->selection = NULL;
	assert_int_equal(selection_create(include, exclude, &f->selection, &second), 0);
	choosing_select(&f->choosing, f->selection);
}

/* Says FLAGS of ONE (0: nothing is said of it), by a list that was made between the two times. */
static bool tell(struct fixture *f, uint32_t flags, bool known)
{
	struct container_choices *choices;

	assert_int_equal(container_choices_create(&choices), 0);
	choices->incomplete = true;
	choices->listed_from_ns = LISTED_FROM;
	choices->listed_until_ns = LISTED_UNTIL;
	if (known)
		assert_int_equal(container_choices_add(choices, ONE, "", flags), 0);
	return choosing_take(&f->choosing, choices);
}

static void be_in(struct fixture *f, const char *container_id, const char *cgroups)
{
	snprintf(f->process.container_id, sizeof(f->process.container_id), "%s", container_id);
	cgroup_paths_unref(f->process.cgroups);
	f->process.cgroups = NULL;
	assert_int_equal(cgroup_paths_read(cgroups, strlen(cgroups), &f->process.cgroups), 0);
}

static enum choosing_answer at(struct fixture *f, uint64_t time_ns)
{
	return choosing_of(&f->choosing, &f->process, time_ns);
}

static void set_comm(struct fixture *f, const char *comm)
{
	snprintf(f->process.comm, sizeof(f->process.comm), "%s", comm);
}

static void set_pod(struct fixture *f, const char *uid)
{
	snprintf(f->process.pod_uid, sizeof(f->process.pod_uid), "%s", uid);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void what_is_stronger(void **state)
{
	static const struct {
		const char *include, *exclude;
		uint32_t flags;
		enum choosing_answer answer;
	} cases[] = {
		{ NULL, NULL, 0, CHOICE_WANTED },
		{ NULL, NULL, CONTAINER_DECLINED, CHOICE_UNWANTED },
		{ NULL, NULL, CONTAINER_ASKED, CHOICE_WANTED },
		{ NULL, NULL, CONTAINER_EXCLUDED | CONTAINER_ASKED, CHOICE_UNWANTED },
		{ NULL, NULL, CONTAINER_UNSETTLED, CHOICE_OPEN },
		{ NULL, NULL, CONTAINER_UNSETTLED | CONTAINER_EXCLUDED, CHOICE_UNWANTED },
		{ NULL, "comm=me", CONTAINER_ASKED, CHOICE_UNWANTED },
		{ NULL, "comm=me", CONTAINER_UNSETTLED, CHOICE_UNWANTED },
		{ NULL, "comm=you", 0, CHOICE_WANTED },
		{ "namespace=x", NULL, 0, CHOICE_UNWANTED },
		{ "namespace=x", NULL, CONTAINER_INCLUDED, CHOICE_WANTED },
		{ "namespace=x", NULL, CONTAINER_ASKED, CHOICE_WANTED },
		{ "namespace=x", NULL, CONTAINER_INCLUDED | CONTAINER_DECLINED, CHOICE_UNWANTED },
		{ "namespace=x", NULL, CONTAINER_INCLUDED | CONTAINER_EXCLUDED, CHOICE_UNWANTED },
		{ "namespace=x", NULL, CONTAINER_UNSETTLED, CHOICE_OPEN },
		{ "comm=me", NULL, 0, CHOICE_WANTED },
		{ "comm=me", NULL, CONTAINER_DECLINED, CHOICE_UNWANTED },
		{ "comm=you,namespace=x", NULL, CONTAINER_INCLUDED, CHOICE_WANTED },
	};
	struct fixture *f = *state;

	be_in(f, ONE "/" TWO, "");
	set_comm(f, "me");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		select_lists(f, cases[i].include, cases[i].exclude);
		(void)tell(f, cases[i].flags, true);
		print_message("case %zu\n", i);
		assert_int_equal(at(f, 5000), cases[i].answer);
		f->process.open = cases[i].answer == CHOICE_OPEN;
		if (!cases[i].exclude && !cases[i].include)
			assert_int_equal(choosing_keeps(&f->choosing, &f->process, 5000),
				cases[i].answer == CHOICE_WANTED);
	}
}

static void nothing_to_choose_wants_everything(void **state)
{
	struct fixture *f = *state;

	assert_false(choosing_is_needed(&f->choosing));
	be_in(f, ONE, "");
	assert_int_equal(at(f, 1), CHOICE_WANTED);
	assert_true(choosing_keeps(&f->choosing, &f->process, 1));
	(void)tell(f, 0, false);
	assert_true(choosing_is_needed(&f->choosing));
	/* No container, and one that only a user claims: neither has a pod. */
	be_in(f, "", "");
	assert_int_equal(at(f, 1), CHOICE_WANTED);
	be_in(f, "user-1000/" ONE, "");
	assert_int_equal(at(f, 1), CHOICE_WANTED);
	assert_int_equal(f->choosing.missed, 0);
}

/* Only one that was there all the time while the list was made can be said to be on none. */
static void a_container_on_no_list_has_no_pod_if_it_existed_meanwhile(void **state)
{
	struct fixture *f = *state;

	be_in(f, TWO, "");
	(void)tell(f, CONTAINER_DECLINED, true);
	assert_int_equal(at(f, LISTED_FROM - 1), CHOICE_OPEN);
	assert_int_equal(at(f, LISTED_UNTIL - 1), CHOICE_OPEN);
	assert_int_equal(f->choosing.missed, 2);
	assert_int_equal(at(f, LISTED_UNTIL), CHOICE_WANTED);
	assert_int_equal(at(f, LISTED_FROM), CHOICE_WANTED);
	/* Until it is told of, after all. */
	be_in(f, ONE, "");
	assert_int_equal(at(f, LISTED_UNTIL), CHOICE_UNWANTED);
}

static void a_container_that_began_after_the_list_is_open(void **state)
{
	struct fixture *f = *state;

	be_in(f, TWO, "");
	(void)tell(f, 0, true);
	assert_int_equal(at(f, LISTED_FROM + 1), CHOICE_OPEN);
	assert_int_equal(at(f, LISTED_UNTIL + 1), CHOICE_OPEN);
	f->process.open = true;
	assert_false(choosing_keeps(&f->choosing, &f->process, LISTED_UNTIL + 2));
}

static void one_that_must_be_known_is_open_where_no_runtime_answers(void **state)
{
	struct container_choices *choices;
	struct fixture *f = *state;

	be_in(f, ONE, "");
	assert_int_equal(container_choices_create(&choices), 0);
	choices->incomplete = true;
	(void)choosing_take(&f->choosing, choices);
	assert_int_equal(at(f, 1), CHOICE_OPEN);
	assert_int_equal(at(f, UINT64_MAX), CHOICE_OPEN);
	assert_int_equal(container_choices_create(&choices), 0);
	(void)choosing_take(&f->choosing, choices);
	assert_int_equal(at(f, 1), CHOICE_WANTED);
}

/* What was open when it was sampled is answered at the end; what was not keeps its answer. */
static void the_include_list_is_asked_again_for_what_was_open(void **state)
{
	struct fixture *f = *state;

	be_in(f, ONE, "");
	set_comm(f, "me");
	select_lists(f, "namespace=x", NULL);
	(void)tell(f, 0, true);
	assert_true(choosing_keeps(&f->choosing, &f->process, 1));
	f->process.open = true;
	assert_false(choosing_keeps(&f->choosing, &f->process, 1));
	(void)tell(f, CONTAINER_INCLUDED, true);
	assert_true(choosing_keeps(&f->choosing, &f->process, 1));
	(void)tell(f, CONTAINER_INCLUDED | CONTAINER_EXCLUDED, true);
	f->process.open = false;
	assert_false(choosing_keeps(&f->choosing, &f->process, 1));
}

static void thousands_of_unknown_containers_are_bounded(void **state)
{
	struct fixture *f = *state;
	char id[65];

	(void)tell(f, 0, false);
	for (unsigned int n = 0; n < 20000; n++) {
		snprintf(id, sizeof(id), "%064x", n);
		be_in(f, id, "");
		assert_int_equal(at(f, 1), CHOICE_OPEN);
	}
	assert_true(f->choosing.seen_capacity <= 8192);
	assert_int_equal(at(f, LISTED_UNTIL), CHOICE_WANTED);
}

/* The control group names another pod than the runtime does. */
static void a_pod_in_dispute(void **state)
{
	struct fixture *f = *state;
	struct container_choices *choices;

	be_in(f, ONE, "");
	set_pod(f, "two");
	assert_int_equal(container_choices_create(&choices), 0);
	assert_int_equal(container_choices_add(choices, ONE, "one", CONTAINER_INCLUDED), 0);
	(void)choosing_take(&f->choosing, choices);
	assert_int_equal(at(f, 1), CHOICE_WANTED);
	select_lists(f, "namespace=x", NULL);
	assert_int_equal(at(f, 1), CHOICE_UNWANTED);
	choices->strict = true;
	assert_int_equal(at(f, 1), CHOICE_OPEN);
	set_pod(f, "one");
	assert_int_equal(at(f, 1), CHOICE_WANTED);
	set_pod(f, "");
	assert_int_equal(at(f, 1), CHOICE_WANTED);
	set_pod(f, "two");
	choices->strict = false;
	select_lists(f, NULL, NULL);
	assert_int_equal(container_choices_add(choices, ONE, "one", CONTAINER_DECLINED), 0);
	assert_int_equal(at(f, 1), CHOICE_UNWANTED);
}

/* ---- what is told --------------------------------------------------------------------------- */

static void choices_agree_whenever_they_were_listed(void **state)
{
	struct container_choices *a, *b;

	(void)state;
	assert_int_equal(container_choices_create(&a), 0);
	assert_int_equal(container_choices_create(&b), 0);
	assert_true(container_choices_agree(NULL, NULL));
	assert_false(container_choices_agree(a, NULL));
	a->listed_until_ns = 1;
	assert_true(container_choices_agree(a, b));
	assert_int_equal(container_choices_add(a, ONE, "", 1), 0);
	assert_false(container_choices_agree(a, b));
	assert_int_equal(container_choices_add(b, TWO, "", 1), 0);
	assert_false(container_choices_agree(a, b));
	assert_int_equal(container_choices_add(a, TWO, "", 1), 0);
	assert_int_equal(container_choices_add(b, ONE, "", 4), 0);
	assert_false(container_choices_agree(a, b));
	assert_int_equal(container_choices_add(a, ONE, "", 4), 0);
	assert_int_equal(container_choices_add(b, ONE, "", 1), 0);
	assert_true(container_choices_agree(a, b));
	b->incomplete = true;
	assert_false(container_choices_agree(a, b));
	assert_int_equal(container_choices_add(a, "short", "", 1), -EINVAL);
	assert_int_equal(a->count, 2);
	container_choices_destroy(a);
	container_choices_destroy(b);
	container_choices_destroy(NULL);
}

/* ---- control groups ------------------------------------------------------------------------- */

static void consider(struct fixture *f, uint64_t id, const char *path)
{
	snprintf(f->path, sizeof(f->path), "%s", path);
	left_out_cgroups_consider(&f->cgroups, &f->process, id);
}

static void an_unwanted_containers_group_is_left_out(void **state)
{
	struct fixture *f = *state;

	be_in(f, ONE, "0::" SLICE ONE ".scope\n");
	(void)tell(f, CONTAINER_DECLINED, true);
	consider(f, 7, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 1);
	assert_int_equal(f->left_out[0], 7);
	consider(f, 7, SLICE ONE ".scope");
	assert_int_equal(f->paths_asked, 1);
	/* Not by an id that is not known. */
	consider(f, 0, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 1);
	/* The same is said again: nothing changes. Then something else. */
	assert_false(tell(f, CONTAINER_DECLINED, true));
	assert_true(tell(f, 0, true));
	left_out_cgroups_clear(&f->cgroups);
	assert_int_equal(f->left_out_count, 0);
	consider(f, 7, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 0);
}

/* The sample's thread was in a group that its process, when it was looked at, had left. */
static void a_group_is_judged_by_its_own_path(void **state)
{
	struct fixture *f = *state;

	be_in(f, ONE, "0::" SLICE ONE ".scope\n");
	(void)tell(f, CONTAINER_DECLINED, true);
	consider(f, 7, SLICE TWO ".scope");
	consider(f, 8, "/system.slice/ssh.service");
	consider(f, 9, "/");
	f->path_error = -EPERM;
	consider(f, 10, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 0);
}

/* Beside cgroup v1 the group of version 2 may be everybody's. */
static void where_version_1_counts_only_containers_are_left_out(void **state)
{
	struct fixture *f = *state;

	select_lists(f, "namespace=x", NULL);
	be_in(f, "", "4:cpu:/a\n0::/\n");
	consider(f, 1, "/");
	assert_int_equal(f->left_out_count, 0);
	be_in(f, ONE, "4:cpu:/a\n0::" SLICE ONE ".scope\n");
	(void)tell(f, CONTAINER_DECLINED, true);
	consider(f, 2, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 1);
	/* Not if paths count, which may differ. */
	left_out_cgroups_clear(&f->cgroups);
	select_lists(f, NULL, "cgroup=/a");
	consider(f, 2, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 0);
	be_in(f, "", "0::/a\n");
	consider(f, 3, "/a");
	assert_int_equal(f->left_out_count, 1);
}

static void what_needs_the_process_is_not_left_out(void **state)
{
	static const struct {
		const char *include, *exclude;
		uint32_t flags;
		bool left_out;
	} cases[] = {
		{ NULL, "comm=me", 0, false },
		{ "comm=you", NULL, 0, false },
		{ "comm=you", NULL, CONTAINER_DECLINED, true },
		{ "comm=you", NULL, CONTAINER_EXCLUDED, true },
		{ "comm=you,namespace=x", NULL, 0, false },
		{ "namespace=x", NULL, 0, true },
		{ "namespace=x", NULL, CONTAINER_INCLUDED, false },
		{ "namespace=x", NULL, CONTAINER_ASKED, false },
		{ "namespace=x", NULL, CONTAINER_UNSETTLED, false },
		{ "cgroup=" SLICE "*", NULL, 0, false },
		{ "cgroup=/other", NULL, 0, true },
		{ NULL, "cgroup=" SLICE "*", CONTAINER_ASKED, true },
		{ NULL, "container_id=0123*", CONTAINER_ASKED, true },
		{ "container_id=0123*", NULL, 0, false },
	};
	struct fixture *f = *state;

	be_in(f, ONE, "0::" SLICE ONE ".scope\n");
	set_comm(f, "me");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		select_lists(f, cases[i].include, cases[i].exclude);
		(void)tell(f, cases[i].flags, true);
		left_out_cgroups_clear(&f->cgroups);
		consider(f, 7, SLICE ONE ".scope");
		print_message("case %zu\n", i);
		assert_int_equal(f->left_out_count, cases[i].left_out);
	}
	/* Nor what nobody has told of. */
	select_lists(f, "namespace=x", NULL);
	(void)tell(f, 0, false);
	left_out_cgroups_clear(&f->cgroups);
	consider(f, 7, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 0);
}

static void groups_that_are_gone_are_forgotten(void **state)
{
	struct fixture *f = *state;

	be_in(f, ONE, "0::" SLICE ONE ".scope\n");
	(void)tell(f, CONTAINER_DECLINED, true);
	consider(f, 7, SLICE ONE ".scope");
	consider(f, 8, "/other");
	left_out_cgroups_sweep(&f->cgroups);
	assert_int_equal(f->left_out_count, 1);
	assert_int_equal(f->cgroups.considered.count, 2);
	f->path_error = -EPERM;
	left_out_cgroups_sweep(&f->cgroups);
	assert_int_equal(f->left_out_count, 1);
	f->path_error = -ENOENT;
	left_out_cgroups_sweep(&f->cgroups);
	assert_int_equal(f->left_out_count, 0);
	assert_int_equal(f->cgroups.considered.count, 0);
	/* Its id may be another's now. */
	f->path_error = 0;
	consider(f, 7, SLICE ONE ".scope");
	assert_int_equal(f->left_out_count, 1);
}

/* The map of the kernel is full: samples of this group are decided one by one. */
static void no_room_in_the_kernel(void **state)
{
	struct fixture *f = *state;

	be_in(f, ONE, "0::" SLICE ONE ".scope\n");
	(void)tell(f, CONTAINER_DECLINED, true);
	f->leave_out_error = -E2BIG;
	consider(f, 7, SLICE ONE ".scope");
	left_out_cgroups_clear(&f->cgroups);
	assert_int_equal(f->left_out_count, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_stronger),
		CASE(nothing_to_choose_wants_everything),
		CASE(a_container_on_no_list_has_no_pod_if_it_existed_meanwhile),
		CASE(a_container_that_began_after_the_list_is_open),
		CASE(one_that_must_be_known_is_open_where_no_runtime_answers),
		CASE(the_include_list_is_asked_again_for_what_was_open),
		CASE(thousands_of_unknown_containers_are_bounded),
		CASE(a_pod_in_dispute),
		CASE(choices_agree_whenever_they_were_listed),
		CASE(an_unwanted_containers_group_is_left_out),
		CASE(a_group_is_judged_by_its_own_path),
		CASE(where_version_1_counts_only_containers_are_left_out),
		CASE(what_needs_the_process_is_not_left_out),
		CASE(groups_that_are_gone_are_forgotten),
		CASE(no_room_in_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
