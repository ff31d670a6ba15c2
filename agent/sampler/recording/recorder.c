/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's struct host: has the sampler's clock, and passes what the recorded thread asks to
 * those who record it. Other threads, of libraries and servers, ask the system.
 */
#include "agent/sampler/recording/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/recording/recorded_files.h"
#include "agent/sampler/recording/recorded_notes.h"
#include "agent/sampler/recording/recorded_rings.h"
#include "agent/sampler/recording/writer.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/host.h"

struct recorder {
	struct host host;
	struct writer writer;
	pid_t thread;
	struct recording_begin begin;
	struct recorded_files files;
	struct recorded_rings rings;
	struct recorded_notes notes;
};

static bool is_recorded_thread(const struct recorder *r)
{
	return gettid() == r->thread;
}

/* ---- the clock ------------------------------------------------------------------------------- */

static uint64_t recorder_system_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Advances the sampler's clock, by a nanosecond at least. */
static void recorder_tick(struct recorder *r)
{
	uint64_t now_ns = recorder_system_ns(CLOCK_MONOTONIC);

	r->writer.now_ns = MAX(now_ns, r->writer.now_ns + 1);
}

static uint64_t recorder_clock_ns(void *context, clockid_t clock)
{
	const struct recorder *r = context;

	if (!is_recorded_thread(r))
		return recorder_system_ns(clock);
	switch (clock) {
	case CLOCK_MONOTONIC:
		return r->writer.now_ns;
	case CLOCK_BOOTTIME:
		return r->writer.now_ns + (uint64_t)r->begin.boot_offset_ns;
	case CLOCK_REALTIME:
		return r->writer.now_ns + (uint64_t)r->begin.real_offset_ns;
	default:
		return recorder_system_ns(clock);
	}
}

/* ---- questions ------------------------------------------------------------------------------- */

static int recorder_openat(void *context, int dir_fd, const char *path, int flags)
{
	struct recorder *r = context;

	return is_recorded_thread(r) ? recorded_files_openat(&r->files, dir_fd, path, flags)
				     : openat(dir_fd, path, flags);
}

static int recorder_open_regular(
	void *context, int dir_fd, const char *path, enum host_resolve how, int *ret_fd)
{
	struct recorder *r = context;

	return is_recorded_thread(r)
		       ? recorded_files_open_regular(&r->files, dir_fd, path, how, ret_fd)
		       : recorded_files_resolve(dir_fd, path, how, ret_fd);
}

static int recorder_fstat(void *context, int fd, struct stat *ret_stat)
{
	struct recorder *r = context;

	return is_recorded_thread(r) ? recorded_files_fstat(&r->files, fd, ret_stat)
				     : fstat(fd, ret_stat);
}

static int recorder_file_state(void *context, int fd, struct file_id *ret_id)
{
	struct recorder *r = context;

	return is_recorded_thread(r) ? recorded_files_file_state(&r->files, fd, ret_id)
				     : file_state_read(fd, ret_id);
}

static int recorder_fstatat(void *context, int dir_fd, const char *path, struct stat *ret_stat)
{
	struct recorder *r = context;

	return is_recorded_thread(r) ? recorded_files_fstatat(&r->files, dir_fd, path, ret_stat)
				     : fstatat(dir_fd, path, ret_stat, 0);
}

static ssize_t recorder_readlinkat(
	void *context, int dir_fd, const char *path, char *text, size_t size)
{
	struct recorder *r = context;

	return is_recorded_thread(r)
		       ? recorded_files_readlinkat(&r->files, dir_fd, path, text, size)
		       : readlinkat(dir_fd, path, text, size);
}

static ssize_t recorder_pread(void *context, int fd, void *bytes, size_t size, off_t off)
{
	struct recorder *r = context;

	return is_recorded_thread(r) ? recorded_files_pread(&r->files, fd, bytes, size, off)
				     : pread(fd, bytes, size, off);
}

static struct dirent *recorder_readdir(void *context, DIR *directory)
{
	const struct recorder *r = context;

	return is_recorded_thread(r) ? recorded_files_readdir(&r->files, directory)
				     : readdir(directory);
}

static int recorder_build_id(void *context, const struct build_id_reader *reader,
	const struct build_id_question *question, struct build_id *ret_id)
{
	struct recorder *r = context;
	int err = reader->read(reader->context, question, ret_id);

	if (is_recorded_thread(r))
		recorded_files_build_id(&r->files, question->fd, err, ret_id);
	return err;
}

static void recorder_rings(void *context, struct ring **rings, size_t count)
{
	struct recorder *r = context;

	recorded_rings_move(&r->rings, rings, count);
	recorder_tick(r);
	writer_put(&r->writer, RECORDING_LOOKED, NULL);
}

static void recorder_note(void *context, enum host_note kind, const void *what)
{
	struct recorder *r = context;

	if (!is_recorded_thread(r))
		return;
	if (kind == HOST_NOTE_TICK || kind == HOST_NOTE_CALL)
		recorder_tick(r);
	recorded_notes_put(&r->notes, kind, what);
}

/* ---- the start ------------------------------------------------------------------------------- */

static void recorder_begin(struct recorder *r)
{
	uint64_t now_ns;

	recorder_tick(r);
	now_ns = r->writer.now_ns;
	r->begin.real_offset_ns = (int64_t)(recorder_system_ns(CLOCK_REALTIME) - now_ns);
	r->begin.boot_offset_ns = (int64_t)(recorder_system_ns(CLOCK_BOOTTIME) - now_ns);
	writer_put(&r->writer, RECORDING_BEGIN,
		&(struct writer_body){ { { &r->begin, sizeof(r->begin) } } });
}

static int recorder_init(struct recorder *r, const char *path)
{
	int err;

	r->thread = gettid();
	recorded_notes_init(&r->notes, &r->writer);
	err = recorded_files_init(&r->files, &r->writer);
	if (!err)
		err = recorded_rings_init(&r->rings, &r->writer);
	return err ? err : writer_init(&r->writer, path);
}

int recorder_start(const char *path)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	err = recorder_init(r, path);
	if (err) {
		recorded_files_deinit(&r->files);
		recorded_rings_deinit(&r->rings);
		recorded_notes_deinit(&r->notes);
		free(r);
		return err;
	}
	recorder_begin(r);
	r->host = (struct host){
		.context = r,
		.clock_ns = recorder_clock_ns,
		.openat = recorder_openat,
		.open_regular = recorder_open_regular,
		.fstat = recorder_fstat,
		.file_state = recorder_file_state,
		.fstatat = recorder_fstatat,
		.readlinkat = recorder_readlinkat,
		.pread = recorder_pread,
		.readdir = recorder_readdir,
		.build_id = recorder_build_id,
		.rings = recorder_rings,
		.note = recorder_note,
	};
	/* It lives until the process exits, which flushes the file. */
	host_current = &r->host;
	return 0;
}
