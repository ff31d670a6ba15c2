/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/module_indexes while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include "tests/unit/module_indexes_fixture.h"

struct tortured {
	struct world *w;
	const struct process *p, *other; /* two processes of one program */
	struct index *index, *others[3];
};

static void begin(void *context)
{
	struct tortured *t = context;
	void *state = NULL;

	assert_int_equal(set_up(&state), 0);
	*t = (struct tortured){ .w = state };
	t->p = process_of(t->w, PARENT);
	t->other = process_of(t->w, OTHER);
	fake_proc_root(&t->w->table->proc, PARENT, "/");
	set_time(t->w, 0);
}

static void end(struct tortured *t)
{
	void *state = t->w;

	tear_down(&state);
}

/* Adds a sample of the other process, later than all pauses. */
static void hit_later(struct tortured *t)
{
	hit_at(t->w, t->other, 3600 * SECOND);
}

/* ---- requests ------------------------------------------------------------------------------- */

static int create_indexes(void *context)
{
	struct module_indexes *indexes = NULL;
	int err = module_indexes_create(
		&(struct module_indexes_options){
			.limit = MODULES, .answered = on_answered, .replaced = on_replaced },
		&indexes);

	(void)context;
	assert_int_equal(indexes != NULL, err == 0);
	module_indexes_destroy(indexes);
	return err;
}

static void end_of_create(void *context, int result)
{
	(void)result;
	end(context);
}

static void module_indexes_are_created_whole_or_not_at_all(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin, .operation = create_indexes, .end = end_of_create, .context = &t });
}

static int request(void *context)
{
	struct tortured *t = context;

	hit(t->w, t->p);
	return 0;
}

/* One request is sent, at once or with a later sample, and its answer arrives. */
static void a_request_was_sent_or_is_sent_later(void *context, int result)
{
	struct tortured *t = context;
	struct world *w = t->w;

	assert_int_equal(result, 0);
	if (!torture_failed())
		assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(module_indexes_is_awaited(w->indexes, program_of(t->p)),
		w->builds.request_count == 1);
	/* Without the root, debug files of the host would be taken for the container's. */
	if (w->builds.request_count)
		assert_true(last_request(w)->has_root);
	hit_later(t);
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(last_request(w)->tag, program_of(t->p)->number);
	answer(w, t->p, with_lines());
	assert_non_null(module_indexes_get(w->indexes, program_of(t->p)));
	end(t);
}

static void a_request_that_fails_is_made_again(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin,
		.operation = request,
		.end = a_request_was_sent_or_is_sent_later,
		.context = &t,
		.optional = "*" });
}

/* ---- indexes of the cache ------------------------------------------------------------------- */

static void begin_cached(void *context)
{
	struct tortured *t = context;

	begin(context);
	t->index = t->w->cache.index = with_lines();
}

static int execute(void *context)
{
	struct tortured *t = context;

	module_indexes_executed(t->w->indexes, program_of(t->p));
	return 0;
}

/* The index was taken, or stays in the cache and is requested by a sample. */
static void the_index_has_one_owner(void *context, int result)
{
	struct tortured *t = context;
	struct world *w = t->w;
	const struct index *taken = module_indexes_get(w->indexes, program_of(t->p));

	assert_int_equal(result, 0);
	if (!torture_failed())
		assert_ptr_equal(taken, t->index);
	assert_ptr_equal(taken ? NULL : t->index, w->cache.index);
	assert_int_equal(w->answered, taken ? 1 : 0);
	hit_later(t);
	assert_int_equal(w->builds.request_count, taken ? 0 : 1);
	end(t);
}

static void an_index_of_the_cache_is_taken_or_left(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_cached,
		.operation = execute,
		.end = the_index_has_one_owner,
		.context = &t,
		.optional = "*" });
}

static void begin_incomplete(void *context)
{
	struct tortured *t = context;

	begin(context);
	t->w->cache.index = without_lines();
}

