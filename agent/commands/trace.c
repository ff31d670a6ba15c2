/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/trace.h"

#include <errno.h>
#include <signal.h>

#include "agent/commands/commands.h"
#include "agent/commands/trace_run.h"

int command_trace(struct invocation *call)
{
	struct trace_plan plan;
	sigset_t pipe;
	int command_status = 0, err = trace_plan(&call->config, &plan);

	if (err)
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	/* Writing to a pipe that nobody reads is an error like others. CMD does not inherit it. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, NULL);
	err = trace_run(&plan, &command_status);
	trace_plan_deinit(&plan);
	return command_status ?: err ? EXIT_FAILED : EXIT_DONE;
}
