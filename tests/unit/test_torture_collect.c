/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/sampler/collect while each of its own allocations and system calls fails in turn. Needs
 * root, as BPF does.
 */
#include "tests/unit/torture.h"

#include <unistd.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "base/log.h"

static struct metrics metrics;
static struct collect *collect;

static int create(void *context)
{
	const char *step = "";

	return collect_create(context, &collect, &step);
}

static int create_and_start(void *context)
{
	int err = create(context);

	return err ? err : collect_start(collect);
}

static void destroy(void *context, int result)
{
	(void)context;
	if (!result)
		assert_non_null(collect);
	collect_destroy(collect);
	collect = NULL;
}

static void a_sampler_that_cannot_be_made(void **state)
{
	struct collect_options options = { .probes = probes_all,
		.event = COLLECT_CPU_CLOCK,
		.frequency_hz = 99,
		.user = true,
		.kernel = true,
		.metrics = &metrics };
	/* Most failures leave a lesser sampler: it walks by frame pointer, or by a table of ranges.
	 */
	struct torture t = { .operation = create_and_start,
		.end = destroy,
		.context = &options,
		.freed_elsewhere = true,
		.optional = "*" };

	(void)state;
	log_configure(LOG_ERROR, false);
	if (geteuid() != 0 || create(&options))
		skip();
	destroy(NULL, 0);
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_sampler_that_cannot_be_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