/* Its debug file may exist by now, so it is freed and requested by a sample. */
static void the_incomplete_index_is_freed(void *context, int result)
{
	struct tortured *t = context;
	struct world *w = t->w;

	assert_int_equal(result, 0);
	assert_null(module_indexes_get(w->indexes, program_of(t->p)));
	if (!torture_failed())
		assert_null(w->cache.index);
	hit_later(t);
	assert_int_equal(w->builds.request_count, 1);
	end(t);
}

static void an_incomplete_index_of_the_cache_is_freed(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_incomplete,
		.operation = execute,
		.end = the_incomplete_index_is_freed,
		.context = &t,
		.optional = "*" });
}

/* ---- answers -------------------------------------------------------------------------------- */

static void begin_answers(void *context)
{
	struct tortured *t = context;

	begin(context);
	hit(t->w, t->p);
	t->index = with_lines();
}

static int answer_forgotten(void *context)
{
	struct tortured *t = context;
	uint64_t tag = program_of(t->p)->number;

	module_indexes_forget(t->w->indexes, program_of(t->p));
	module_indexes_answer(t->w->indexes, tag, t->index);
	return 0;
}

static void nobody_was_answered(void *context, int result)
{
	struct tortured *t = context;

	assert_int_equal(result, 0);
	assert_int_equal(t->w->answered, 0);
	assert_null(module_indexes_get(t->w->indexes, program_of(t->p)));
	end(t);
}

static void an_index_of_a_forgotten_module_is_freed(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_answers,
		.operation = answer_forgotten,
		.end = nobody_was_answered,
		.context = &t,
		.optional = "*" });
}

static void begin_many_answers(void *context)
{
	struct tortured *t = context;

	begin_answers(context);
	t->others[0] = without_lines();
	t->others[1] = without_lines();
	t->others[2] = with_lines();
}

static int answer_again(void *context)
{
	struct tortured *t = context;

	answer(t->w, t->p, t->others[0]);
	answer(t->w, t->p, t->index);
	answer(t->w, t->p, t->others[1]);
	answer(t->w, t->p, t->others[2]);
	return 0;
}

/* Of the four answers the second is better than the first, and the others are not. */
static void the_better_index_was_kept(void *context, int result)
{
	struct tortured *t = context;

	assert_int_equal(result, 0);
	assert_ptr_equal(module_indexes_get(t->w->indexes, program_of(t->p)), t->index);
	assert_int_equal(t->w->answered, 1);
	assert_int_equal(t->w->replaced, 1);
	end(t);
}

static void of_many_answers_one_index_is_kept(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_many_answers,
		.operation = answer_again,
		.end = the_better_index_was_kept,
		.context = &t,
		.optional = "*" });
}

/* ---- files that the owner wants ------------------------------------------------------------- */

static void begin_offers(void *context)
{
	struct tortured *t = context;

	begin(context);
	make_indexes(t->w,
		(struct module_indexes_options){
			.limit = MODULES, .wants_file = on_wants_file, .take_file = on_take_file });
	t->w->wants_file = true;
	answer_at_once(t->w);
}

/* A file that could not be opened is offered again; a taken file is open. */
static void the_file_was_taken_or_is_offered_later(void *context, int result)
{
	struct tortured *t = context;
	struct world *w = t->w;
	struct stat st;

	assert_int_equal(result, 0);
	if (!torture_failed())
		assert_true(w->taken_fd >= 0);
	if (w->taken_fd < 0)
		hit_later(t);
	assert_int_equal(fstat(w->taken_fd, &st), 0);
	assert_int_equal(st.st_ino, w->table->program.inode);
	end(t);
}

static void a_file_that_cannot_be_opened_is_offered_again(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_offers,
		.operation = request,
		.end = the_file_was_taken_or_is_offered_later,
		.context = &t,
		.optional = "*" });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(module_indexes_are_created_whole_or_not_at_all),
		torture_test(a_request_that_fails_is_made_again),
		torture_test(an_index_of_the_cache_is_taken_or_left),
		torture_test(an_incomplete_index_of_the_cache_is_freed),
		torture_test(an_index_of_a_forgotten_module_is_freed),
		torture_test(of_many_answers_one_index_is_kept),
		torture_test(a_file_that_cannot_be_opened_is_offered_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
