/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/commands/watched_targets.h"

/* PIDFD_THREAD (Linux 6.9); older kernels can only watch processes. */
enum { OF_THREAD = O_EXCL };

static void release_target(struct watched_targets *t, size_t at)
{
	loop_remove(t->loop, t->fds[at]);
	close(t->fds[at]);
	t->fds[at] = -1;
	t->left--;
}

static void on_end(void *context, int fd, uint32_t epoll_events)
{
	struct watched_targets *t = context;

	(void)epoll_events;
	for (size_t i = 0; i < t->count; i++) {
		if (t->fds[i] == fd)
			release_target(t, i);
	}
	if (!t->left)
		t->ended(t->context);
}

/* A target that is gone already counts as ended. */
static int watch(struct watched_targets *t, uint32_t id, unsigned int flags)
{
	int fd = (int)syscall(SYS_pidfd_open, id, flags);
	int err;

	if (fd < 0 && errno != ESRCH)
		return -errno;
	t->fds[t->count++] = fd;
	if (fd < 0)
		return 0;
	t->left++;
	err = loop_add(t->loop, fd, EPOLLIN, on_end, t);
	if (err) {
		close(fd);
		t->fds[t->count - 1] = -1;
		t->left--;
	}
	return err;
}

/* If threads are given, only they are watched: they belong to the given processes. */
static int watch_all(struct watched_targets *t, const struct collect_options *who)
{
	int err = 0;

	for (size_t i = 0; !err && i < who->tid_count; i++)
		err = watch(t, who->tids[i], OF_THREAD);
	for (size_t i = 0; !err && !who->tid_count && i < who->tgid_count; i++)
		err = watch(t, who->tgids[i], 0);
	return err;
}

int watched_targets_watch(struct watched_targets *ret_targets, const struct collect_options *who,
	struct loop *loop, void (*ended)(void *context), void *context)
{
	size_t count = who->tid_count ? who->tid_count : who->tgid_count;
	struct watched_targets *t = ret_targets;

	if (!count)
		return 0;
	*t = (struct watched_targets){ .loop = loop, .ended = ended, .context = context };
	t->fds = calloc(count, sizeof(*t->fds));
	if (!t->fds)
		return -ENOMEM;
	if (watch_all(t, who))
		watched_targets_deinit(t);
	return 0;
}

bool watched_targets_ended(const struct watched_targets *t)
{
	return t->count && !t->left;
}

void watched_targets_deinit(struct watched_targets *t)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->fds[i] >= 0)
			release_target(t, i);
	}
	free(t->fds);
	*t = (struct watched_targets){ 0 };
}
