/* SPDX-License-Identifier: Apache-2.0 */
/* The memory guard with the test's own statm file and an owner that counts its requests. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/memory/memory_guard.h"

enum { LIMIT_PAGES = 1000, NEAR_PAGES = 850, WINDOW_LIMIT = 4000, LOOKUPS = 16 };

struct fixture {
	struct memory_guard guard;
	struct metrics metrics;
	int statm_fd;
	uint64_t page_bytes;
	unsigned int after_shrinking; /* resident pages after shrinking; 0 = as before */
	uint64_t window_bytes;
	bool window_busy;
	unsigned int shrunk, forgotten, ended; /* calls */
};

static void set_statm(struct fixture *f, const char *text)
{
	assert_int_equal(ftruncate(f->statm_fd, 0), 0);
	assert_int_equal(pwrite(f->statm_fd, text, strlen(text), 0), strlen(text));
}

static void set_resident(struct fixture *f, unsigned int pages, unsigned int file_pages)
{
	char text[64];

	snprintf(text, sizeof(text), "9000 %u %u 100 0 300 0\n", pages, file_pages);
	set_statm(f, text);
}

static void shrink_caches(void *context)
{
	struct fixture *f = context;

	f->shrunk++;
	if (f->after_shrinking)
		set_resident(f, f->after_shrinking, 0);
}

static void forget_index_pages(void *context)
{
	struct fixture *f = context;

	f->forgotten++;
}

static uint64_t window_bytes(void *context)
{
	const struct fixture *f = context;

	return f->window_bytes;
}

static bool end_window(void *context)
{
	struct fixture *f = context;

	if (f->window_busy)
		return false;
	f->ended++;
	f->window_bytes = 0;
	return true;
}

static void guard_init(struct fixture *f, uint64_t limit_bytes, int statm_fd)
{
	memory_guard_init(&f->guard, &(struct memory_guard_options){
					     .statm_fd = statm_fd,
					     .limit_bytes = limit_bytes,
					     .window_limit_bytes = WINDOW_LIMIT,
					     .metrics = &f->metrics,
					     .shrink_caches = shrink_caches,
					     .forget_index_pages = forget_index_pages,
					     .window_bytes = window_bytes,
					     .end_window = end_window,
					     .context = f,
				     });
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	f->statm_fd = memfd_create("statm", MFD_CLOEXEC);
	guard_init(f, LIMIT_PAGES * f->page_bytes, f->statm_fd);
	*state = f;
	return f->statm_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	close(f->statm_fd);
	free(f);
	return 0;
}

static void check(struct fixture *f, unsigned int times)
{
	while (times--)
		memory_guard_check(&f->guard);
}

static uint64_t count(const struct fixture *f, enum metric metric)
{
	return metrics_get(&f->metrics, metric);
}

static void nothing_is_shrunk_below_the_limit(void **state)
{
	struct fixture *f = *state;

	set_resident(f, NEAR_PAGES - 10, 0);
	f->window_bytes = WINDOW_LIMIT;
	check(f, 10);
	assert_int_equal(f->shrunk, 0);
	assert_int_equal(f->ended, 0);
}

static void shrunk_caches_that_free_enough_leave_the_window_open(void **state)
{
	struct fixture *f = *state;

	set_resident(f, NEAR_PAGES + 10, 0);
	f->after_shrinking = NEAR_PAGES - 10;
	f->window_bytes = WINDOW_LIMIT;
	check(f, 2);
	assert_int_equal(f->shrunk, 1);
	assert_int_equal(f->forgotten, 1);
	assert_int_equal(f->ended, 0);
	assert_int_equal(count(f, METRIC_MEMORY_CACHES), 1);
	assert_int_equal(count(f, METRIC_MEMORY_WINDOW), 0);
}

static void window_ends_early_where_caches_do_not_free_enough(void **state)
{
	struct fixture *f = *state;

	set_resident(f, LIMIT_PAGES, 0);
	f->window_bytes = WINDOW_LIMIT / 4 + 1;
	check(f, 1);
	assert_int_equal(f->ended, 1);
	assert_int_equal(count(f, METRIC_MEMORY_WINDOW), 1);
}

/* Ending the window would free little, and would cost one more profile. */
static void window_with_few_samples_does_not_end_early(void **state)
{
	struct fixture *f = *state;

	set_resident(f, LIMIT_PAGES, 0);
	f->window_bytes = WINDOW_LIMIT / 4;
	check(f, 1);
	assert_int_equal(f->shrunk, 1);
	assert_int_equal(f->ended, 0);
}

static void window_that_cannot_end_now_is_not_counted(void **state)
{
	struct fixture *f = *state;

	set_resident(f, LIMIT_PAGES, 0);
	f->window_bytes = WINDOW_LIMIT;
	f->window_busy = true;
	check(f, 1);
	memory_guard_check_window(&f->guard);
	assert_int_equal(count(f, METRIC_MEMORY_WINDOW), 0);
}

/* Which checks shrink caches in vain: the first, then those after 1, 3, 7, … skipped ones. */
static void guard_pauses_for_longer_while_shrinking_does_not_help(void **state)
{
	struct fixture *f = *state;
	unsigned int skipped[] = { 1, 3, 7, 15, 31, 63, 64, 64 };

	set_resident(f, LIMIT_PAGES, 0);
	check(f, 1);
	for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
		check(f, skipped[i]);
		assert_int_equal(f->shrunk, i + 1);
		check(f, 1);
		assert_int_equal(f->shrunk, i + 2);
	}
}

