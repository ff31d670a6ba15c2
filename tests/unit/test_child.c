/* SPDX-License-Identifier: Apache-2.0 */
/* The states of children, with names that imitate the text they are read from. */
#include "symbolizer/sandbox/child.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Stops itself, or ends at once. */
static pid_t start(const char *name, bool stops)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	if (stops)
		raise(SIGSTOP);
	_exit(0);
}

static void the_state_is_read_whatever_the_name(void **state)
{
	static const char *const names[] = { "plain", "\nState:\tR", ") R 1", "State:\tR", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		pid_t pid = start(names[i], true);

		assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
		assert_int_equal(child_state(pid), 'T');
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

static void states_of_ourselves_the_dead_and_the_gone(void **state)
{
	pid_t pid = start("ends", false);
	siginfo_t info;

	(void)state;
	assert_int_equal(child_state(getpid()), 'R');
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(child_state(pid), 'Z');
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(child_state(pid), '?');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_state_is_read_whatever_the_name),
		cmocka_unit_test(states_of_ourselves_the_dead_and_the_gone),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
