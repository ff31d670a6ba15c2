/* SPDX-License-Identifier: Apache-2.0 */
/* When indexes are requested, and the effects of answers and of shortages. */
#include "tests/unit/module_indexes_fixture.h"

#include <errno.h>
#include <fcntl.h>

#include "base/foreign.h"

/* ---- questions ------------------------------------------------------------------------------ */

static void first_sample_asks_with_the_file_and_its_root(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	const struct fake_request *r;

	fake_proc_root(&w->table->proc, PARENT, "/");
	set_time(w, 0);
	hit(w, p);
	assert_int_equal(w->builds.request_count, 1);
	r = last_request(w);
	assert_int_equal(r->tag, program_of(p)->number);
	assert_int_equal(r->inode, w->table->program.inode);
	assert_true(r->has_root);
	assert_string_equal(r->path, w->table->program.path);
	assert_string_equal(r->directories, "/usr/lib/debug");
	assert_memory_equal(&r->id, &program_of(p)->id, sizeof(r->id));
	assert_int_equal(program_of(p)->used_ns, START);
	assert_true(module_indexes_is_awaited(w->indexes, program_of(p)));
	assert_false(module_indexes_is_absent(w->indexes, program_of(p)));
}

static void module_is_asked_for_once(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	hit_at(w, p, 0);
	hit_at(w, p, 1);
	hit_at(w, process_of(w, OTHER), 3600 * SECOND);
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(program_of(p)->used_ns, START + 3600 * SECOND);
}

static void index_with_lines_is_final(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	struct index *index = with_lines();

	make_indexes(w, (struct module_indexes_options){ .limit = MODULES, .servers_asked = true });
	hit_at(w, p, 0);
	assert_null(module_indexes_get(w->indexes, program_of(p)));
	answer(w, p, index);
	assert_int_equal(w->answered, 1);
	assert_ptr_equal(module_indexes_get(w->indexes, program_of(p)), index);
	assert_false(module_indexes_is_awaited(w->indexes, program_of(p)));
	hit_at(w, p, 24 * 3600 * SECOND);
	assert_int_equal(w->builds.request_count, 1);
}

static void answer_may_come_from_inside_of_the_request(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	answer_at_once(w);
	w->inside = with_lines();
	hit_at(w, p, 0);
	assert_int_equal(w->answered, 1);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	hit_at(w, p, 3600 * SECOND);
	assert_int_equal(w->builds.request_count, 1);
}

static void absent_index_is_asked_for_again_after_a_minute(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	hit_at(w, p, 0);
	answer(w, p, NULL);
	assert_int_equal(w->answered_none, 1);
	assert_true(module_indexes_is_absent(w->indexes, program_of(p)));
	assert_false(module_indexes_is_awaited(w->indexes, program_of(p)));
	hit_at(w, p, 59 * SECOND);
	assert_int_equal(w->builds.request_count, 1);
	hit_at(w, p, 60 * SECOND);
	assert_int_equal(w->builds.request_count, 2);
	/* Walks wait for the index again. */
	assert_false(module_indexes_is_absent(w->indexes, program_of(p)));
	assert_true(module_indexes_is_awaited(w->indexes, program_of(p)));
}

static void index_without_lines_is_asked_for_again_where_servers_are(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	make_indexes(w, (struct module_indexes_options){ .limit = MODULES, .servers_asked = true });
	hit_at(w, p, 0);
	answer(w, p, without_lines());
	hit_at(w, p, 599 * SECOND);
	assert_int_equal(w->builds.request_count, 1);
	hit_at(w, p, 600 * SECOND);
	assert_int_equal(w->builds.request_count, 2);
	/* The old index is used meanwhile: no walk waits. */
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	assert_false(module_indexes_is_awaited(w->indexes, program_of(p)));
}

/* Also by samples of stacks that are known; the index that comes then replaces the first one. */
static void an_index_whose_debug_file_is_late_is_asked_for_again_soon(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	w->builds.debug_is_late = true;
	hit_at(w, p, 0);
	answer(w, p, without_lines());
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	hit_at(w, p, 15 * SECOND - 1);
	assert_int_equal(w->builds.request_count, 1);
	set_time(w, 15 * SECOND);
	assert_true(module_indexes_wants_known_stacks(w->indexes));
	module_indexes_hit_again(w->indexes, p, program_of(p)->number);
	assert_int_equal(w->builds.request_count, 2);
	/* There was no answer from the files either, and no index for now. */
	answer(w, p, NULL);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	hit_at(w, p, 30 * SECOND);
	assert_int_equal(w->builds.request_count, 3);
	w->builds.debug_is_late = false;
	answer(w, p, with_lines());
	assert_int_equal(w->replaced, 1);
	hit_at(w, p, 3600 * SECOND);
	assert_int_equal(w->builds.request_count, 3);
}

static void without_servers_an_index_without_lines_is_final(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	hit_at(w, p, 0);
	answer(w, p, without_lines());
	hit_at(w, p, 24 * 3600 * SECOND);
	assert_int_equal(w->builds.request_count, 1);
}

