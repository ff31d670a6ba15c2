/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execheld FILE: prints `ready` and spins with FILE open until SIGUSR1, then prints `held` and
 * executes another program. FILE is closed by that, and if its file system does not answer the
 * closing (FUSE_FLUSH), this process waits there under the lock that guards who may trace it
 * (exec_update_lock).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t told;

static void on_signal(int number)
{
	(void)number;
	told = 1;
}

int main(int argc, char **argv)
{
	if (argc != 2 || open(argv[1], O_RDONLY | O_CLOEXEC) < 0) {
		perror("execheld FILE");
		return 2;
	}
	signal(SIGUSR1, on_signal);
	puts("ready");
	fflush(stdout);
	while (!told)
		;
	puts("held");
	fflush(stdout);
	execlp("sleep", "sleep", "100000", (char *)NULL);
	perror("execheld: sleep");
	return 2;
}
