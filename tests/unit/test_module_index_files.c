/* SPDX-License-Identifier: Apache-2.0 */
/* Module files that cannot be opened, that have a cached index, or that the owner wants. */
#include "tests/unit/module_indexes_fixture.h"

/* ---- files that cannot be opened ------------------------------------------------------------ */

static void file_that_is_gone_is_asked_for_by_what_is_known_of_it(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	remove_program(w);
	hit_at(w, p, 0);
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(last_request(w)->inode, 0);
	assert_int_equal(count(w->table, METRIC_MODULE_OPEN_FAILED), 1);
}

static void index_in_the_cache_makes_up_for_a_file_that_is_gone(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	remove_program(w);
	answer_at_once(w);
	w->inside = with_lines();
	hit_at(w, p, 0);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	hit_at(w, process_of(w, OTHER), 1);
	assert_int_equal(w->builds.request_count, 1);
	assert_false(module_indexes_wants_known_stacks(w->indexes));
}

static void next_process_with_the_file_is_asked_at_once(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT), *other = process_of(w, OTHER);

	remove_program(w);
	show_kept_program(w, OTHER);
	answer_at_once(w);
	hit_at(w, p, 0);
	assert_false(module_indexes_is_awaited(w->indexes, program_of(p)));
	/* The same process still lacks the file. */
	hit_at(w, p, 59 * SECOND);
	assert_int_equal(w->builds.request_count, 1);
	w->builds.answer = NULL;
	hit_at(w, other, 59 * SECOND);
	assert_int_equal(w->builds.request_count, 2);
	assert_int_equal(last_request(w)->inode, w->table->program.inode);
	assert_true(module_indexes_is_awaited(w->indexes, program_of(p)));
}

static void process_without_the_file_is_asked_again_after_a_minute(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	remove_program(w);
	answer_at_once(w);
	hit_at(w, p, 0);
	assert_true(module_indexes_is_absent(w->indexes, program_of(p)));
	hit_at(w, p, 60 * SECOND);
	assert_int_equal(w->builds.request_count, 2);
}

/* A program that runs a single loop has no other stacks. */
static void known_stacks_ask_for_ten_seconds(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT), *other = process_of(w, OTHER);
	uint32_t number = program_of(p)->number;

	assert_false(module_indexes_wants_known_stacks(w->indexes));
	remove_program(w);
	hit_at(w, p, 0);
	assert_true(module_indexes_wants_known_stacks(w->indexes));
	set_time(w, 10 * SECOND - 1);
	assert_true(module_indexes_wants_known_stacks(w->indexes));
	module_indexes_hit_again(w->indexes, p, number);
	assert_int_equal(w->builds.request_count, 1);
	show_kept_program(w, OTHER);
	module_indexes_hit_again(w->indexes, other, number);
	assert_int_equal(w->builds.request_count, 2);
	/* The index is requested already: another process requests nothing. */
	module_indexes_hit_again(w->indexes, p, number);
	module_indexes_hit_again(w->indexes, p, 12345);
	assert_int_equal(w->builds.request_count, 2);
	set_time(w, 10 * SECOND);
	assert_false(module_indexes_wants_known_stacks(w->indexes));
}

/* The record of the mapping came before the file could be examined. */
static void file_that_nobody_has_seen_is_identified_when_it_is_opened(void **state)
{
	struct world *w = *state;
	struct fixture *t = w->table;
	const struct mapping *mapping;
	const struct process *p;
	char away[PATH_MAX + 8];

	snprintf(away, sizeof(away), "%s.away", t->other.path);
	process_of(w, PARENT);
	assert_int_equal(rename(t->other.path, away), 0);
	map(t, later - 2, PARENT, 0x500000, &t->other);
	p = sampled(t, PARENT, later);
	mapping = mappings_find(p->mappings, 0x500010);
	assert_true(file_hash_is_none(&mapping->module->id.content));
	set_time(w, 0);
	module_indexes_hit(w->indexes, p, mapping);
	assert_int_equal(w->builds.request_count, 0);
	assert_int_equal(rename(away, t->other.path), 0);
	process_of(w, OTHER);
	module_indexes_hit(w->indexes, sampled(t, OTHER, later), mapping);
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(last_request(w)->inode, t->other.inode);
	assert_false(file_hash_is_none(&last_request(w)->id.content));
}

/* The file's only process had exited when the record came; another process identifies it later. */
static void file_that_was_seen_elsewhere_is_asked_for_before_the_window_ends(void **state)
{
	struct world *w = *state;
	struct fixture *t = w->table;
	const struct process *p;
	char away[PATH_MAX + 8];

	snprintf(away, sizeof(away), "%s.away", t->other.path);
	process_of(w, PARENT);
	assert_int_equal(rename(t->other.path, away), 0);
	map(t, later - 2, PARENT, 0x500000, &t->other);
	p = sampled(t, PARENT, later);
	set_time(w, 0);
	module_indexes_hit(w->indexes, p, mappings_find(p->mappings, 0x500010));
	module_indexes_identify(w->indexes);
	assert_int_equal(w->builds.request_count, 0);
	assert_int_equal(rename(away, t->other.path), 0);
	process_of(w, OTHER);
	map(t, later - 1, OTHER, 0x500000, &t->other);
	module_indexes_identify(w->indexes);
	assert_int_equal(w->builds.request_count, 1);
	assert_int_equal(last_request(w)->inode, 0);
	assert_false(file_hash_is_none(&last_request(w)->id.content));
	/* The index is requested already. */
	module_indexes_identify(w->indexes);
	assert_int_equal(w->builds.request_count, 1);
}

