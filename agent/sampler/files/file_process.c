/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/file_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/files/file_wire.h"
#include "base/cleanup.h"
#include "symbolizer/sandbox/child.h"

static const uint64_t NS_IN_MS = 1000000;
enum {
	ARGUMENT_BYTES = 24,
	FAREWELL_MS = 200,
};

uint64_t file_process_now_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t file_process_cpu_ns(const struct file_process *child)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (child->pid < 0 || clock_getcpuclockid(child->pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void file_process_wait(pid_t pid)
{
	autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0)
		(void)poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, FAREWELL_MS);
}

static int make_stage(int *ret_fd, struct file_wire_stage **ret_stage)
{
	autoclose int fd = memfd_create("fathom-stage", MFD_CLOEXEC);
	void *stage;

	if (fd < 0 || ftruncate(fd, sizeof(**ret_stage)))
		return -errno;
	stage = mmap(NULL, sizeof(**ret_stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (stage == MAP_FAILED)
		return -errno;
	*ret_stage = stage;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int spawn(int socket_fd, int stage_fd, pid_t *ret_pid)
{
	static char *const no_environment[] = { NULL };
	autocall(child_fds_close) struct child_fds fds = { .expected = 2 };
	char program[] = "fathom", command[sizeof(FILE_WIRE_COMMAND)], parent[ARGUMENT_BYTES];
	char *argv[] = { program, command, parent, NULL };
	int err;

	memcpy(command, FILE_WIRE_COMMAND, sizeof(command));
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	err = child_fds_add(&fds, socket_fd);
	if (!err)
		err = child_fds_add(&fds, stage_fd);
	return err ? err : child_spawn(argv, no_environment, &fds, ret_pid);
}

int file_process_start(struct file_process *ret_child)
{
	struct file_process child = { .pid = -1, .fd = -1 };
	autoclose int stage_fd = -1, theirs = -1;
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	child.fd = ends[0];
	theirs = ends[1];
	err = make_stage(&stage_fd, &child.stage);
	if (!err)
		err = spawn(theirs, stage_fd, &child.pid);
	if (err) {
		if (child.stage)
			munmap(child.stage, sizeof(*child.stage));
		close(child.fd);
		return err;
	}
	*ret_child = child;
	return 0;
}

bool file_process_is_starved(const struct file_process *p)
{
	autofclose FILE *children = NULL;
	char name[48];
	long pid;

	if (child_state(p->pid) == 'R')
		return true;
	snprintf(name, sizeof(name), "/proc/%ld/task/%ld/children", (long)p->pid, (long)p->pid);
	children = fopen(name, "re");
	while (children && fscanf(children, "%ld", &pid) == 1)
		if (child_state((pid_t)pid) == 'R')
			return true;
	return false;
}

int file_process_await(int fd, uint64_t deadline_ns)
{
	struct pollfd waited = { .fd = fd, .events = POLLIN };
	uint64_t now_ns = file_process_now_ns();

	do {
		uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
		int ready = poll(&waited, 1, (int)((left_ns + NS_IN_MS - 1) / NS_IN_MS));

		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -errno;
	} while ((now_ns = file_process_now_ns()) < deadline_ns);
	return -ETIMEDOUT;
}

int file_process_receive(int fd, struct file_wire_answer *a, size_t *ret_bytes, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec bytes = { .iov_base = a, .iov_len = sizeof(*a) };
	struct msghdr message = { .msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	size_t head = offsetof(struct file_wire_answer, bytes);
	ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*ret_fd = -1;
	if (got <= 0)
		return got < 0 ? -errno : -EPIPE;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	if ((size_t)got < head || a->magic != FILE_WIRE_MAGIC) {
		if (*ret_fd >= 0)
			close(*ret_fd);
		return -EBADMSG;
	}
	*ret_bytes = (size_t)got - head;
	return 0;
}

int file_process_send(
	const struct file_process *p, struct file_wire_question *q, const int *fds, size_t fd_count)
{
	union {
		char bytes[CMSG_SPACE(FILE_WIRE_FDS * sizeof(int))];
		struct cmsghdr header;
	} control = { { 0 } };
	struct iovec bytes = { .iov_base = q,
		.iov_len = offsetof(struct file_wire_question, text) + q->name_bytes +
			   q->path_bytes + q->message_bytes };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
	size_t fd_bytes = fd_count * sizeof(int);

	if (fd_count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fd_bytes);
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(fd_bytes),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), fds, fd_bytes);
	}
	return sendmsg(p->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}
