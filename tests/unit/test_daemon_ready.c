/* SPDX-License-Identifier: Apache-2.0 */
/* The /ready endpoint of the agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/daemon/daemon_internal.h"
#include "base/clock.h"

static const uint64_t SECOND = 1000000000;

static const char *not_ready(struct daemon *d)
{
	struct serve_handlers handlers;

	daemon_http_handlers(d, &handlers);
	return handlers.not_ready(handlers.context);
}

static void an_agent_that_samples_is_ready(void **state)
{
	struct daemon d = { .ready = true, .window_due_ns = clock_monotonic_ns() };

	(void)state;
	assert_null(not_ready(&d));
	d.stopping = true;
	assert_string_equal(not_ready(&d), "not sampling\n");
	d.ready = d.stopping = false;
	assert_string_equal(not_ready(&d), "not sampling\n");
}

static void an_agent_whose_windows_do_not_end_is_not_ready(void **state)
{
	struct daemon d = { .ready = true, .window_due_ns = clock_monotonic_ns() - 11 * SECOND };

	(void)state;
	assert_string_equal(
		not_ready(&d), "windows cannot be completed: nothing is stored or sent\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_that_samples_is_ready),
		cmocka_unit_test(an_agent_whose_windows_do_not_end_is_not_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
