/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

void child_fds_close(struct child_fds *fds)
{
	while (fds->count) {
		fds->count--;
		if (fds->owned[fds->count])
			close(fds->items[fds->count]);
	}
}

/*
 * A descriptor among the child's numbers is duplicated above them, so that placing one does not
 * overwrite another. No more and no higher than necessary: our limit may be low.
 */
int child_fds_add(struct child_fds *fds, int fd)
{
	const int above = SANDBOX_ELF_FD + (int)fds->expected;
	bool duplicate = fd < above;

	assert(fds->count < fds->expected && fds->expected <= ARRAY_SIZE(fds->items));
	if (duplicate)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, above);
	if (fd < 0)
		return -errno;
	fds->owned[fds->count] = duplicate;
	fds->items[fds->count++] = fd;
	return 0;
}

static int keep_ends(const int ends[2], int *ret_ours, int *ret_theirs)
{
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK)) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	*ret_ours = ends[0];
	*ret_theirs = ends[1];
	return 0;
}

int child_pipe(int *ret_read, int *ret_write)
{
	int ends[2];

	return pipe2(ends, O_CLOEXEC) ? -errno : keep_ends(ends, ret_read, ret_write);
}

int child_channel(int *ret_ours, int *ret_theirs)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	return keep_ends(ends, ret_ours, ret_theirs);
}

/* From status and not from stat, which waits for the end of an execve() that waits for a file
 * system. */
char child_state(pid_t pid)
{
	static const char before[] = "\nState:\t"; /* the name in the line before has no newline */
	char name[32], text[256];
	const char *at;
	ssize_t got;
	autoclose int fd = -1;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[MAX(got, 0)] = 0;
	at = strstr(text, before);
	return at && at[strlen(before)] ? at[strlen(before)] : '?';
}

static int add_fds(posix_spawn_file_actions_t *actions, const struct child_fds *fds)
{
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int err = 0;

	/* Only sanitizer reports are kept: stderr stays open in sanitizer builds. */
	for (int fd = 0; fd < (sandbox_is_closed() ? 3 : 2) && !err; fd++)
		err = null >= 0 ? posix_spawn_file_actions_addopen(
					  actions, fd, "/dev/null", O_RDWR, 0)
				: posix_spawn_file_actions_addclose(actions, fd);
	for (size_t i = 0; i < fds->count && !err; i++)
		err = posix_spawn_file_actions_adddup2(
			actions, fds->items[i], SANDBOX_ELF_FD + (int)i);
	return -err;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	err = posix_spawnattr_setflags(
		attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!err)
		err = posix_spawnattr_setpgroup(attributes, 0);
	if (!err)
		err = posix_spawnattr_setsigmask(attributes, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(attributes, &all);
	return -err;
}

/* posix_spawn shares memory until exec, so its cost does not depend on our size. */
int child_spawn(
	char *const argv[], char *const environment[], const struct child_fds *fds, pid_t *ret_pid)
{
	autocall(posix_spawn_file_actions_destroy) posix_spawn_file_actions_t actions;
	autocall(posix_spawnattr_destroy) posix_spawnattr_t attributes;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	err = add_fds(&actions, fds);
	if (!err)
		err = set_attributes(&attributes);
	if (err)
		return err;
	return -posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, environment);
}
