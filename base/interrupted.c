/* SPDX-License-Identifier: Apache-2.0 */
#include "base/interrupted.h"

#include <signal.h>
#include <stddef.h>

bool interrupted(void)
{
	sigset_t pending;

	if (sigpending(&pending))
		return false;
	return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
	       sigismember(&pending, SIGHUP) == 1;
}
