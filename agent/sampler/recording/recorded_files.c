/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/recording/recorded_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/sampler/recording/writer.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/io.h"

enum {
	MAX_DESCRIPTORS = 1 << 16, /* those above are not recorded */
	MAX_QUESTION_BYTES = 8192,
	MAX_FILE_BYTES = 256 << 20, /* of a file of /proc; kallsyms is the longest */
	MAX_WRITTEN = 1 << 24,
};

/* What a descriptor was opened as. */
struct recorded_handle {
	char *path; /* NULL = not opened by us */
	uint32_t object; /* 0 = a directory, or an O_PATH descriptor */
};

int recorded_files_init(struct recorded_files *f, struct writer *writer)
{
	*f = (struct recorded_files){
		.writer = writer,
		.handles = calloc(MAX_DESCRIPTORS, sizeof(*f->handles)),
	};
	map_init(&f->written, MAX_WRITTEN);
	return f->handles ? 0 : -ENOMEM;
}

void recorded_files_deinit(struct recorded_files *f)
{
	for (size_t i = 0; f->handles && i < MAX_DESCRIPTORS; i++)
		free(f->handles[i].path);
	free(f->handles);
	map_deinit(&f->written);
	*f = (struct recorded_files){ 0 };
}

static const struct recorded_handle *recorded_files_handle(const struct recorded_files *f, int fd)
{
	if (fd < 0 || fd >= MAX_DESCRIPTORS || !f->handles[fd].path)
		return NULL;
	return &f->handles[fd];
}

static int recorded_files_keep(struct recorded_files *f, int fd, const char *path, uint32_t object)
{
	char *copy = fd < MAX_DESCRIPTORS ? strdup(path) : NULL;

	if (!copy)
		return -ENOMEM;
	free(f->handles[fd].path);
	f->handles[fd] = (struct recorded_handle){ .path = copy, .object = object };
	return 0;
}

/* Writes the kind of the question and the path of PATH below DIR_FD. False: it is not recorded. */
static bool recorded_files_question(struct recorded_files *f, enum recording_question kind,
	int dir_fd, const char *path, char question[MAX_QUESTION_BYTES])
{
	const struct recorded_handle *dir;
	int length;

	if (dir_fd == AT_FDCWD) {
		length = snprintf(question, MAX_QUESTION_BYTES, "%c%s", kind, path);
		return path[0] == '/' && length < MAX_QUESTION_BYTES;
	}
	dir = recorded_files_handle(f, dir_fd);
	if (!dir)
		return false;
	length = snprintf(question, MAX_QUESTION_BYTES, "%c%s%s%s", kind, dir->path,
		path && path[0] != '/' ? "/" : "", path ? path : "");
	return length < MAX_QUESTION_BYTES;
}

static void recorded_files_answer(
	struct recorded_files *f, const char *question, int error, uint32_t object)
{
	struct recording_answer answer = { .error = error, .value = object };

	writer_put(f->writer, RECORDING_OPENED,
		&(struct writer_body){ { { &answer, sizeof(answer) }, writer_text(question) } });
}

static void recorded_files_data(
	struct recorded_files *f, uint32_t object, uint64_t offset, const void *bytes, size_t size)
{
	struct recording_data data = { .object = object, .offset = offset };
	uint64_t place[2] = { object, offset }, content[2] = { size, hash_bytes(bytes, size) };
	uint64_t key = hash_bytes(place, sizeof(place)),
		 hash = hash_bytes(content, sizeof(content));
	uint64_t last;

	/* What was there before may come back: our own memory has one size again and again. */
	if (!size || (map_get(&f->written, key, &last) && last == hash))
		return;
	(void)map_set(&f->written, key, hash);
	writer_put(f->writer, RECORDING_DATA,
		&(struct writer_body){ { { &data, sizeof(data) }, { bytes, size } } });
}

static struct recording_stat recorded_stat_of(const struct stat *st)
{
	return (struct recording_stat){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size_bytes = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) +
			    (uint64_t)st->st_mtim.tv_nsec,
		.mode = st->st_mode,
		.uid = st->st_uid,
	};
}

