/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/trace.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "agent/commands/commands.h"
#include "agent/commands/latency_run.h"
#include "agent/commands/trace_run.h"

/* As shells say it. */
enum { STATUS_SIGNAL = 128, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

/* Hands on what became of CMD. ERR: the trace itself failed. */
static int trace_status(const struct latency_ended *ended, int err)
{
	int status = ended->command_status;

	if (ended->exec_error)
		return ended->exec_error == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	if (ended->command_ended && WIFSIGNALED(status))
		return STATUS_SIGNAL + WTERMSIG(status);
	if (ended->command_ended && WIFEXITED(status) && WEXITSTATUS(status))
		return WEXITSTATUS(status);
	return err ? EXIT_FAILED : EXIT_DONE;
}

int command_trace(struct invocation *call)
{
	struct latency_ended ended = { 0 };
	struct trace_plan plan;
	sigset_t pipe;
	int err = trace_plan(&call->config, &plan);

	if (err)
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	/* Writing to a pipe that nobody reads is an error like others. CMD does not inherit it. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, NULL);
	err = trace_run(&plan, &ended);
	trace_plan_deinit(&plan);
	return trace_status(&ended, err);
}