static void guard_forgets_its_pauses_once_memory_is_free(void **state)
{
	struct fixture *f = *state;

	set_resident(f, LIMIT_PAGES, 0);
	check(f, 1 + 1 + 1);
	assert_int_equal(f->shrunk, 2);
	set_resident(f, 10, 0);
	check(f, 1);
	set_resident(f, LIMIT_PAGES, 0);
	check(f, 1);
	assert_int_equal(f->shrunk, 3);
	check(f, 1 + 1);
	assert_int_equal(f->shrunk, 4);
}

static void nearly_full_window_ends_whatever_memory_is_free(void **state)
{
	struct fixture *f = *state;

	set_resident(f, 10, 0);
	f->window_bytes = WINDOW_LIMIT / 4 * 3;
	memory_guard_check_window(&f->guard);
	assert_int_equal(f->ended, 0);
	f->window_bytes++;
	memory_guard_check_window(&f->guard);
	assert_int_equal(f->ended, 1);
	memory_guard_check_window(&f->guard);
	assert_int_equal(f->ended, 1);
}

static void without_a_limit_nothing_is_shrunk(void **state)
{
	struct fixture *f = *state;

	guard_init(f, 0, f->statm_fd);
	set_resident(f, 1000 * LIMIT_PAGES, 0);
	check(f, 3);
	assert_int_equal(f->shrunk, 0);
}

static void memory_that_cannot_be_measured_is_near_no_limit(void **state)
{
	struct fixture *f = *state;

	set_statm(f, "9000 what");
	check(f, 1);
	set_statm(f, "");
	check(f, 1);
	/* However low the limit is. */
	guard_init(f, 1, -1);
	check(f, 1);
	guard_init(f, LIMIT_PAGES * f->page_bytes, -1);
	check(f, 1);
	memory_guard_release(&f->guard);
	assert_int_equal(f->shrunk, 0);
	assert_int_equal(f->forgotten, 1);
}

/* The rest of a long line is not read. */
static void only_the_first_figures_are_read(void **state)
{
	struct fixture *f = *state;
	char text[256];

	memset(text, '1', sizeof(text));
	text[sizeof(text) - 1] = 0;
	memcpy(text, "9000 1 1 ", 9);
	set_statm(f, text);
	check(f, 1);
	assert_int_equal(f->shrunk, 0);
	memset(text, ' ', 90);
	memcpy(text, "9000 99999999 1 ", 16);
	set_statm(f, text);
	check(f, 1);
	assert_int_equal(f->shrunk, 1);
}

static void look_up(struct fixture *f, unsigned int times)
{
	while (times--)
		memory_guard_count_lookup(&f->guard);
}

/* Makes the guard know what is resident without index pages; returns how many of them are many. */
static unsigned int begin_without_index_pages(struct fixture *f)
{
	set_resident(f, 600, 100);
	memory_guard_release(&f->guard);
	assert_int_equal(f->forgotten, 1);
	return (unsigned int)((4 << 20) / f->page_bytes);
}

static void index_pages_are_forgotten_when_lookups_have_mapped_many(void **state)
{
	struct fixture *f = *state;
	unsigned int many = begin_without_index_pages(f);

	set_resident(f, 600, 100 + many - 1);
	look_up(f, 4 * LOOKUPS);
	assert_int_equal(f->forgotten, 1);
	set_resident(f, 600, 100 + many);
	look_up(f, LOOKUPS - 1);
	assert_int_equal(f->forgotten, 1);
	look_up(f, 1);
	assert_int_equal(f->forgotten, 2);
	/* The memory that is resident without the caches is the new base. */
	look_up(f, 4 * LOOKUPS);
	assert_int_equal(f->forgotten, 2);
}

static void few_index_pages_stay_from_window_to_window(void **state)
{
	struct fixture *f = *state;
	unsigned int many = begin_without_index_pages(f);

	set_resident(f, 600, 100 + many - 1);
	memory_guard_release(&f->guard);
	memory_guard_release(&f->guard);
	assert_int_equal(f->forgotten, 1);
	set_resident(f, 600, 100 + many);
	memory_guard_release(&f->guard);
	assert_int_equal(f->forgotten, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_shrunk_below_the_limit),
		CASE(shrunk_caches_that_free_enough_leave_the_window_open),
		CASE(window_ends_early_where_caches_do_not_free_enough),
		CASE(window_with_few_samples_does_not_end_early),
		CASE(window_that_cannot_end_now_is_not_counted),
		CASE(guard_pauses_for_longer_while_shrinking_does_not_help),
		CASE(guard_forgets_its_pauses_once_memory_is_free),
		CASE(nearly_full_window_ends_whatever_memory_is_free),
		CASE(without_a_limit_nothing_is_shrunk),
		CASE(memory_that_cannot_be_measured_is_near_no_limit),
		CASE(only_the_first_figures_are_read),
		CASE(index_pages_are_forgotten_when_lookups_have_mapped_many),
		CASE(few_index_pages_stay_from_window_to_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
