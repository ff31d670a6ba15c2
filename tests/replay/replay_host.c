/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the host's calls: clocks and files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "tests/replay/replay_internal.h"

enum { MAX_DESCRIPTORS = 1 << 12, MAX_QUESTION_BYTES = 8192, MAX_ASKED = 1 << 22 };

static const uint64_t MAX_FILE_BYTES = UINT64_C(1) << 28; /* including holes */

void replay_move_clock(struct replay *r, uint64_t time_ns)
{
	r->now_ns = MAX(r->now_ns, time_ns);
}

static uint64_t replay_clock_ns(void *context, clockid_t clock)
{
	const struct replay *r = context;

	switch (clock) {
	case CLOCK_BOOTTIME:
		return r->now_ns + (uint64_t)r->recording->begin.boot_offset_ns;
	case CLOCK_REALTIME:
		return r->now_ns + (uint64_t)r->recording->begin.real_offset_ns;
	default:
		return r->now_ns;
	}
}

/* ---- questions ------------------------------------------------------------------------------- */

uint32_t replay_ask(struct replay *r, enum recording_type type, uint64_t key)
{
	const struct record *records = r->recording->records;
	uint64_t asked_key = key * 33 + (uint64_t)type, last = 0;
	uint32_t first = recording_first(r->recording, type, key), found = first;

	(void)map_get(&r->asked, asked_key, &last);
	for (uint32_t at = first; at && records[at].time_ns <= r->now_ns; at = records[at].next) {
		found = at;
		if (records[at].time_ns == r->now_ns && at > last)
			break;
	}
	if (found)
		(void)map_set(&r->asked, asked_key, found);
	(void)replay_use(r, found);
	return found;
}

static struct replay_handle *replay_handle(struct replay *r, int fd)
{
	bool known = fd >= 0 && fd < MAX_DESCRIPTORS && r->handles[fd].path;

	return known ? &r->handles[fd] : NULL;
}

static bool replay_question(struct replay *r, enum recording_question kind, int dir_fd,
	const char *path, char question[MAX_QUESTION_BYTES])
{
	const struct replay_handle *dir = replay_handle(r, dir_fd);
	int length;

	if (dir_fd == AT_FDCWD)
		length = snprintf(question, MAX_QUESTION_BYTES, "%c%s", kind, path);
	else
		length = snprintf(question, MAX_QUESTION_BYTES, "%c%s%s%s", kind,
			dir ? dir->path : "?", path && path[0] != '/' ? "/" : "", path ? path : "");
	return length < MAX_QUESTION_BYTES;
}

/* Finds the recorded answer. Returns false with errno if there is none or if it is an error. */
static bool replay_answer(struct replay *r, enum recording_type type, const char *question,
	struct recording_answer *ret_answer, const struct record **ret_record)
{
	uint32_t number = replay_ask(r, type, recording_text_key(question));
	const struct record *record = &r->recording->records[number];

	if (!number || !recording_body(record, ret_answer, sizeof(*ret_answer))) {
		if (!r->result.unanswered++)
			snprintf(r->result.first_unanswered, sizeof(r->result.first_unanswered),
				"%s", question);
		errno = ENOENT;
		return false;
	}
	*ret_record = record;
	errno = ret_answer->error;
	return ret_answer->error == 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool replay_stat_of(struct replay *r, uint32_t object, struct recording_stat *ret_stat)
{
	uint32_t number = replay_ask(r, RECORDING_STAT, recording_number_key(object));
	struct {
		struct recording_answer answer;
		struct recording_stat stat;
	} body;

	if (!number || !recording_body(&r->recording->records[number], &body, sizeof(body)))
		return false;
	*ret_stat = body.stat;
	return true;
}

/* Writes to FD what the recorded run had read of the file so far. */
static void replay_write_data(struct replay *r, int fd, struct replay_handle *handle)
{
	const struct record *records = r->recording->records;
	uint64_t key = recording_number_key(handle->object);
	uint32_t first = recording_first(r->recording, RECORDING_DATA, key);
	uint32_t at = handle->written ? records[handle->written].next : first;
	struct recording_stat st;

	for (; at && (records[at].time_ns <= r->now_ns || at == first); at = records[at].next) {
		struct recording_data data;

		handle->written = at;
		(void)replay_use(r, at);
		if (!recording_body(&records[at], &data, sizeof(data)) ||
			data.offset > MAX_FILE_BYTES)
			continue;
		if (pwrite(fd, records[at].body + sizeof(data), records[at].size - sizeof(data),
			    (off_t)data.offset) < 0)
			return;
	}
	if (replay_stat_of(r, handle->object, &st) && st.size_bytes <= MAX_FILE_BYTES &&
		S_ISREG(st.mode) && st.size_bytes)
		(void)!ftruncate(fd, (off_t)st.size_bytes);
}

static int replay_open_as(
	struct replay *r, const char *question, const struct recording_answer *answer, int flags)
{
	int fd = answer->value ? memfd_create("replay", MFD_CLOEXEC)
			       : open("/", (flags & O_PATH) | O_DIRECTORY | O_CLOEXEC);
	char *path = fd >= 0 && fd < MAX_DESCRIPTORS ? strdup(question + 1) : NULL;

