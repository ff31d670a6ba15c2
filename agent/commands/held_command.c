/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/held_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* As shells say it. */
enum { STATUS_SIGNAL = 128, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

/* The child: waits for the start byte, then execs the command or sends its errno. */
static _Noreturn void run_child(char **argv, int go_fd, int exec_fd, pid_t parent)
{
	sigset_t none;
	char word;
	int err;

	/* If the parent dies, nobody can send the start byte any more. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || read(go_fd, &word, 1) != 1)
		_exit(127);
	prctl(PR_SET_PDEATHSIG, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	err = errno;
	(void)!write(exec_fd, &err, sizeof(err));
	_exit(127);
}

int held_command_spawn(char **argv, struct held_command *ret_command)
{
	int go[2], exec[2];
	pid_t parent = getpid(), pid;

	/* A pipe would raise SIGPIPE here if the child is dead already. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go))
		return -errno;
	if (pipe2(exec, O_CLOEXEC)) {
		int err = -errno;

		close(go[0]);
		close(go[1]);
		return err;
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(exec[0]);
		run_child(argv, go[0], exec[1], parent);
	}
	close(go[0]);
	close(exec[1]);
	*ret_command = (struct held_command){
		.name = argv[0], .pid = pid, .go_fd = go[1], .exec_fd = exec[0]
	};
	if (pid < 0) {
		int err = -errno;

		held_command_deinit(ret_command);
		return err;
	}
	return 0;
}

int held_command_go(struct held_command *command)
{
	int err = 0;
	ssize_t got;

	if (send(command->go_fd, "g", 1, MSG_NOSIGNAL) != 1)
		return command->exec_error = -errno;
	close(command->go_fd);
	command->go_fd = -1;
	do {
		got = read(command->exec_fd, &err, sizeof(err));
	} while (got < 0 && errno == EINTR);
	close(command->exec_fd);
	command->exec_fd = -1;
	command->exec_error = got == sizeof(err) ? -err : 0;
	return command->exec_error;
}

bool held_command_reap(struct held_command *command)
{
	if (command->pid > 0 && !command->ended &&
		waitpid(command->pid, &command->status, WNOHANG) == command->pid)
		command->ended = true;
	return command->ended;
}

void held_command_say_end(const struct held_command *command, const char *name)
{
	int status = command->status;

	if (!command->ended)
		return;
	if (WIFSIGNALED(status))
		fprintf(stderr, "fathom %s: %s was killed by signal %d (%s)\n", name, command->name,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		fprintf(stderr, "fathom %s: %s ended with status %d\n", name, command->name,
			WEXITSTATUS(status));
}

int held_command_exit_status(const struct held_command *command)
{
	if (command->exec_error)
		return command->exec_error == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	if (!command->ended)
		return 0;
	return WIFSIGNALED(command->status) ? STATUS_SIGNAL + WTERMSIG(command->status)
					    : WEXITSTATUS(command->status);
}

void held_command_deinit(struct held_command *command)
{
	if (command->go_fd >= 0)
		close(command->go_fd);
	if (command->exec_fd >= 0)
		close(command->exec_fd);
	/* A child that was never started exits on the closed pipe; a running one is left alone. */
	if (command->pid > 0 && !command->ended && command->go_fd >= 0)
		waitpid(command->pid, &command->status, 0);
	*command = (struct held_command){ .pid = -1, .go_fd = -1, .exec_fd = -1 };
}
