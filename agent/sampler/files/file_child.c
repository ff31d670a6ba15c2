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
#include "agent/sampler/files/file_open.h"
#include "agent/sampler/files/file_wire.h"
#include "agent/sampler/files/mapped_build_id.h"
#include "base/cleanup.h"
#include "base/foreign.h"
#include "base/io.h"
#include "symbolizer/sandbox/note_reader.h"

struct file_child {
	struct file_wire_stage *stage;
	struct metrics metrics;
	struct note_reader notes;
	struct file_wire_question question;
	struct file_wire_answer answer;
};

/* The descriptors of one question. None is open for reading, so closing them does not wait. */
struct attached {
	int fds[FILE_WIRE_FDS];
	unsigned int count;
	int dir_fd; /* of them; -1 = none */
	const int *files; /* of them */
	unsigned int file_count;
};

static void attached_close(struct attached *a)
{
	while (a->count)
		close(a->fds[--a->count]);
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* Whether the LENGTH bytes of Q that were received are a whole question. */
static bool is_question(const struct file_wire_question *q, size_t length, unsigned int fd_count)
{
	size_t head = offsetof(struct file_wire_question, text);

	if (length < head || q->magic != FILE_WIRE_MAGIC || q->file_count > FOREIGN_SEND_FILES ||
		fd_count != (q->has_directory ? 1u : 0) + q->file_count)
		return false;
	if (q->name_bytes > FOREIGN_PATH_BYTES || q->path_bytes > FOREIGN_PATH_BYTES ||
		q->message_bytes > FOREIGN_SEND_BYTES ||
		length != head + q->name_bytes + q->path_bytes + q->message_bytes)
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
	const struct cmsghdr *c;
	ssize_t got;

	do
		got = recvmsg(FILE_WIRE_FD, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return -ENOENT;
	c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		ret_fds->count = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(ret_fds->fds, CMSG_DATA(c), ret_fds->count * sizeof(int));
	}
	if (!is_question(q, (size_t)got, ret_fds->count))
		return -EBADMSG;
	ret_fds->dir_fd = q->has_directory ? ret_fds->fds[0] : -1;
	ret_fds->files = ret_fds->fds + (q->has_directory ? 1 : 0);
	ret_fds->file_count = q->file_count;
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

/* Adds the state of the file, which the parent asks for next. */
static int open_mapped_with_state(
	struct file_child *child, int dir_fd, const char *name, int *ret_fd)
{
	autoclose int fd = -1;
	int err;

	if (!name)
		return -EINVAL;
	child->stage->at = FILE_WIRE_AT_MEMORY;
	err = file_open_mapped(dir_fd, name, &fd);
	child->stage->at = FILE_WIRE_AT_FILE;
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
	if (path.place != FOREIGN_TEXT)
		return file_open_path(&path, ret_fd);
	err = foreign_open(&path, &fd);
	return err ? err : copy_text(fd, ret_fd);
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
	autoclose int contents_fd = -1;
	const struct build_id_question question = {
		.fd = file_open_contents(fds->files[0], &contents_fd),
		.task_fd = fds->dir_fd,
		.start = child->question.start,
		.end = child->question.end,
	};

	return question.fd < 0 ? question.fd
			       : file_identity_read(&reader, &question, &child->answer.id);
}

static ssize_t file_child_read(struct file_child *child, const struct attached *fds)
{
	const struct file_wire_question *q = &child->question;
	struct file_wire_answer *a = &child->answer;
	autoclose int contents_fd = -1;
	int fd = file_open_contents(fds->files[0], &contents_fd);

	return fd < 0 ? fd
		      : foreign_read_at(
				fd, q->off, a->bytes, MIN(q->size, (uint64_t)sizeof(a->bytes)));
}

/* Opens the files and sends them with the message; the receiver's are not ours. */
static int file_child_send(struct file_child *child, const struct attached *fds)
{
	const struct file_wire_question *q = &child->question;
	autocall(attached_close) struct attached opened = { .count = 0 };
	int files[FOREIGN_SEND_FILES];

	for (unsigned int i = 0; i < fds->file_count; i++) {
		int contents_fd = -1;

		child->stage->file = i;
		files[i] = file_open_contents(fds->files[i], &contents_fd);
		if (files[i] < 0)
			return files[i];
		if (contents_fd >= 0)
			opened.fds[opened.count++] = contents_fd;
	}
	return foreign_send_now(fds->dir_fd, q->text + q->name_bytes + q->path_bytes,
		q->message_bytes, files, fds->file_count);
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

static bool is_about_a_file(uint32_t call)
{
	return call == FILE_WIRE_STAT || call == FILE_WIRE_READ || call == FILE_WIRE_STATE ||
	       call == FILE_WIRE_IDENTITY;
}

/* A file or a link of /proc: both answer with bytes. */
static ssize_t file_child_read_name(struct file_child *child, int dir_fd, const char *name)
{
	const struct file_wire_question *q = &child->question;
	size_t size = MIN(q->size, (uint64_t)sizeof(child->answer.bytes));
	char *text = (char *)child->answer.bytes;

	if (!name)
		return -EINVAL;
	return q->call == FILE_WIRE_READ_LINK ? foreign_read_link(dir_fd, name, text, size)
					      : foreign_read_text(dir_fd, name, text, size);
}

static int64_t file_child_do(struct file_child *child, const struct attached *fds, int *ret_fd)
{
	const struct file_wire_question *q = &child->question;
	struct file_wire_answer *a = &child->answer;
	const char *name = text_of(q, 0, q->name_bytes);

	if (!fds->file_count && is_about_a_file(q->call))
		return -EINVAL;
	switch (q->call) {
	case FILE_WIRE_OPEN:
		return file_child_open(child, fds, ret_fd);
	case FILE_WIRE_STAT_AT:
		return name ? file_child_stat_at(fds->dir_fd, name, &a->stat) : -EINVAL;
	case FILE_WIRE_STAT:
		return foreign_stat(fds->files[0], &a->stat);
	case FILE_WIRE_READ:
		return file_child_read(child, fds);
	case FILE_WIRE_READ_TEXT:
	case FILE_WIRE_READ_LINK:
		return file_child_read_name(child, fds->dir_fd, name);
	case FILE_WIRE_STATE:
		return foreign_state(fds->files[0], &a->id.file);
	case FILE_WIRE_IDENTITY:
		return file_child_identity(child, fds);
	case FILE_WIRE_SEND:
		return file_child_send(child, fds);
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
	bool read = child->question.call >= FILE_WIRE_READ &&
		    child->question.call <= FILE_WIRE_READ_LINK;

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
		autocall(attached_close) struct attached fds = { .dir_fd = -1 };

		err = receive_question(&child->question, &fds);
		if (!err)
			err = answer_question(child, &fds);
	}
	note_reader_deinit(&child->notes);
	free(child);
	return EXIT_SUCCESS;
}