static void only_a_better_index_replaces_another(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	struct index *better = with_lines();

	hit_at(w, p, 0);
	answer(w, p, without_lines());
	answer(w, p, without_lines());
	answer(w, p, NULL);
	assert_int_equal(w->replaced, 0);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	assert_false(module_indexes_is_absent(w->indexes, program_of(p)));
	answer(w, p, better);
	assert_int_equal(w->replaced, 1);
	assert_true(w->old_was_there);
	assert_ptr_equal(module_indexes_get(w->indexes, program_of(p)), better);
	answer(w, p, with_lines());
	assert_int_equal(w->replaced, 1);
	/* Walks that waited for the first index were resumed then. */
	assert_int_equal(w->answered, 1);
}

static void answer_for_a_forgotten_module_is_dropped(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	hit_at(w, p, 0);
	module_indexes_forget(w->indexes, program_of(p));
	answer(w, p, with_lines());
	assert_int_equal(w->answered, 0);
	assert_null(module_indexes_get(w->indexes, program_of(p)));
	module_indexes_forget(w->indexes, program_of(p));
	hit_at(w, p, 1);
	assert_int_equal(w->builds.request_count, 2);
}

static void memory_without_a_file_is_not_asked_for(void **state)
{
	struct world *w = *state;
	const struct process *p;

	show(w->table, PARENT, &w->table->program, (struct fake_process){ 0 });
	fake_proc_write(&w->table->proc, PARENT, "maps", "1000-2000 r-xp 00000000 00:00 0 \n");
	assert_int_equal(processes_scan(w->table->ps, NULL, 0), 0);
	p = sampled(w->table, PARENT, later);
	assert_non_null(p);
	assert_int_equal(mappings_at(p->mappings, 0)->module->kind, MODULE_ANON);
	set_time(w, 7);
	module_indexes_hit(w->indexes, p, mappings_at(p->mappings, 0));
	assert_int_equal(w->builds.request_count, 0);
	assert_int_equal(mappings_at(p->mappings, 0)->module->used_ns, START + 7);
}

static void vdso_is_asked_for_without_a_process(void **state)
{
	struct world *w = *state;
	const struct process *p;
	struct mapping vdso = { .start = 0x1000, .end = 0x2000 };

	p = process_of(w, PARENT);
	assert_int_equal(modules_get(w->table->modules, MODULE_VDSO, &(struct module_id){ 0 },
				 "[vdso]", &vdso.module),
		0);
	set_time(w, 0);
	module_indexes_hit(w->indexes, p, &vdso);
	assert_int_equal(w->builds.request_count, 1);
	assert_true(last_request(w)->inode != 0);
	assert_false(last_request(w)->has_root);
}

/* On aarch64 the first walk through a signal handler needs it. */
static void vdso_is_asked_for_with_a_program(void **state)
{
	struct world *w = *state;
	const struct process *p;

	(void)process_of(w, PARENT);
	exec(w->table, later, PARENT, &w->table->program);
	p = sampled(w->table, PARENT, later + 10);
	set_time(w, 0);
	module_indexes_hit_program(w->indexes, p);
	assert_int_equal(w->builds.request_count, 2);
	assert_string_equal(last_request(w)->path, "[vdso]");
	module_indexes_hit_program(w->indexes, p);
	assert_int_equal(w->builds.request_count, 2);
}

static void modules_beyond_the_limit_have_no_index_and_are_counted(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	const struct mapping *libc = mappings_find(p->mappings, 0x7f0000000010);

	make_indexes(w, (struct module_indexes_options){ .limit = 1 });
	hit_at(w, p, 0);
	module_indexes_hit(w->indexes, p, libc);
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(count(w->table, METRIC_MODULES_REFUSED), 1);
	assert_null(module_indexes_get(w->indexes, libc->module));
	assert_false(module_indexes_is_awaited(w->indexes, libc->module));
	/* Forgetting another module makes room. */
	module_indexes_forget(w->indexes, program_of(p));
	module_indexes_hit(w->indexes, p, libc);
	assert_int_equal(w->builds.request_count, 2);
}

/* ---- shortages ------------------------------------------------------------------------------ */

static void full_queue_is_asked_again_after_growing_pauses(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	const uint64_t pauses[] = { 1, 4, 15, 15, 15 };
	uint64_t at = 0;

	w->builds.error = -EAGAIN;
	hit_at(w, p, 0);
	assert_false(module_indexes_is_awaited(w->indexes, program_of(p)));
	for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
		at += pauses[i] * SECOND;
		hit_at(w, p, at - 1);
		assert_int_equal(w->builds.request_count, i + 1);
		hit_at(w, p, at);
		assert_int_equal(w->builds.request_count, i + 2);
	}
	assert_true(module_indexes_wants_known_stacks(w->indexes));
}

static void pauses_are_short_again_after_a_question_that_was_taken(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	w->builds.error = -ENOMEM;
	hit_at(w, p, 0);
	hit_at(w, p, 1 * SECOND);
	w->builds.error = 0;
	hit_at(w, p, 5 * SECOND);
	assert_true(module_indexes_is_awaited(w->indexes, program_of(p)));
	answer(w, p, NULL);
	w->builds.error = -ENOMEM;
	hit_at(w, p, 65 * SECOND);
	hit_at(w, p, 66 * SECOND);
	assert_int_equal(w->builds.request_count, 5);
}

