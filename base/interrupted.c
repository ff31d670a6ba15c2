/* SPDX-License-Identifier: Apache-2.0 */
#include "base/interrupted.h"

#include <signal.h>
#include <stddef.h>

static bool interrupted_by(int signal)
{
	sigset_t pending;

	return !sigpending(&pending) && sigismember(&pending, signal) == 1;
}

bool interrupted(void)
{
	return interrupted_to_end() || interrupted_by(SIGHUP);
}

bool interrupted_to_end(void)
{
	return interrupted_by(SIGINT) || interrupted_by(SIGTERM);
}
