/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/latency.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/commands/latency_run.h"
#include "agent/commands/output_file.h"

static int latency_check_file(const char *path)
{
	int err = path ? output_file_check(path) : 0;

	if (err)
		fprintf(stderr, "fathom latency: cannot write %s: %s\n", path, strerror(-err));
	return err;
}

/* A file that cannot be written is refused before anything is attached. */
static int latency_check_output(const struct latency_plan *plan)
{
	int err = latency_check_file(plan->openmetrics);

	return err ? err : latency_check_file(plan->profile);
}

int command_latency(struct invocation *call)
{
	struct latency_plan plan;
	int command_status = 0, err = latency_plan(&call->config, &plan);

	if (err)
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	err = latency_check_output(&plan);
	if (!err)
		err = latency_run(&plan, &command_status);
	latency_plan_deinit(&plan);
	return command_status ?: err ? EXIT_FAILED : EXIT_DONE;
}
