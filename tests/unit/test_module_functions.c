/* SPDX-License-Identifier: Apache-2.0 */
/* When indexes with functions are requested, and what the one who wants them is told. */
#include "symbolizer/index/functions.h"
#include "tests/unit/module_indexes_fixture.h"

static struct index *with_functions(void)
{
	return index_from(INDEX_SOURCE_SYMTAB | INDEX_SOURCE_FUNCTIONS);
}

static int want(struct world *w, const struct process *p)
{
	return module_indexes_want_functions(w->indexes, p, mappings_find(p->mappings, 0x400010));
}

static void functions_are_asked_for_with_the_file(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	fake_proc_root(&w->table->proc, PARENT, "/");
	set_time(w, 0);
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->builds.request_count, 1);
	assert_true(last_request(w)->functions);
	assert_int_equal(last_request(w)->inode, w->table->program.inode);
	assert_true(last_request(w)->has_root);
	assert_true(module_indexes_is_awaited(w->indexes, program_of(p)));
	/* Nothing more until the answer, which is told once. */
	assert_int_equal(want(w, p), 0);
	hit(w, p);
	assert_int_equal(w->builds.request_count, 1);
	answer(w, p, with_functions());
	assert_int_equal(w->answered, 1);
	assert_int_equal(w->told, 1);
	assert_int_equal(w->told_none, 0);
}

static void who_wants_known_functions_is_told_at_once(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	hit_at(w, p, 0);
	answer(w, p, with_functions());
	assert_int_equal(w->told, 0);
	assert_int_equal(want(w, p), 0);
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->told, 2);
	assert_int_equal(w->told_none, 0);
	assert_int_equal(w->builds.request_count, 1);
}

static void an_index_without_functions_is_replaced(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	struct index *index = with_functions();

	hit_at(w, p, 0);
	answer(w, p, with_lines());
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->builds.request_count, 2);
	assert_true(last_request(w)->functions);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	answer(w, p, index);
	assert_int_equal(w->replaced, 1);
	assert_true(w->old_was_there);
	assert_int_equal(w->told, 1);
	assert_ptr_equal(module_indexes_get(w->indexes, program_of(p)), index);
	/* Lines do not take them away again. */
	answer(w, p, with_lines());
	assert_int_equal(w->replaced, 1);
	answer(w, p, index_from(INDEX_SOURCE_DWARF | INDEX_SOURCE_FUNCTIONS));
	assert_int_equal(w->replaced, 2);
	assert_int_equal(w->told, 1);
	assert_int_equal(w->answered, 1);
}

static void functions_may_be_wanted_while_an_index_is_awaited(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	hit_at(w, p, 0);
	assert_false(last_request(w)->functions);
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->builds.request_count, 2);
	assert_true(last_request(w)->functions);
	answer(w, p, with_functions());
	assert_int_equal(w->answered, 1);
	assert_int_equal(w->told, 1);
}

static void the_answer_may_come_from_inside(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	set_time(w, 0);
	answer_at_once(w);
	w->inside = with_functions();
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->told, 1);
	assert_int_equal(w->told_none, 0);
}

static void that_there_are_none_is_told_and_asked_again_after_a_minute(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	set_time(w, 0);
	assert_int_equal(want(w, p), 0);
	answer(w, p, NULL);
	assert_int_equal(w->told_none, 1);
	set_time(w, 59 * SECOND);
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->told_none, 2);
	assert_int_equal(w->builds.request_count, 1);
	set_time(w, 60 * SECOND);
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->builds.request_count, 2);
	assert_int_equal(w->told, 2);
	/* An index that lacks functions, because nothing can decode them here. */
	answer(w, p, with_lines());
	assert_int_equal(w->told_none, 3);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
}

static void a_request_that_fails_is_reported_and_may_be_repeated(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	set_time(w, 0);
	w->builds.error = -EAGAIN;
	assert_int_equal(want(w, p), -EAGAIN);
	assert_int_equal(w->told, 0);
	assert_false(module_indexes_is_awaited(w->indexes, program_of(p)));
	w->builds.error = 0;
	assert_int_equal(want(w, p), 0);
	assert_int_equal(w->builds.request_count, 2);
	answer(w, p, with_functions());
	assert_int_equal(w->told, 1);
}

static void a_file_that_cannot_be_opened_is_not_asked_for(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	set_time(w, 0);
	remove_program(w);
	fake_proc_remove(&w->table->proc, PARENT);
	assert_true(want(w, p) < 0);
	assert_int_equal(w->builds.request_count, 0);
	assert_int_equal(w->told, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(functions_are_asked_for_with_the_file),
		CASE(who_wants_known_functions_is_told_at_once),
		CASE(an_index_without_functions_is_replaced),
		CASE(functions_may_be_wanted_while_an_index_is_awaited),
		CASE(the_answer_may_come_from_inside),
		CASE(that_there_are_none_is_told_and_asked_again_after_a_minute),
		CASE(a_request_that_fails_is_reported_and_may_be_repeated),
		CASE(a_file_that_cannot_be_opened_is_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
