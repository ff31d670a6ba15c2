/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/server/export/debuginfo/debuginfo_known.h"

enum { DAY_S = 24 * 3600, NOW_S = 1795262400 };

struct fixture {
	char directory[32];
	struct debuginfo_known known;
};

static int set_up(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .directory = "/tmp/fathom-known-XXXXXX" };
	*state = &f;
	return !mkdtemp(f.directory) || debuginfo_known_init(&f.known, f.directory, NOW_S);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char path[64];

	debuginfo_known_deinit(&f->known);
	snprintf(path, sizeof(path), "%s/debuginfo-known", f->directory);
	unlink(path);
	return rmdir(f->directory);
}

static void a_file_is_known_until_its_time(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(debuginfo_known_add(&f->known, 7, NOW_S + DAY_S, NOW_S), 0);
	assert_true(debuginfo_known_has(&f->known, 7, NOW_S));
	assert_true(debuginfo_known_has(&f->known, 7, NOW_S + DAY_S - 1));
	assert_false(debuginfo_known_has(&f->known, 7, NOW_S + DAY_S));
	assert_false(debuginfo_known_has(&f->known, 8, NOW_S));
}

/* No entry lasts a month: the clock was wrong when it was written. */
static void an_entry_far_in_the_future_is_ignored(void **state)
{
	struct fixture *f = *state;
	const int64_t wrong_s = NOW_S + 30 * DAY_S;

	assert_int_equal(debuginfo_known_add(&f->known, 7, wrong_s + DAY_S, wrong_s), 0);
	assert_int_equal(debuginfo_known_write(&f->known, 7, wrong_s + DAY_S), 0);
	assert_true(debuginfo_known_has(&f->known, 7, wrong_s));
	assert_false(debuginfo_known_has(&f->known, 7, NOW_S));
	/* Nor at the next start. */
	debuginfo_known_deinit(&f->known);
	assert_int_equal(debuginfo_known_init(&f->known, f->directory, NOW_S), 0);
	assert_false(debuginfo_known_has(&f->known, 7, NOW_S));
	assert_false(debuginfo_known_has(&f->known, 7, wrong_s));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_is_known_until_its_time),
		CASE(an_entry_far_in_the_future_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