static int open_directories_only(void *context, const struct foreign_path *path, int *ret_fd)
{
	(void)context;
	if (path->place != FOREIGN_DIRECTORY)
		return -EAGAIN;
	*ret_fd = open("/", O_PATH | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* Else its code would be taken for code without tables, and walked by frame pointer. */
static void a_file_that_does_not_answer_is_not_one_without_an_index(void **state)
{
	static const struct foreign silent = { .open = open_directories_only };
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	answer_at_once(w);
	foreign_current = &silent;
	hit_at(w, p, 0);
	foreign_current = NULL;
	/* By its identity alone: the cache has no index. */
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(last_request(w)->inode, 0);
	assert_int_equal(w->answered_none, 1);
	assert_false(module_indexes_is_absent(w->indexes, program_of(p)));
	assert_true(module_indexes_may_come(w->indexes, program_of(p)));
	w->inside = with_lines();
	hit_at(w, p, SECOND);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
}

/* A recording ends before the next sample would ask. */
static void what_was_postponed_can_be_asked_without_a_sample(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	assert_false(module_indexes_ask_postponed(w->indexes));
	w->builds.error = -EAGAIN;
	hit_at(w, p, 0);
	assert_true(module_indexes_ask_postponed(w->indexes));
	assert_int_equal(w->builds.request_count, 2);
	w->builds.error = 0;
	assert_false(module_indexes_ask_postponed(w->indexes));
	assert_int_equal(w->builds.request_count, 3);
	assert_true(module_indexes_is_awaited(w->indexes, program_of(p)));
	/* It is no longer postponed. */
	assert_false(module_indexes_ask_postponed(w->indexes));
	assert_int_equal(w->builds.request_count, 3);
}

/* For these, walks wait; not for a file that never answers. */
static void an_index_may_come_after_a_few_failures(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	assert_false(module_indexes_may_come(w->indexes, program_of(p)));
	w->builds.error = -EAGAIN;
	hit_at(w, p, 0);
	assert_true(module_indexes_may_come(w->indexes, program_of(p)));
	hit_at(w, p, SECOND);
	hit_at(w, p, 5 * SECOND);
	assert_true(module_indexes_may_come(w->indexes, program_of(p)));
	hit_at(w, p, 20 * SECOND);
	assert_false(module_indexes_may_come(w->indexes, program_of(p)));
	w->builds.error = 0;
	hit_at(w, p, 35 * SECOND);
	assert_false(module_indexes_may_come(w->indexes, program_of(p)));
	assert_true(module_indexes_is_awaited(w->indexes, program_of(p)));
}

static void without_descriptors_the_question_is_postponed(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	struct rlimit whole, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	none = whole;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	hit_at(w, p, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
	assert_false(module_indexes_is_awaited(w->indexes, program_of(p)));
	hit_at(w, p, SECOND - 1);
	assert_int_equal(w->builds.request_count, 0);
	/* The process did not lack the file, so it is asked again. */
	hit_at(w, p, SECOND);
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(last_request(w)->inode, w->table->program.inode);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void sizes_are_those_of_the_indexes_that_are_there(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	struct index *index = with_lines();

	assert_int_equal(module_indexes_bytes(w->indexes), 0);
	hit_at(w, p, 0);
	assert_int_equal(module_indexes_bytes(w->indexes), 0);
	answer(w, p, index);
	assert_int_equal(module_indexes_bytes(w->indexes), index_bytes(index));
	module_indexes_forget_pages(w->indexes);
	assert_string_equal(names(index, 10), "main");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(first_sample_asks_with_the_file_and_its_root),
		CASE(module_is_asked_for_once),
		CASE(index_with_lines_is_final),
		CASE(answer_may_come_from_inside_of_the_request),
		CASE(absent_index_is_asked_for_again_after_a_minute),
		CASE(index_without_lines_is_asked_for_again_where_servers_are),
		CASE(an_index_whose_debug_file_is_late_is_asked_for_again_soon),
		CASE(without_servers_an_index_without_lines_is_final),
		CASE(only_a_better_index_replaces_another),
		CASE(answer_for_a_forgotten_module_is_dropped),
		CASE(memory_without_a_file_is_not_asked_for),
		CASE(vdso_is_asked_for_without_a_process),
		CASE(vdso_is_asked_for_with_a_program),
		CASE(modules_beyond_the_limit_have_no_index_and_are_counted),
		CASE(full_queue_is_asked_again_after_growing_pauses),
		CASE(pauses_are_short_again_after_a_question_that_was_taken),
		CASE(a_file_that_does_not_answer_is_not_one_without_an_index),
		CASE(what_was_postponed_can_be_asked_without_a_sample),
		CASE(an_index_may_come_after_a_few_failures),
		CASE(without_descriptors_the_question_is_postponed),
		CASE(sizes_are_those_of_the_indexes_that_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
