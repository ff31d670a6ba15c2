/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/samples while each allocation fails in turn. */
#include "tests/unit/torture.h"

#include "tests/unit/walks_fixture.h"

/* ---- pending walks -------------------------------------------------------------------------- */

struct waiting_walks {
	struct walks_fixture *w;
	struct abi_unfinished *unfinished[3]; /* of threads 1 to 3 */
};

static void begin_walks(void *context)
{
	struct waiting_walks *walks = context;
	void *state = NULL;

	assert_int_equal(walks_set_up(&state), 0);
	walks->w = state;
	walks->w->waiting[0] = walk_program(walks->w);
	for (uint32_t i = 0; i < 3; i++)
		walks->unfinished[i] = walk_unfinished(WALK_WINDOW + i % 2, i + 1);
}

/* Three walks wait, for one module and then for the next; one window is sealed meanwhile. */
static int let_walks_wait(void *context)
{
	const struct waiting_walks *walks = context;
	struct walks_fixture *w = walks->w;
	const struct module *libc = walk_libc(w);

	for (uint32_t i = 0; i < 3; i++)
		walk_finish_made(w, walks->unfinished[i]);
	w->waiting[0] = libc;
	pending_walks_module_known(&w->walks);
	pending_walks_retry(&w->walks, 2);
	pending_walks_retry(&w->walks, 2);
	pending_walks_flush(&w->walks, WALK_WINDOW);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	return 0;
}

static void each_walk_came_to_an_end(void *context, int result)
{
	const struct waiting_walks *walks = context;
	const struct walks_fixture *w = walks->w;
	void *state = walks->w;
	uint32_t tids = 0;

	assert_int_equal(result, 0);
	assert_int_equal(w->added_count + w->lost, 3);
	assert_int_equal(w->walks.waiting_bytes, 0);
	for (size_t i = 0; i < w->added_count; i++)
		tids |= 1U << w->added[i].record.sample.tid;
	if (w->lost)
		tids |= 1U << w->last_lost.tid;
	assert_int_equal(tids, 0xe);
	if (!torture_failed())
		assert_int_equal(w->lost, 0);
	for (uint32_t i = 0; i < 3; i++)
		free(walks->unfinished[i]);
	walks_tear_down(&state);
}

static void a_walk_without_memory_is_added_or_lost_but_not_both(void **state)
{
	struct waiting_walks walks;
	struct torture t = {
		.begin = begin_walks,
		.operation = let_walks_wait,
		.end = each_walk_came_to_an_end,
		.context = &walks,
		.optional = "*",
	};

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_walk_without_memory_is_added_or_lost_but_not_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