/* ---- the cache ------------------------------------------------------------------------------ */

static void executed_program_has_its_index_from_the_cache(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	w->cache.index = with_lines();
	module_indexes_executed(w->indexes, program_of(p));
	assert_int_equal(w->answered, 1);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
	assert_int_equal(count(w->table, METRIC_INDEX_CACHE_HITS), 1);
	assert_true(program_of(p)->used_ns > 0);
	module_indexes_executed(w->indexes, program_of(p));
	hit_at(w, p, 0);
	assert_int_equal(w->cache.looks, 1);
	assert_int_equal(w->builds.request_count, 0);
}

static void program_that_is_not_cached_waits_for_a_sample(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	module_indexes_executed(w->indexes, program_of(p));
	module_indexes_executed(w->indexes, program_of(p));
	assert_int_equal(w->cache.looks, 1);
	assert_int_equal(w->answered, 0);
	assert_int_equal(w->builds.request_count, 0);
	set_time(w, 0);
	module_indexes_hit_program(w->indexes, p);
	assert_int_equal(w->builds.request_count, 1);
}

/* A debug file may exist by now; fathom looks for it when the program is sampled. */
static void cached_index_that_lacks_debug_files_is_not_taken(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	w->cache.index = without_lines();
	module_indexes_executed(w->indexes, program_of(p));
	assert_null(module_indexes_get(w->indexes, program_of(p)));
	assert_int_equal(count(w->table, METRIC_INDEX_CACHE_HITS), 0);
	module_indexes_executed(w->indexes, program_of(p));
	assert_int_equal(w->cache.looks, 1);
	hit_at(w, p, 0);
	assert_int_equal(w->builds.request_count, 1);
}

static void cache_that_cannot_be_read_now_is_searched_again(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	w->cache.error = -EMFILE;
	module_indexes_executed(w->indexes, program_of(p));
	w->cache.index = with_lines();
	module_indexes_executed(w->indexes, program_of(p));
	assert_int_equal(w->cache.looks, 2);
	assert_non_null(module_indexes_get(w->indexes, program_of(p)));
}

/* ---- files for the owner -------------------------------------------------------------------- */

static void make_offering(struct world *w)
{
	make_indexes(w, (struct module_indexes_options){
				.limit = MODULES,
				.wants_file = on_wants_file,
				.take_file = on_take_file,
			});
}

static void owner_gets_the_file_that_it_wants(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);
	struct stat st;

	make_offering(w);
	w->wants_file = true;
	hit_at(w, p, 0);
	assert_true(w->taken_fd >= 0);
	assert_int_equal(fstat(w->taken_fd, &st), 0);
	assert_int_equal(st.st_ino, w->table->program.inode);
	/* The builds have a duplicate of the descriptor. */
	assert_int_equal(last_request(w)->inode, st.st_ino);
}

static void owner_is_asked_once_a_minute(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	make_offering(w);
	hit_at(w, p, 0);
	hit_at(w, p, 60 * SECOND - 1);
	assert_int_equal(w->asked_owner, 1);
	assert_int_equal(w->taken_fd, -1);
	hit_at(w, p, 60 * SECOND);
	assert_int_equal(w->asked_owner, 2);
}

static void owner_that_changed_its_mind_is_asked_at_once(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	make_offering(w);
	hit_at(w, p, 0);
	set_time(w, SECOND);
	module_indexes_offer_files_again(w->indexes);
	w->wants_file = true;
	hit_at(w, p, SECOND);
	assert_int_equal(w->asked_owner, 2);
	assert_true(w->taken_fd >= 0);
}

static void owner_gets_nothing_of_a_file_that_is_gone(void **state)
{
	struct world *w = *state;
	const struct process *p = process_of(w, PARENT);

	make_offering(w);
	remove_program(w);
	w->wants_file = true;
	hit_at(w, p, 0);
	assert_int_equal(w->asked_owner, 1);
	assert_int_equal(w->taken_fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(file_that_is_gone_is_asked_for_by_what_is_known_of_it),
		CASE(index_in_the_cache_makes_up_for_a_file_that_is_gone),
		CASE(next_process_with_the_file_is_asked_at_once),
		CASE(process_without_the_file_is_asked_again_after_a_minute),
		CASE(known_stacks_ask_for_ten_seconds),
		CASE(file_that_nobody_has_seen_is_identified_when_it_is_opened),
		CASE(file_that_was_seen_elsewhere_is_asked_for_before_the_window_ends),
		CASE(executed_program_has_its_index_from_the_cache),
		CASE(program_that_is_not_cached_waits_for_a_sample),
		CASE(cached_index_that_lacks_debug_files_is_not_taken),
		CASE(cache_that_cannot_be_read_now_is_searched_again),
		CASE(owner_gets_the_file_that_it_wants),
		CASE(owner_is_asked_once_a_minute),
		CASE(owner_that_changed_its_mind_is_asked_at_once),
		CASE(owner_gets_nothing_of_a_file_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