int recorded_files_fstat(struct recorded_files *f, int fd, struct stat *ret_stat)
{
	const struct recorded_handle *handle = recorded_files_handle(f, fd);
	struct recording_answer answer = { .value = handle ? handle->object : 0 };
	struct recording_stat st;

	if (fstat(fd, ret_stat))
		return -1;
	st = recorded_stat_of(ret_stat);
	if (answer.value)
		writer_put(f->writer, RECORDING_STAT,
			&(struct writer_body){
				{ { &answer, sizeof(answer) }, { &st, sizeof(st) } } });
	return 0;
}

int recorded_files_file_state(struct recorded_files *f, int fd, struct file_id *ret_id)
{
	const struct recorded_handle *handle = recorded_files_handle(f, fd);
	struct recording_answer answer = { .value = handle ? handle->object : 0 };
	int err = file_state_read(fd, ret_id);

	if (!err && answer.value)
		writer_put(f->writer, RECORDING_FILE_STATE,
			&(struct writer_body){
				{ { &answer, sizeof(answer) }, { ret_id, sizeof(*ret_id) } } });
	return err;
}

/* FD was opened: gives it a name in the recording. Closes it on failure. */
static int recorded_files_name(struct recorded_files *f, const char *question, int fd, bool is_file)
{
	uint32_t object = is_file ? ++f->objects : 0;
	struct stat st;

	recorded_files_answer(f, question, 0, object);
	if (recorded_files_keep(f, fd, question + 1, object)) {
		close(fd);
		errno = ENOMEM;
		return -1;
	}
	if (is_file)
		(void)recorded_files_fstat(f, fd, &st);
	return fd;
}

/* Copies the present content of a /proc file into TEXT and a memfd, which is returned. */
static int recorded_files_snapshot(int fd, struct buffer *text)
{
	autoclose int copy = memfd_create("recorded", MFD_CLOEXEC);
	ssize_t got;

	if (copy < 0)
		return -1;
	for (;;) {
		void *room = buffer_room(text, 65536);

		if (!room) {
			errno = ENOMEM;
			return -1;
		}
		got = read(fd, room, 65536);
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		text->size += (size_t)got;
	}
	if (io_write_all(copy, text->bytes, text->size) || lseek(copy, 0, SEEK_SET))
		return -1;
	return take_fd(&copy);
}

static int recorded_files_open_text(struct recorded_files *f, const char *question, int fd_)
{
	autocall(buffer_deinit) struct buffer text;
	autoclose int fd = fd_;
	int copy;

	buffer_init(&text, MAX_FILE_BYTES);
	copy = recorded_files_snapshot(fd, &text);
	if (copy < 0) {
		int error = errno;

		recorded_files_answer(f, question, error, 0);
		errno = error;
		return -1;
	}
	copy = recorded_files_name(f, question, copy, true);
	if (copy >= 0)
		recorded_files_data(f, f->objects, 0, text.bytes, text.size);
	return copy;
}

/* The size of our own memory is read again and again from one descriptor. */
static bool is_read_again(const char *path)
{
	return !strcmp(path, "/proc/self/statm");
}

int recorded_files_openat(struct recorded_files *f, int dir_fd, const char *path, int flags)
{
	bool names = flags & (O_PATH | O_DIRECTORY);
	char question[MAX_QUESTION_BYTES];
	int fd = openat(dir_fd, path, flags), error = errno;

	if (!recorded_files_question(f, RECORDING_ASKED_OPEN, dir_fd, path, question)) {
		errno = error;
		return fd;
	}
	if (fd < 0) {
		recorded_files_answer(f, question, error, 0);
		errno = error;
		return -1;
	}
	if (names || is_read_again(path))
		return recorded_files_name(f, question, fd, !names);
	return recorded_files_open_text(f, question, fd);
}

int recorded_files_resolve(int dir_fd, const char *path, enum host_resolve how, int *ret_fd)
{
	if (how == HOST_RESOLVE_AGAIN)
		return open_regular_again(dir_fd, ret_fd);
	return how == HOST_RESOLVE_BELOW ? open_regular_below(dir_fd, path, ret_fd)
					 : open_regular_itself_below(dir_fd, path, ret_fd);
}

