/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of base/foreign.h as questions to the helper's children. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "agent/sampler/files/file_helper_internal.h"
#include "agent/sampler/files/file_wire.h"
#include "base/cleanup.h"
#include "base/open_regular.h"

static void prepare(struct file_helper *h, enum file_wire_call call)
{
	memset(h->question, 0, offsetof(struct file_wire_question, text));
	h->question->call = (uint32_t)call;
}

static int put_text(struct file_wire_question *q, const char *text, uint32_t *ret_bytes)
{
	size_t bytes = text ? strlen(text) + 1 : 0;

	if (bytes > FOREIGN_PATH_BYTES)
		return -ENAMETOOLONG;
	memcpy(q->text + q->name_bytes + q->path_bytes, text ? text : "", bytes);
	*ret_bytes = (uint32_t)bytes;
	return 0;
}

static int prepare_path(struct file_helper *h, const struct foreign_path *path)
{
	struct file_wire_question *q = h->question;
	int err;

	prepare(h, FILE_WIRE_OPEN);
	q->place = (uint32_t)path->place;
	err = put_text(q, path->name, &q->name_bytes);
	return err ? err : put_text(q, path->path, &q->path_bytes);
}

static void attach_directory(struct file_helper *h, struct subject *s, int dir_fd)
{
	if (dir_fd < 0)
		return;
	h->question->has_directory = true;
	s->fds[s->fd_count++] = dir_fd;
}

static void attach_file(struct file_helper *h, struct subject *s, int fd)
{
	h->question->file_count++;
	s->fds[s->fd_count++] = fd;
}

static struct subject subject_of(uint64_t file_key)
{
	return (struct subject){ .file_keys = { file_key }, .key_count = 1 };
}

static bool has_directory(enum foreign_place place)
{
	return place != FOREIGN_HERE;
}

static int file_helper_open(void *context, const struct foreign_path *path, int *ret_fd)
{
	struct file_helper *h = context;
	struct subject s = subject_of(file_key_of_path(path));
	size_t bytes;
	int64_t result;
	int fd, err = prepare_path(h, path);

	if (err)
		return err;
	if (path->place == FOREIGN_MAPPED)
		s.memory_key = file_key_of_memory(path->dir_fd);
	if (has_directory(path->place))
		attach_directory(h, &s, path->dir_fd);
	result = file_helper_ask(h, &s, &bytes, &fd);
	if (result < 0)
		return (int)result;
	if (fd < 0)
		return -EMFILE; /* the kernel drops a descriptor that we have no room for */
	file_keys_set(&h->keys, fd, s.file_keys[0]);
	if (path->place == FOREIGN_MAPPED)
		h->opened_fd = fd;
	*ret_fd = fd;
	return 0;
}

static int file_helper_stat_at(void *context, int dir_fd, const char *name, struct stat *ret_stat)
{
	struct file_helper *h = context;
	struct subject s = subject_of(file_key_of_entry(dir_fd, name));
	size_t bytes;
	int64_t result;
	int fd, err;

	prepare(h, FILE_WIRE_STAT_AT);
	err = put_text(h->question, name, &h->question->name_bytes);
	if (err)
		return err;
	attach_directory(h, &s, dir_fd);
	result = file_helper_ask(h, &s, &bytes, &fd);
	*ret_stat = h->answer->stat;
	return (int)result;
}

/* Asks CALL, which was prepared, about the open file FD. */
static int64_t ask_of_file(struct file_helper *h, int file_fd, size_t *ret_bytes)
{
	struct subject s = subject_of(file_keys_get(&h->keys, file_fd));
	int fd;

	attach_file(h, &s, file_fd);
	return file_helper_ask(h, &s, ret_bytes, &fd);
}

static int file_helper_stat(void *context, int fd, struct stat *ret_stat)
{
	struct file_helper *h = context;
	size_t bytes;
	int64_t result;

	prepare(h, FILE_WIRE_STAT);
	result = ask_of_file(h, fd, &bytes);
	*ret_stat = h->answer->stat;
	return (int)result;
}

static ssize_t file_helper_read_at(void *context, int fd, uint64_t off, void *bytes, size_t size)
{
	struct file_helper *h = context;
	size_t done = 0, got;

	while (done < size) {
		size_t wanted = MIN(size - done, (size_t)FILE_WIRE_BYTES);
		int64_t result;

		prepare(h, FILE_WIRE_READ);
		h->question->off = off + done;
		h->question->size = wanted;
		result = ask_of_file(h, fd, &got);
		if (result < 0)
			return (ssize_t)result;
		got = MIN(got, wanted);
		memcpy((char *)bytes + done, h->answer->bytes, got);
		done += got;
		if (got < wanted)
			break;
	}
	return (ssize_t)done;
}

