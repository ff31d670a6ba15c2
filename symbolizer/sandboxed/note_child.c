/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandboxed/note_child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbolizer/indexer/elf/build_id.h"
#include "symbolizer/sandbox/note_wire.h"
#include "symbolizer/sandboxed/close_in.h"

static int note_child_close_in(int argc, char **argv)
{
	unsigned long parent, memory, cpu;
	int err;

	if (argc != NOTE_ARGUMENTS || !sandbox_parse_number(argv[2], &parent) ||
		!sandbox_parse_number(argv[3], &memory) || !sandbox_parse_number(argv[4], &cpu))
		return -EINVAL;
	err = sandbox_tie_to_parent((pid_t)parent);
	if (err)
		return err;
	sandbox_offer_to_oom_killer();
	if (syscall(SYS_close_range, NOTE_FD + 1, ~0u, 0))
		return -errno;
	err = sandbox_limit(RLIMIT_NOFILE, NOTE_FD_COUNT, NOTE_FD_COUNT);
	if (err)
		return err;
	/* At its parent's priority: the parent waits for it. */
	return sandbox_close_in(&(struct sandbox_limits){
		.memory_bytes = memory,
		.cpu_seconds = (unsigned int)cpu,
	});
}

/* Returns -ENOENT at the end of the socket, -EBADMSG if a question has no file. */
static int note_child_receive(struct note_question *question, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec bytes = { .iov_base = question, .iov_len = sizeof(*question) };
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const struct cmsghdr *c;
	ssize_t got;

	do
		got = recvmsg(NOTE_FD, &message, 0);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return -ENOENT;
	c = CMSG_FIRSTHDR(&message);
	if (got != sizeof(*question) || question->magic != NOTE_MAGIC || !c ||
		c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EBADMSG;
	memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return 0;
}

static int note_child_say(uint32_t number, int error, const struct build_id *id)
{
	struct note_answer answer;
	ssize_t sent;

	memset(&answer, 0, sizeof(answer)); /* padding included */
	answer.magic = NOTE_MAGIC;
	answer.number = number;
	answer.error = error;
	if (!error && id)
		answer.id = *id;
	do
		sent = write(NOTE_FD, &answer, sizeof(answer));
	while (sent < 0 && errno == EINTR);
	return sent == sizeof(answer) ? 0 : -EIO;
}

/* Errors beyond the closed list say that the file is of no use, if they do not pass. */
static int note_child_error(int err)
{
	switch (err) {
	case 0:
	case -ENOENT:
	case -EBADMSG:
	case -E2BIG:
	case -EOPNOTSUPP:
	case -EIO:
		return err;
	case -ENOMEM:
	case -EINTR:
	case -EAGAIN:
		return -EAGAIN;
	default:
		return -EBADMSG;
	}
}

int note_child_run(int argc, char **argv, note_task *task)
{
	struct note_question question;
	int fd, err;

	if (note_child_close_in(argc, argv) || note_child_say(0, 0, NULL))
		return EXIT_FAILURE;
	while (!note_child_receive(&question, &fd)) {
		struct build_id id = { 0 };

		err = note_child_error(task(fd, &id));
		close(fd);
		if (note_child_say(question.number, err, &id))
			break;
	}
	/* No exit handlers: the filter forbids the system calls they need. */
	_exit(EXIT_SUCCESS);
}

int note_child_main(int argc, char **argv)
{
	return note_child_run(argc, argv, build_id_read);
}