int recorded_files_open_regular(
	struct recorded_files *f, int dir_fd, const char *path, enum host_resolve how, int *ret_fd)
{
	static const enum recording_question kinds[] = {
		[HOST_RESOLVE_AGAIN] = RECORDING_ASKED_AGAIN,
		[HOST_RESOLVE_BELOW] = RECORDING_ASKED_BELOW,
		[HOST_RESOLVE_ITSELF_BELOW] = RECORDING_ASKED_ITSELF_BELOW,
	};
	char question[MAX_QUESTION_BYTES];
	bool recorded = recorded_files_question(f, kinds[how], dir_fd, path, question);
	int fd, err = recorded_files_resolve(dir_fd, path, how, &fd);

	if (recorded && err)
		recorded_files_answer(f, question, -err, 0);
	else if (recorded)
		fd = recorded_files_name(f, question, fd, true);
	if (err)
		return err;
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int recorded_files_fstatat(
	struct recorded_files *f, int dir_fd, const char *path, struct stat *ret_stat)
{
	struct recording_answer answer = { 0 };
	struct recording_stat st = { 0 };
	char question[MAX_QUESTION_BYTES];
	int got = fstatat(dir_fd, path, ret_stat, 0);

	answer.error = got ? errno : 0;
	if (!got)
		st = recorded_stat_of(ret_stat);
	if (recorded_files_question(f, RECORDING_ASKED_STAT, dir_fd, path, question))
		writer_put(f->writer, RECORDING_STAT_AT,
			&(struct writer_body){ { { &answer, sizeof(answer) }, { &st, sizeof(st) },
				writer_text(question) } });
	errno = answer.error;
	return got;
}

ssize_t recorded_files_readlinkat(
	struct recorded_files *f, int dir_fd, const char *path, char *text, size_t size)
{
	struct recording_answer answer = { 0 };
	char question[MAX_QUESTION_BYTES];
	ssize_t length = readlinkat(dir_fd, path, text, size);

	answer.error = length < 0 ? errno : 0;
	answer.value = (uint32_t)MAX(length, 0);
	if (recorded_files_question(f, RECORDING_ASKED_LINK, dir_fd, path, question))
		writer_put(f->writer, RECORDING_LINK,
			&(struct writer_body){ { { &answer, sizeof(answer) },
				{ text, answer.value }, writer_text(question) } });
	errno = answer.error;
	return length;
}

ssize_t recorded_files_pread(struct recorded_files *f, int fd, void *bytes, size_t size, off_t off)
{
	const struct recorded_handle *handle = recorded_files_handle(f, fd);
	ssize_t got = pread(fd, bytes, size, off);

	if (handle && handle->object && got > 0)
		recorded_files_data(f, handle->object, (uint64_t)off, bytes, (size_t)got);
	return got;
}

struct dirent *recorded_files_readdir(const struct recorded_files *f, DIR *directory)
{
	const struct recorded_handle *handle = recorded_files_handle(f, dirfd(directory));
	struct dirent *entry = readdir(directory);
	struct recording_answer answer = { .error = entry ? 0 : errno, .value = entry != NULL };
	char question[MAX_QUESTION_BYTES];

	if (handle) {
		snprintf(question, sizeof(question), "%c%s", RECORDING_ASKED_ENTRIES, handle->path);
		writer_put(f->writer, RECORDING_ENTRY,
			&(struct writer_body){ { { &answer, sizeof(answer) },
				writer_text(entry ? entry->d_name : ""), writer_text(question) } });
	}
	errno = answer.error;
	return entry;
}

void recorded_files_build_id(struct recorded_files *f, int fd, int err, const struct build_id *id)
{
	const struct recorded_handle *handle = recorded_files_handle(f, fd);
	struct recording_answer answer = { .error = -err, .value = handle ? handle->object : 0 };
	struct build_id found = { 0 };

	if (!err)
		found = *id;
	if (answer.value)
		writer_put(f->writer, RECORDING_BUILD_ID,
			&(struct writer_body){
				{ { &answer, sizeof(answer) }, { &found, sizeof(found) } } });
}