/* CALL reads what is at DIR_FD/NAME of /proc. */
static ssize_t ask_for_text(struct file_helper *h, enum file_wire_call call, int dir_fd,
	const char *name, char *text, size_t size)
{
	struct subject s = subject_of(file_key_of_memory(dir_fd));
	size_t got;
	int64_t result;
	int fd, err;

	prepare(h, call);
	h->question->size = size;
	err = put_text(h->question, name, &h->question->name_bytes);
	if (err)
		return err;
	attach_directory(h, &s, dir_fd);
	result = file_helper_ask(h, &s, &got, &fd);
	if (result < 0)
		return (ssize_t)result;
	got = MIN(got, size);
	memcpy(text, h->answer->bytes, got);
	return (ssize_t)got;
}

static ssize_t file_helper_read_text(
	void *context, int dir_fd, const char *name, char *text, size_t size)
{
	return ask_for_text(context, FILE_WIRE_READ_TEXT, dir_fd, name, text, size);
}

static ssize_t file_helper_read_link(
	void *context, int dir_fd, const char *name, char *text, size_t size)
{
	return ask_for_text(context, FILE_WIRE_READ_LINK, dir_fd, name, text, size);
}

static int file_helper_state(void *context, int fd, struct file_id *ret_id)
{
	struct file_helper *h = context;
	size_t bytes;
	int64_t result = 0;

	/* The first look after opening is free. */
	if (fd != h->opened_fd) {
		prepare(h, FILE_WIRE_STATE);
		result = ask_of_file(h, fd, &bytes);
	}
	h->opened_fd = -1;
	if (!result)
		*ret_id = h->answer->id.file;
	return (int)result;
}

static int file_helper_identity(
	void *context, const struct build_id_question *question, struct module_id *ret_id)
{
	struct file_helper *h = context;
	struct subject s = subject_of(file_keys_get(&h->keys, question->fd));
	size_t bytes;
	int64_t result;
	int fd;

	if (question->task_fd >= 0)
		s.memory_key = file_key_of_memory(question->task_fd);
	prepare(h, FILE_WIRE_IDENTITY);
	h->question->start = question->start;
	h->question->end = question->end;
	attach_directory(h, &s, question->task_fd);
	attach_file(h, &s, question->fd);
	result = file_helper_ask(h, &s, &bytes, &fd);
	if (!result && h->answer->id.build_id.size > BUILD_ID_MAX_BYTES)
		return -EBADMSG;
	if (!result)
		*ret_id = h->answer->id;
	return (int)result;
}

/* The socket takes the place of the directory. */
static int file_helper_send(void *context, int socket_fd, const void *bytes, size_t size,
	const int *fds, size_t fd_count)
{
	struct file_helper *h = context;
	struct subject s = { .key_count = 0 };
	size_t unused;
	int fd;

	if (size > FOREIGN_SEND_BYTES || fd_count > FOREIGN_SEND_FILES)
		return -E2BIG;
	/* Nothing to wait for. */
	if (!fd_count)
		return foreign_send_now(socket_fd, bytes, size, fds, fd_count);
	prepare(h, FILE_WIRE_SEND);
	memcpy(h->question->text, bytes, size);
	h->question->message_bytes = (uint32_t)size;
	attach_directory(h, &s, socket_fd);
	for (size_t i = 0; i < fd_count; i++) {
		/* Our own files are not found among the keys; a number may have been another's. */
		s.file_keys[s.key_count++] =
			open_regular_is_path(fds[i]) ? file_keys_get(&h->keys, fds[i]) : 1;
		attach_file(h, &s, fds[i]);
	}
	return (int)file_helper_ask(h, &s, &unused, &fd);
}

struct foreign file_calls_of(struct file_helper *h)
{
	return (struct foreign){ .context = h,
		.open = file_helper_open,
		.stat_at = file_helper_stat_at,
		.stat = file_helper_stat,
		.read_at = file_helper_read_at,
		.read_text = file_helper_read_text,
		.read_link = file_helper_read_link,
		.state = file_helper_state,
		.identity = file_helper_identity,
		.send = file_helper_send };
}