	if (!path) {
		if (fd >= 0)
			close(fd);
		errno = ENOMEM;
		return -1;
	}
	free(r->handles[fd].path);
	r->handles[fd] = (struct replay_handle){ .path = path, .object = answer->value };
	if (answer->value)
		replay_write_data(r, fd, &r->handles[fd]);
	return fd;
}

static int replay_openat(void *context, int dir_fd, const char *path, int flags)
{
	struct replay *r = context;
	struct recording_answer answer;
	const struct record *record;
	char question[MAX_QUESTION_BYTES];

	if (!replay_question(r, RECORDING_ASKED_OPEN, dir_fd, path, question)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (!replay_answer(r, RECORDING_OPENED, question, &answer, &record))
		return -1;
	return replay_open_as(r, question, &answer, flags);
}

static int replay_open_regular(
	void *context, int dir_fd, const char *path, enum host_resolve how, int *ret_fd)
{
	static const enum recording_question kinds[] = {
		[HOST_RESOLVE_AGAIN] = RECORDING_ASKED_AGAIN,
		[HOST_RESOLVE_BELOW] = RECORDING_ASKED_BELOW,
		[HOST_RESOLVE_ITSELF_BELOW] = RECORDING_ASKED_ITSELF_BELOW,
	};
	struct replay *r = context;
	struct recording_answer answer;
	const struct record *record;
	char question[MAX_QUESTION_BYTES];
	int fd;

	if (!replay_question(r, kinds[how], dir_fd, path, question))
		return -ENAMETOOLONG;
	if (!replay_answer(r, RECORDING_OPENED, question, &answer, &record))
		return -errno;
	fd = replay_open_as(r, question, &answer, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void replay_fill_stat(const struct recording_stat *from, struct stat *ret_stat)
{
	*ret_stat = (struct stat){
		.st_dev = from->device,
		.st_ino = from->inode,
		.st_size = (off_t)from->size_bytes,
		.st_mtim = { .tv_sec = (time_t)(from->mtime_ns / 1000000000u),
			.tv_nsec = (long)(from->mtime_ns % 1000000000u) },
		.st_mode = from->mode,
		.st_uid = from->uid,
	};
}

static int replay_fstat(void *context, int fd, struct stat *ret_stat)
{
	struct replay *r = context;
	const struct replay_handle *handle = replay_handle(r, fd);
	struct recording_stat st;

	if (!handle || !handle->object || !replay_stat_of(r, handle->object, &st)) {
		errno = EBADF;
		return -1;
	}
	replay_fill_stat(&st, ret_stat);
	return 0;
}

/* Older recordings have the results of fstat() only. */
static int replay_file_state(void *context, int fd, struct file_id *ret_id)
{
	struct replay *r = context;
	const struct replay_handle *handle = replay_handle(r, fd);
	uint64_t key = recording_number_key(handle ? handle->object : 0);
	struct recording_stat st;
	struct {
		struct recording_answer answer;
		struct file_id id;
	} body;
	uint32_t number;

	if (!handle || !handle->object)
		return -EBADF;
	number = replay_ask(r, RECORDING_FILE_STATE, key);
	if (number && recording_body(&r->recording->records[number], &body, sizeof(body))) {
		*ret_id = body.id;
		return 0;
	}
	if (!replay_stat_of(r, handle->object, &st))
		return -EBADF;
	*ret_id = (struct file_id){ .device = st.device,
		.inode = st.inode,
		.mtime_ns = st.mtime_ns,
		.size_bytes = st.size_bytes };
	return 0;
}

static int replay_fstatat(void *context, int dir_fd, const char *path, struct stat *ret_stat)
{
	struct replay *r = context;
	struct {
		struct recording_answer answer;
		struct recording_stat stat;
	} body;
	struct recording_answer answer;
	const struct record *record;
	char question[MAX_QUESTION_BYTES];

	if (!replay_question(r, RECORDING_ASKED_STAT, dir_fd, path, question) ||
		!replay_answer(r, RECORDING_STAT_AT, question, &answer, &record))
		return -1;
	if (!recording_body(record, &body, sizeof(body))) {
		errno = EIO;
		return -1;
	}
	replay_fill_stat(&body.stat, ret_stat);
	return 0;
}

static ssize_t replay_readlinkat(
	void *context, int dir_fd, const char *path, char *text, size_t size)
{
	struct replay *r = context;
	struct recording_answer answer;
	const struct record *record;
	char question[MAX_QUESTION_BYTES];
	size_t length;

	if (!replay_question(r, RECORDING_ASKED_LINK, dir_fd, path, question) ||
		!replay_answer(r, RECORDING_LINK, question, &answer, &record))
		return -1;
	length = MIN((size_t)answer.value, size);
	length = MIN(length, (size_t)record->size - sizeof(answer));
	memcpy(text, record->body + sizeof(answer), length);
	return (ssize_t)length;
}

static ssize_t replay_pread(void *context, int fd, void *bytes, size_t size, off_t off)
{
	struct replay *r = context;
	struct replay_handle *handle = replay_handle(r, fd);

	if (handle && handle->object)
		replay_write_data(r, fd, handle);
	return pread(fd, bytes, size, off);
}

static bool is_last_entry(const struct record *record)
{
	struct recording_answer answer = { 0 };

	return !recording_body(record, &answer, sizeof(answer)) || !answer.value;
}

/* Returns the first entry of the directory's latest listing so far, or of its first one. */
static uint32_t replay_first_entry(const struct replay *r, uint64_t key)
{
	const struct record *records = r->recording->records;
	uint32_t first = recording_first(r->recording, RECORDING_ENTRY, key), found = first;
	bool begins = true;

	for (uint32_t at = first; at && records[at].time_ns <= r->now_ns; at = records[at].next) {
		if (begins)
			found = at;
		begins = is_last_entry(&records[at]);
	}
	return found;
}

static struct dirent *replay_readdir(void *context, DIR *directory)
{
	struct replay *r = context;
	struct replay_handle *handle = replay_handle(r, dirfd(directory));
	char question[MAX_QUESTION_BYTES];
	const struct record *record;

	errno = 0;
	if (!handle || handle->entries_ended)
		return NULL;
	if (!handle->entry) {
		snprintf(question, sizeof(question), "%c%s", RECORDING_ASKED_ENTRIES, handle->path);
		handle->entry = replay_first_entry(r, recording_text_key(question));
	}
	record = replay_use(r, handle->entry);
	handle->entries_ended = !handle->entry || is_last_entry(record) || !record->next;
	if (!handle->entry || is_last_entry(record))
		return NULL;
	snprintf(r->entry.d_name, sizeof(r->entry.d_name), "%s",
		recording_text(record, sizeof(struct recording_answer)));
	handle->entry = record->next;
	return &r->entry;
}

/* READER is not used: it would need the file's bytes, or another process. */
static int replay_build_id(void *context, const struct build_id_reader *reader,
	const struct build_id_question *question, struct build_id *ret_id)
{
	struct replay *r = context;
	const struct replay_handle *handle = replay_handle(r, question->fd);
	uint32_t object = handle ? handle->object : 0;
	uint32_t number = replay_ask(r, RECORDING_BUILD_ID, recording_number_key(object));
	const struct record *record = &r->recording->records[number];
	struct recording_answer answer;
	struct build_id id;

	(void)reader;
	if (!number) {
		if (!r->result.unanswered++)
			snprintf(r->result.first_unanswered, sizeof(r->result.first_unanswered),
				"the build ID of %.200s", handle ? handle->path : "a file");
		return -ENOENT;
	}
	if (!recording_body(record, &answer, sizeof(answer)) ||
		record->size != sizeof(answer) + sizeof(id))
		return -EBADMSG;
	memcpy(&id, record->body + sizeof(answer), sizeof(id));
	if (answer.error)
		return -abs(answer.error);
	if (id.size > BUILD_ID_MAX_BYTES)
		return -EBADMSG;
	*ret_id = id;
	return 0;
}

static void replay_rings(void *context, struct ring **rings, size_t count)
{
	(void)context;
	(void)rings;
	(void)count;
}

static void replay_note(void *context, enum host_note note, const void *what)
{
	(void)context;
	(void)note;
	(void)what;
}

int replay_host_init(struct replay *r)
{
	r->handles = calloc(MAX_DESCRIPTORS, sizeof(*r->handles));
	if (!r->handles)
		return -ENOMEM;
	map_init(&r->asked, MAX_ASKED);
	r->host = (struct host){
		.context = r,
		.clock_ns = replay_clock_ns,
		.openat = replay_openat,
		.open_regular = replay_open_regular,
		.fstat = replay_fstat,
		.file_state = replay_file_state,
		.fstatat = replay_fstatat,
		.readlinkat = replay_readlinkat,
		.pread = replay_pread,
		.readdir = replay_readdir,
		.build_id = replay_build_id,
		.rings = replay_rings,
		.note = replay_note,
	};
	host_current = &r->host;
	return 0;
}

void replay_host_deinit(struct replay *r)
{
	host_current = NULL;
	for (size_t i = 0; r->handles && i < MAX_DESCRIPTORS; i++)
		free(r->handles[i].path);
	free(r->handles);
	map_deinit(&r->asked);
}
