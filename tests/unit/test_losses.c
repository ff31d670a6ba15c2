/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged and remembered about lost samples and records. */
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

#include "agent/sampler/losses.h"
#include "base/cleanup.h"

struct fixture {
	struct losses losses;
	struct metrics metrics;
	char text[4096]; /* what the last look logged */
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static const char *look(struct fixture *f)
{
	autoclose int log_fd = memfd_create("log", MFD_CLOEXEC);
	autoclose int stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	ssize_t length;

	assert_true(log_fd >= 0 && stderr_fd >= 0);
	fflush(stderr);
	assert_true(dup3(log_fd, STDERR_FILENO, O_CLOEXEC) >= 0);
	losses_check(&f->losses, &f->metrics);
	fflush(stderr);
	assert_true(dup3(stderr_fd, STDERR_FILENO, 0) >= 0);
	length = pread(log_fd, f->text, sizeof(f->text) - 1, 0);
	assert_true(length >= 0);
	f->text[length] = 0;
	return f->text;
}

static void let_a_minute_pass(struct fixture *f)
{
	f->losses.log.last_ns -= UINT64_C(61000000000);
}

static void nothing_is_logged_while_nothing_is_lost(void **state)
{
	struct fixture *f = *state;

	metrics_add(&f->metrics, METRIC_SAMPLES_USER, 1000);
	assert_string_equal(look(f), "");
	assert_int_equal(f->losses.last.real_ns, 0);
}

static void the_first_loss_is_logged_at_once(void **state)
{
	struct fixture *f = *state;

	metrics_add(&f->metrics, METRIC_LOST_RING_FULL, 3);
	metrics_add(&f->metrics, METRIC_LOST_SIDEBAND, 12);
	assert_non_null(strstr(look(f), "samples or records of the kernel were lost"));
	assert_non_null(strstr(f->text, "ring_full=3 records=12\n"));
	assert_string_equal(look(f), "");
}

/* Also when nothing is lost any more by then. */
static void later_losses_are_summed_up_once_a_minute(void **state)
{
	struct fixture *f = *state;

	metrics_add(&f->metrics, METRIC_LOST_RING_FULL, 3);
	(void)look(f);
	metrics_add(&f->metrics, METRIC_LOST_RING_FULL, 4);
	assert_string_equal(look(f), "");
	metrics_add(&f->metrics, METRIC_LOST_RING_FULL, 5);
	metrics_add(&f->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	assert_string_equal(look(f), "");
	let_a_minute_pass(f);
	assert_non_null(strstr(look(f), "ring_full=9 memory_limit=1\n"));
	let_a_minute_pass(f);
	assert_string_equal(look(f), "");
}

/* With the reason that cost most samples. */
static void the_last_loss_is_remembered(void **state)
{
	struct fixture *f = *state;

	metrics_add(&f->metrics, METRIC_LOST_RING_FULL, 100);
	(void)look(f);
	metrics_add(&f->metrics, METRIC_LOST_RING_FULL, 2);
	metrics_add(&f->metrics, METRIC_LOST_BPF_ERROR, 5);
	metrics_add(&f->metrics, METRIC_LOST_WAITS_FULL, 1);
	(void)look(f);
	(void)look(f);
	assert_true(f->losses.last.real_ns > 0);
	assert_int_equal(f->losses.last.samples, 8);
	assert_int_equal(f->losses.last.records, 0);
	assert_string_equal(f->losses.last.reason, "bpf_error");
	metrics_add(&f->metrics, METRIC_LOST_SIDEBAND, 7);
	(void)look(f);
	assert_int_equal(f->losses.last.records, 7);
	assert_null(f->losses.last.reason);
}

/* Each counter of lost samples has its row in the table of losses.c. */
static void all_reasons_are_known(void **state)
{
	struct fixture *f = *state;

	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		char field[64];

		if (strcmp(metric_texts[id].name, "fathom_samples_lost_total") != 0)
			continue;
		metrics_add(&f->metrics, id, 5);
		(void)look(f);
		assert_int_equal(f->losses.last.samples, 5);
		snprintf(field, sizeof(field), "reason=\"%s\"", f->losses.last.reason);
		assert_string_equal(field, metric_texts[id].label);
		f->losses.last = (struct trouble_loss){ 0 };
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_logged_while_nothing_is_lost),
		CASE(the_first_loss_is_logged_at_once),
		CASE(later_losses_are_summed_up_once_a_minute),
		CASE(the_last_loss_is_remembered),
		CASE(all_reasons_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
