/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/jit_maps while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include "tests/unit/jit_maps_fixture.h"

struct tortured {
	struct jit_world *w;
	struct process *p, *child;
};

static void begin(void *context)
{
	struct tortured *t = context;
	void *state = NULL;

	assert_int_equal(set_up(&state), 0);
	*t = (struct tortured){ .w = state };
	t->p = process_of(t->w, PARENT);
	t->child = process_of(t->w, CHILD);
	write_map(t->w, PARENT, "w", "1000 10 first\n");
}

static void end_of_try(struct tortured *t)
{
	void *state = t->w;

	tear_down(&state);
}

/* Adds a sample later than all pauses, and returns the name at PC. */
static const char *later_name_of(struct tortured *t, struct process *p, uint64_t pc)
{
	clock_ns += 3600 * SECOND;
	hit(t->w, p);
	return name_of(t->w, p, pc);
}

static int create_maps(void *context)
{
	struct tortured *t = context;
	struct jit_maps *maps = NULL;
	int err = jit_maps_create(
		&(struct jit_maps_options){ .proc_fd = t->w->table->proc.fd, .limit = 1 }, &maps);

	assert_int_equal(maps != NULL, err == 0);
	jit_maps_destroy(maps);
	return err;
}

static void end_of_create(void *context, int result)
{
	(void)result;
	end_of_try(context);
}

static void maps_are_created_whole_or_not_at_all(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin, .operation = create_maps, .end = end_of_create, .context = &t });
}

static int sample(void *context)
{
	struct tortured *t = context;

	hit(t->w, t->p);
	return 0;
}

static void the_map_was_read_or_is_read_later(void *context, int result)
{
	struct tortured *t = context;
	const char *name = name_at(jit_maps_get(t->w->maps, t->p), 0x1008);

	assert_int_equal(result, 0);
	if (!torture_failed())
		assert_string_equal(name, "first");
	else
		assert_true(!*name || !strcmp(name, "first"));
	assert_string_equal(later_name_of(t, t->p, 0x1008), "first");
	end_of_try(t);
}

static void a_map_that_cannot_be_read_is_read_later(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin,
		.operation = sample,
		.end = the_map_was_read_or_is_read_later,
		.context = &t,
		.optional = "*" });
}

static void begin_rewritten(void *context)
{
	struct tortured *t = context;

	begin(context);
	hit(t->w, t->p);
	clock_ns += SECOND + MS;
	write_map(t->w, PARENT, "w", "1000 10 moved\n");
}

/* The sample is from before the reading, so another program may have written the file. */
static int sample_and_supersede(void *context)
{
	struct tortured *t = context;

	jit_maps_hit(t->w->maps, t->p, clock_ns - MS);
	end(t->w, t->p, true);
	return 0;
}

static void the_name_is_the_programs_own(void *context, int result)
{
	struct tortured *t = context;
	const char *name = name_of(t->w, t->p, 0x1008);

	assert_int_equal(result, 0);
	assert_string_equal(name, "first");
	end_of_try(t);
}

static void a_rewritten_map_is_never_taken_for_the_programs(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_rewritten,
		.operation = sample_and_supersede,
		.end = the_name_is_the_programs_own,
		.context = &t,
		.optional = "*" });
}

static void the_new_names_come_at_once_or_later(void *context, int result)
{
	struct tortured *t = context;
	const char *name = name_of(t->w, t->p, 0x1008);

	assert_int_equal(result, 0);
	if (!torture_failed())
		assert_string_equal(name, "moved");
	assert_string_equal(later_name_of(t, t->p, 0x1008), "moved");
	end_of_try(t);
}

static void a_map_that_the_program_rewrote_is_read_in_the_end(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_rewritten,
		.operation = sample,
		.end = the_new_names_come_at_once_or_later,
		.context = &t,
		.optional = "*" });
}

static void begin_fork(void *context)
{
	struct tortured *t = context;

	begin(context);
	hit(t->w, t->p);
}

static int fork_process(void *context)
{
	struct tortured *t = context;

	jit_maps_forked(t->w->maps, t->p, t->child, clock_ns);
	return 0;
}

static void the_child_has_all_names_or_none(void *context, int result)
{
	struct tortured *t = context;
	const char *name = name_of(t->w, t->child, 0x1008);

	assert_int_equal(result, 0);
	if (!torture_failed())
		assert_string_equal(name, "first");
	else
		assert_true(!*name || !strcmp(name, "first"));
	assert_string_equal(later_name_of(t, t->p, 0x1008), "first");
	end_of_try(t);
}

static void a_forked_child_without_memory_has_no_map(void **state)
{
	struct tortured t;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_fork,
		.operation = fork_process,
		.end = the_child_has_all_names_or_none,
		.context = &t,
		.optional = "*" });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(maps_are_created_whole_or_not_at_all),
		torture_test(a_map_that_cannot_be_read_is_read_later),
		torture_test(a_rewritten_map_is_never_taken_for_the_programs),
		torture_test(a_map_that_the_program_rewrote_is_read_in_the_end),
		torture_test(a_forked_child_without_memory_has_no_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
