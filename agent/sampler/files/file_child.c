/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/file_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/sampler/files/file_identity.h"
#include "agent/sampler/files/file_wire.h"
#include "agent/sampler/files/mapped_build_id.h"
#include "base/cleanup.h"
#include "base/foreign.h"
#include "base/io.h"
#include "base/open_regular.h"
#include "symbolizer/sandbox/note_reader.h"

struct file_child {
	struct file_wire_stage *stage;
	struct metrics metrics;
	struct note_reader notes;
	struct file_wire_question question;
	struct file_wire_answer answer;
};

/* The descriptors of one question; -1 = none. */
struct attached {
	int dir_fd, file_fd;
};

static void attached_close(struct attached *fds)
{
	if (fds->dir_fd >= 0)
		close(fds->dir_fd);
	if (fds->file_fd >= 0)
		close(fds->file_fd);
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* Whether the LENGTH bytes of Q that were received are a whole question. */
static bool is_question(const struct file_wire_question *q, size_t length, unsigned int fd_count)
{
	size_t head = offsetof(struct file_wire_question, text);

	if (length < head || q->magic != FILE_WIRE_MAGIC ||
		fd_count != (q->has_directory ? 1u : 0) + (q->has_file ? 1u : 0))
		return false;
	if (q->name_bytes > FOREIGN_PATH_BYTES || q->path_bytes > FOREIGN_PATH_BYTES ||
		length != head + q->name_bytes + q->path_bytes)
		return false;
	return (!q->name_bytes || !q->text[q->name_bytes - 1]) &&
	       (!q->path_bytes || !q->text[q->name_bytes + q->path_bytes - 1]);
}

/* Returns -ENOENT at the end of the socket, -EBADMSG if the message is no question. */
static int receive_question(struct file_wire_question *q, struct attached *ret_fds)
{
	union {
		char bytes[CMSG_SPACE(FILE_WIRE_FDS * sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec bytes = { .iov_base = q, .iov_len = sizeof(*q) };
	struct msghdr message = { .msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	int fds[FILE_WIRE_FDS] = { -1, -1 };
	unsigned int count = 0;
	const struct cmsghdr *c;
	ssize_t got;

	do
		got = recvmsg(FILE_WIRE_FD, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return -ENOENT;
	c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		count = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	}
	*ret_fds = (struct attached){ fds[0], fds[1] };
	if (!is_question(q, (size_t)got, count))
		return -EBADMSG;
	if (!q->has_directory)
		*ret_fds = (struct attached){ -1, fds[0] };
	return 0;
}

/* ---- the calls ------------------------------------------------------------------------------ */

static const char *text_of(const struct file_wire_question *q, size_t at, uint32_t size)
{
	return size ? q->text + at : NULL;
}

/* Copies a file of /proc: reading it may wait as well, and its reader is the parent. */
static int copy_text(int from_fd, int *ret_fd)
{
	autoclose int fd = memfd_create("fathom-text", MFD_CLOEXEC);
	static char piece[FILE_WIRE_BYTES];
	size_t total = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(from_fd, piece, sizeof(piece))) != 0) {
		int err = 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		total += (size_t)got;
		err = total > FOREIGN_TEXT_BYTES ? -E2BIG : io_write_all(fd, piece, (size_t)got);
		if (err)
			return err;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The kernel looks the name up among the process's mappings; opening the file comes after that. */
static int open_mapped(struct file_child *child, int dir_fd, const char *name, int *ret_fd)
{
	autoclose int path_fd = -1;

	if (!name)
		return -EINVAL;
	child->stage->at = FILE_WIRE_AT_MEMORY;
	path_fd = openat(dir_fd, name, O_PATH | O_CLOEXEC);
	child->stage->at = FILE_WIRE_AT_FILE;
	return path_fd < 0 ? -errno : open_regular_again(path_fd, ret_fd);
}

/* Adds the state of the file, which the parent asks for next. */
static int open_mapped_with_state(
	struct file_child *child, int dir_fd, const char *name, int *ret_fd)
{
	autoclose int fd = -1;
	int err = open_mapped(child, dir_fd, name, &fd);

	if (!err)
		err = foreign_state(fd, &child->answer.id.file);
	if (!err)
		*ret_fd = take_fd(&fd);
	return err;
}

static int file_child_open(struct file_child *child, const struct attached *fds, int *ret_fd)
{
	const struct file_wire_question *q = &child->question;
	const struct foreign_path path = { .place = (enum foreign_place)q->place,
		.dir_fd = q->has_directory ? fds->dir_fd : AT_FDCWD,
		.name = text_of(q, 0, q->name_bytes),
		.path = text_of(q, q->name_bytes, q->path_bytes) };
	autoclose int fd = -1;
	int err;

	if (path.place == FOREIGN_MAPPED)
		return open_mapped_with_state(child, path.dir_fd, path.name, ret_fd);
	err = foreign_open(&path, &fd);
	if (err)
		return err;
	if (path.place == FOREIGN_TEXT)
		return copy_text(fd, ret_fd);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* As build_ids.c: the kernel first, which looks at the process's mappings. */
static int file_child_build_id(
	void *context, const struct build_id_question *question, struct build_id *ret_id)
{
	struct file_child *child = context;
	int err = -ENOENT;

	child->stage->at = FILE_WIRE_AT_MEMORY;
	if (question->task_fd >= 0)
		err = mapped_build_id_read(
			question->task_fd, question->start, question->end, ret_id);
	child->stage->at = FILE_WIRE_AT_FILE;
	return err ? note_reader_read(&child->notes, question->fd, ret_id) : 0;
}

static int file_child_identity(struct file_child *child, const struct attached *fds)
{
	const struct build_id_reader reader = { .read = file_child_build_id, .context = child };
	const struct build_id_question question = {
		.fd = fds->file_fd,
		.task_fd = fds->dir_fd,
		.start = child->question.start,
		.end = child->question.end,
	};

	return file_identity_read(&reader, &question, &child->answer.id);
}

/* Unlike fstatat(), does not ask the server of the file. */
static int file_child_stat_at(int dir_fd, const char *name, struct stat *ret_stat)
{
	struct statx stx;

	if (statx(dir_fd, name, AT_STATX_DONT_SYNC, STATX_INO, &stx))
		return -errno;
	*ret_stat = (struct stat){ .st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.st_ino = stx.stx_ino };
	return 0;
}

static int64_t file_child_do(struct file_child *child, const struct attached *fds, int *ret_fd)
{
	const struct file_wire_question *q = &child->question;
	struct file_wire_answer *a = &child->answer;
	const char *name = text_of(q, 0, q->name_bytes);

	switch (q->call) {
	case FILE_WIRE_OPEN:
		return file_child_open(child, fds, ret_fd);
	case FILE_WIRE_STAT_AT:
		return name ? file_child_stat_at(fds->dir_fd, name, &a->stat) : -EINVAL;
	case FILE_WIRE_STAT:
		return foreign_stat(fds->file_fd, &a->stat);
	case FILE_WIRE_READ:
		return foreign_read_at(
			fds->file_fd, q->off, a->bytes, MIN(q->size, (uint64_t)sizeof(a->bytes)));
	case FILE_WIRE_STATE:
		return foreign_state(fds->file_fd, &a->id.file);
	case FILE_WIRE_IDENTITY:
		return file_child_identity(child, fds);
	default:
		return -EINVAL;
	}
}

/* ---- answering ------------------------------------------------------------------------------ */

/* FD is attached unless it is -1. */
static int send_answer(const struct file_wire_answer *a, size_t bytes_used, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { { 0 } };
	struct iovec bytes = { .iov_base = (void *)(uintptr_t)a,
		.iov_len = offsetof(struct file_wire_answer, bytes) + bytes_used };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	do
		sent = sendmsg(FILE_WIRE_FD, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void count_failures(struct file_child *child)
{
	for (unsigned int i = 0; i < FILE_WIRE_FAILURES; i++)
		child->answer.failures[i] = metrics_get(
			&child->metrics, (enum metric)(METRIC_NOTE_READER_DIED + (int)i));
}

static int answer_question(struct file_child *child, const struct attached *fds)
{
	struct file_wire_answer *a = &child->answer;
	autoclose int fd = -1;
	bool read = child->question.call == FILE_WIRE_READ;

	memset(a, 0, offsetof(struct file_wire_answer, bytes));
	a->magic = FILE_WIRE_MAGIC;
	a->number = child->question.number;
	a->result = file_child_do(child, fds, &fd);
	count_failures(child);
	return send_answer(a, read && a->result > 0 ? (size_t)a->result : 0, fd);
}

/* ---- the child's life ----------------------------------------------------------------------- */

static int tie_to_parent(const char *text)
{
	char *end;
	long parent = strtol(text, &end, 10);

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_NAME, "fathom-files"))
		return -errno;
	return *end || getppid() != parent ? -ESRCH : 0;
}

bool file_child_is_command(const char *name)
{
	return !strcmp(name, FILE_WIRE_COMMAND);
}

/* Neither is for the children of this one. */
static int keep_to_itself(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) ? -errno : 0;
}

static struct file_child *file_child_create(void)
{
	struct file_child *child = calloc(1, sizeof(*child));

	if (!child)
		return NULL;
	child->stage = mmap(NULL, sizeof(*child->stage), PROT_READ | PROT_WRITE, MAP_SHARED,
		FILE_WIRE_STAGE_FD, 0);
	if (child->stage == MAP_FAILED) {
		free(child);
		return NULL;
	}
	note_reader_init(&child->notes, &child->metrics);
	return child;
}

int file_child_main(int argc, char **argv)
{
	struct file_child *child;
	int err;

	if (argc != FILE_WIRE_ARGUMENTS || tie_to_parent(argv[2]) || keep_to_itself(FILE_WIRE_FD) ||
		keep_to_itself(FILE_WIRE_STAGE_FD))
		return EXIT_FAILURE;
	child = file_child_create();
	if (!child)
		return EXIT_FAILURE;
	child->answer.magic = FILE_WIRE_MAGIC;
	err = send_answer(&child->answer, 0, -1);
	while (!err) {
		autocall(attached_close) struct attached fds = { -1, -1 };

		err = receive_question(&child->question, &fds);
		if (!err)
			err = answer_question(child, &fds);
	}
	note_reader_deinit(&child->notes);
	free(child);
	return EXIT_SUCCESS;
}
