/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/latency/attacher.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	FDS_AT_ONCE = 64, /* the kernel allows 253 */
	REFUSED_AT_ONCE = 64,
	MAX_LINKS = 1 << 20,
};

static const uint64_t PATIENCE_NS = UINT64_C(1000000000) * ATTACHER_PATIENCE_S;

/* A message of the child; the descriptors of `fd_count` links are attached. */
struct attacher_message {
	bool last;
	int32_t err; /* of the last one: the result */
	uint32_t fd_count, refused_count;
	struct latency_refused_site refused[REFUSED_AT_ONCE];
};

union attacher_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(FDS_AT_ONCE * sizeof(int))];
};

/* ---- the child ------------------------------------------------------------------------------ */

static void attacher_send(int socket, const struct attacher_message *message, const int *fds)
{
	union attacher_control control = { 0 };
	struct iovec bytes = { .iov_base = (void *)message, .iov_len = sizeof(*message) };
	struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };

	if (message->fd_count) {
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(message->fd_count * sizeof(int));
		control.header = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(message->fd_count * sizeof(int)),
		};
		memcpy(CMSG_DATA(&control.header), fds, message->fd_count * sizeof(int));
	}
	/* Without a reader there is nothing to be done. */
	if (sendmsg(socket, &header, MSG_NOSIGNAL) < 0)
		_exit(1);
}

static void attacher_send_all(int socket, const struct sites *s, int err)
{
	size_t links = 0, refused = 0;
	struct attacher_message message;

	do {
		message = (struct attacher_message){ .err = err };
		message.fd_count = (uint32_t)MIN(s->count - links, (size_t)FDS_AT_ONCE);
		message.refused_count =
			(uint32_t)MIN(s->refused_count - refused, (size_t)REFUSED_AT_ONCE);
		if (message.refused_count)
			memcpy(message.refused, s->refused + refused,
				message.refused_count * sizeof(*s->refused));
		message.last = links + message.fd_count == s->count &&
			       refused + message.refused_count == s->refused_count;
		attacher_send(socket, &message, s->links + links);
		links += message.fd_count;
		refused += message.refused_count;
	} while (!message.last);
}

static int attacher_compare(const void *a, const void *b)
{
	int first = *(const int *)a, second = *(const int *)b;

	return (first > second) - (first < second);
}

/* Closes everything but the standard descriptors and KEPT: nobody's pipe or lock is held open. */
static void attacher_close_others(int *kept, size_t count)
{
	unsigned int next = STDERR_FILENO + 1;

	qsort(kept, count, sizeof(*kept), attacher_compare);
	for (size_t i = 0; i < count; i++) {
		if ((unsigned int)kept[i] > next)
			close_range(next, (unsigned int)kept[i] - 1, 0);
		next = MAX(next, (unsigned int)kept[i] + 1);
	}
	close_range(next, UINT_MAX, 0);
}

static void attacher_run(int socket, const struct sites_program *program, int file_fd,
	const struct sites_place *places, size_t count)
{
	int kept[] = { socket, program->fd, file_fd };
	struct sites sites = { 0 };
	const char *step;
	int err;

	prctl(PR_SET_NAME, "fathom-attach");
	attacher_close_others(kept, ARRAY_SIZE(kept));
	err = sites_attach(&sites, program, file_fd, places, count, &step);
	attacher_send_all(socket, &sites, err);
	_exit(0);
}

/* ---- the parent ----------------------------------------------------------------------------- */

int attacher_start(struct attacher *a, const struct sites_program *program, int file_fd,
	const struct sites_place *places, size_t count)
{
	pid_t parent = getpid(), child;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			attacher_run(ends[1], program, file_fd, places, count);
		_exit(1);
	}
	if (child < 0) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	close(ends[1]);
	*a = (struct attacher){ .pid = child, .fd = ends[0], .heard_ns = clock_monotonic_ns() };
	return 0;
}

static int attacher_take(struct sites *s, const struct attacher_message *message, const int *fds)
{
	int err = array_reserve(s->links, s->capacity, s->count + message->fd_count, MAX_LINKS);

	for (uint32_t i = 0; i < message->fd_count; i++) {
		if (err)
			close(fds[i]);
		else
			s->links[s->count++] = fds[i];
	}
	for (uint32_t i = 0; i < message->refused_count && !err; i++)
		err = sites_refuse(s, message->refused[i].number, message->refused[i].err);
	return err;
}

/* Returns 0 with a message in S, *RET_LAST and the child's result in *RET_RESULT. */
static int attacher_receive_one(
	struct attacher *a, struct sites *s, bool *ret_last, int *ret_result)
{
	union attacher_control control = { 0 };
	struct attacher_message message;
	struct iovec bytes = { .iov_base = &message, .iov_len = sizeof(message) };
	struct msghdr header = { .msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t size = recvmsg(a->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *rights = size > 0 ? CMSG_FIRSTHDR(&header) : NULL;
	int fds[FDS_AT_ONCE] = { 0 };
	size_t received = 0;

	if (size < 0)
		return -errno;
	if (rights && rights->cmsg_type == SCM_RIGHTS) {
		received = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(rights), received * sizeof(int));
	}
	if ((size_t)size != sizeof(message) || received != message.fd_count) {
		for (size_t i = 0; i < received; i++)
			close(fds[i]);
		/* It died, or we have no descriptor left. */
		return (size_t)size == sizeof(message) ? -EMFILE : -ECHILD;
	}
	*ret_last = message.last;
	*ret_result = message.err;
	return attacher_take(s, &message, fds);
}

static int attacher_receive_some(struct attacher *a, struct sites *s, uint64_t now_ns)
{
	bool last = false;
	int result = 0;

	while (!last) {
		int err = attacher_receive_one(a, s, &last, &result);

		if (err == -EAGAIN)
			return now_ns - MIN(now_ns, a->heard_ns) > PATIENCE_NS ? -ETIMEDOUT : err;
		if (err)
			return err;
		a->heard_ns = now_ns;
	}
	return result;
}

int attacher_receive(struct attacher *a, struct sites *s, uint64_t now_ns)
{
	int err = attacher_receive_some(a, s, now_ns);

	if (err == -EAGAIN)
		return err;
	close(take_fd(&a->fd));
	if (err)
		attacher_kill(a);
	return err;
}

void attacher_kill(struct attacher *a)
{
	if (a->fd >= 0)
		close(take_fd(&a->fd));
	if (a->pid)
		kill(a->pid, SIGKILL);
}

bool attacher_is_gone(struct attacher *a)
{
	if (a->pid && waitpid(a->pid, NULL, WNOHANG) != 0)
		a->pid = 0;
	return !a->pid;
}
