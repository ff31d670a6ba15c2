/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments. At start the headers of each are read (not the bodies: a gigabyte of payloads is
 * some ten thousand small reads), to learn numbers, ages and where a killed writer stopped. An
 * earlier run's segment is never appended to: its end may be torn, which readers skip.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/export/spool/spool_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

enum {
	DIRECTORY_MODE = 0750,
	MAX_SEGMENTS = 1 << 16,
	ID_DIGITS = 16,
};

static const char version_file[] = "version";
static const char version_line[] = "fathom-spool 1";
static const char suffix[] = ".seg";

static void segment_name(uint64_t id, char name[SPOOL_NAME_BYTES])
{
	snprintf(name, SPOOL_NAME_BYTES, "%016" PRIx64 "%s", id, suffix);
}

static bool parse_name(const char *name, uint64_t *ret_id)
{
	if (strlen(name) != ID_DIGITS + sizeof(suffix) - 1 || strcmp(name + ID_DIGITS, suffix) ||
		strspn(name, "0123456789abcdef") != ID_DIGITS)
		return false;
	*ret_id = strtoull(name, NULL, 16);
	return *ret_id != UINT64_MAX;
}

static int open_segment(const struct spool *s, uint64_t id, int flags)
{
	char name[SPOOL_NAME_BYTES];
	int fd;

	segment_name(id, name);
	fd = openat(s->fd, name, flags | O_CLOEXEC | O_NOFOLLOW, SPOOL_FILE_MODE);
	return fd < 0 ? -errno : fd;
}

/* Missing, or not a file of ours. Other errors say nothing about the file. */
static bool segment_is_gone(int err)
{
	return err == -ENOENT || err == -ELOOP || err == -EACCES || err == -EISDIR || err == -ENXIO;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void note_record(struct spool_segment *segment, uint64_t number, int64_t time_ns)
{
	if (!segment->records++) {
		segment->first = number;
		segment->oldest_ns = segment->newest_ns = time_ns;
	}
	segment->last = number;
	segment->oldest_ns = MIN(segment->oldest_ns, time_ns);
	segment->newest_ns = MAX(segment->newest_ns, time_ns);
}

static void spool_disk_walk(int fd, struct spool_segment *segment)
{
	struct segment_record record = { 0 };

	while (!segment_next(fd, record.end, segment->size, &record)) {
		/* Skips numbers that decrease: those records would be sent again and again. */
		if (record.number > segment->last || !segment->records)
			note_record(segment, record.number, record.time_ns);
	}
	segment->damaged_end = record.after_damage;
}

static int add_segment(struct spool *s, uint64_t id)
{
	struct spool_segment segment = { .id = id };
	autoclose int fd = open_segment(s, id, O_RDONLY);
	struct stat st;

	if (fd < 0)
		return segment_is_gone(fd) ? 0 : fd;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (array_reserve(s->segments, s->segment_capacity, s->segment_count + 1, MAX_SEGMENTS))
		return -ENOMEM;
	segment.size = (uint64_t)st.st_size;
	spool_disk_walk(fd, &segment);
	s->segments[s->segment_count++] = segment;
	s->disk_bytes += segment.size;
	s->next_segment = MAX(s->next_segment, id + 1);
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct spool_segment *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void remove_segment(struct spool *s, size_t at)
{
	char name[SPOOL_NAME_BYTES];

	if (at + 1 == s->segment_count && s->write_fd >= 0) {
		close(s->write_fd);
		s->write_fd = -1;
		s->unsynced_ns = 0;
	}
	segment_name(s->segments[at].id, name);
	unlinkat(s->fd, name, 0);
	s->disk_bytes -= s->segments[at].size;
	s->segment_count--;
	memmove(&s->segments[at], &s->segments[at + 1],
		(s->segment_count - at) * sizeof(s->segments[0]));
}

/* Removes segments without a record newer than those in earlier segments. */
static void tidy(struct spool *s)
{
	uint64_t last = 0;

	for (size_t i = 0; i < s->segment_count;) {
		if (!s->segments[i].records || s->segments[i].first <= last) {
			remove_segment(s, i);
			continue;
		}
		/*
		 * A record lost at a damaged end had a number too: skip it, so that the gap is
		 * counted.
		 */
		last = s->segments[i].last + s->segments[i].damaged_end;
		i++;
	}
	s->next_number = last + 1;
}

static int spool_disk_scan(struct spool *s)
{
	autoclosedir DIR *directory = NULL;
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *e;
	uint64_t id;
	int err = 0;

	if (fd < 0)
		return -errno;
	directory = fdopendir(fd);
	if (!directory) {
		close(fd);
		return -ENOMEM;
	}
	err = io_next_entry(directory, &e);
	while (!err && e) {
		if (parse_name(e->d_name, &id))
			err = add_segment(s, id);
		if (!err)
			err = io_next_entry(directory, &e);
	}
	if (s->segment_count)
		qsort(s->segments, s->segment_count, sizeof(s->segments[0]), by_id);
	if (!err)
		tidy(s);
	return err;
}

/* NULL if it can be used, else why not. */
static const char *check_version(int fd)
{
	char line[64];
	ssize_t length = io_read_line(fd, version_file, line, sizeof(line));
	int err;

	if (length >= 0)
		return strcmp(line, version_line) ? "it was written by another version" : NULL;
	if (length != -ENOENT)
		return "its version cannot be read";
	snprintf(line, sizeof(line), "%s\n", version_line);
	err = io_replace_file(fd, version_file, line, strlen(line), SPOOL_FILE_MODE);
	return err ? "it cannot be written to" : NULL;
}

int spool_disk_open(struct spool *s, const char *path)
{
	autoclose int fd = -1;
	int err = io_open_own_directory(path, DIRECTORY_MODE, &fd);

	if (err == -EBUSY || err == -EPERM)
		return err;
	s->trouble = err ? "it cannot be created or opened" : check_version(fd);
	if (s->trouble)
		return 0;
	s->fd = take_fd(&fd);
	err = spool_disk_scan(s);
	if (err == -ENOMEM)
		return err;
	if (err) {
		s->trouble = "it cannot be read";
		spool_disk_close(s);
	}
	return 0;
}

void spool_disk_close(struct spool *s)
{
	spool_disk_sync(s);
	if (s->write_fd >= 0)
		close(s->write_fd);
	if (s->fd >= 0)
		close(s->fd);
	s->write_fd = s->fd = -1;
	free(s->segments);
	s->segments = NULL;
	s->segment_count = s->segment_capacity = 0;
	s->disk_bytes = 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

void spool_disk_sync(struct spool *s)
{
	if (!s->unsynced_ns)
		return;
	if (s->write_fd >= 0)
		(void)fdatasync(s->write_fd);
	if (s->fd >= 0)
		(void)fsync(s->fd);
	s->unsynced_ns = 0;
}

static void end_segment(struct spool *s)
{
	if (s->write_fd < 0)
		return;
	spool_disk_sync(s);
	close(s->write_fd);
	s->write_fd = -1;
}

static int begin_segment(struct spool *s)
{
	int fd;

	if (array_reserve(s->segments, s->segment_capacity, s->segment_count + 1, MAX_SEGMENTS))
		return -ENOMEM;
	fd = open_segment(s, s->next_segment, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	s->write_fd = fd;
	s->segments[s->segment_count++] = (struct spool_segment){ .id = s->next_segment++ };
	return 0;
}

void spool_disk_drop(struct spool *s, size_t at, enum spool_drop why)
{
	/* Includes damaged records before it, which no reader will find any more. */
	if (s->segments[at].records)
		spool_lose(s, at ? s->segments[at].first : 1, s->segments[at].last, why);
	remove_segment(s, at);
}

bool spool_disk_is_gone(const struct spool *s, size_t at)
{
	char name[SPOOL_NAME_BYTES];

	segment_name(s->segments[at].id, name);
	return faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

static int spool_disk_prepare(struct spool *s, size_t size)
{
	struct spool_segment *last = s->segment_count ? &s->segments[s->segment_count - 1] : NULL;

	if (s->write_fd >= 0 && last->records && last->size + size > s->segment_bytes)
		end_segment(s);
	while (s->segment_count && s->disk_bytes + size > s->limit_bytes)
		spool_disk_drop(s, 0, SPOOL_DROP_LIMIT);
	return s->write_fd < 0 ? begin_segment(s) : 0;
}

int spool_disk_append(
	struct spool *s, uint64_t number, int64_t time_ns, const void *record, size_t size)
{
	struct spool_segment *segment;
	int err;

	if (s->fd < 0)
		return -EROFS;
	err = spool_disk_prepare(s, size);
	if (err)
		return err;
	segment = &s->segments[s->segment_count - 1];
	err = io_write_all(s->write_fd, record, size);
	if (err) {
		/* It may be partly written: truncate, or leave it for readers to skip. */
		if (ftruncate(s->write_fd, (off_t)segment->size) ||
			lseek(s->write_fd, (off_t)segment->size, SEEK_SET) < 0)
			end_segment(s);
		return err;
	}
	note_record(segment, number, time_ns);
	segment->size += size;
	s->disk_bytes += size;
	if (!s->unsynced_ns)
		s->unsynced_ns = clock_monotonic_ns();
	return 0;
}

/* ---- reading and letting go ----------------------------------------------------------------- */

/* Searches one segment, from T's place if that is in it. */
static int find_in(int fd, const struct spool_segment *segment, uint64_t want,
	struct spool_target *t, struct segment_record *ret_record)
{
	struct segment_record record = { .end = 0 };
	int err;

	if (t->place_segment == segment->id)
		record.end = t->place_offset;
	do {
		err = segment_next(fd, record.end, segment->size, &record);
	} while (!err && record.number < want);
	if (err)
		return err;
	t->place_segment = segment->id;
	t->place_offset = record.offset;
	*ret_record = record;
	return 0;
}

int spool_disk_find(const struct spool *s, uint64_t want, struct spool_target *place, int *ret_fd,
	struct segment_record *ret_record)
{
	for (size_t i = 0; i < s->segment_count; i++) {
		const struct spool_segment *segment = &s->segments[i];
		autoclose int fd = -1;

		if (!segment->records || segment->last < want)
			continue;
		fd = open_segment(s, segment->id, O_RDONLY);
		if (fd == -ENOENT)
			return -ESTALE;
		if (fd < 0 && !segment_is_gone(fd))
			return fd;
		/* For an unreadable segment, the gap in the numbers shows what is missing. */
		if (fd >= 0 && !find_in(fd, segment, want, place, ret_record)) {
			*ret_fd = take_fd(&fd);
			return 0;
		}
	}
	return -ENOENT;
}

/* An empty segment is spent too, unless it is being written. */
static bool is_spent(const struct spool *s, const struct spool_segment *segment, uint64_t needed)
{
	if (segment->records)
		return segment->last < needed;
	return s->write_fd < 0 || segment != &s->segments[s->segment_count - 1];
}

void spool_disk_release(struct spool *s)
{
	uint64_t needed = UINT64_MAX;

	for (size_t i = 0; i < s->target_count; i++)
		needed = MIN(needed, s->targets[i].next);
	while (s->segment_count && is_spent(s, &s->segments[0], needed))
		remove_segment(s, 0);
}

int64_t spool_disk_newest_ns(const struct spool *s)
{
	int64_t newest_ns = INT64_MIN;

	for (size_t i = 0; i < s->segment_count; i++) {
		if (s->segments[i].records)
			newest_ns = MAX(newest_ns, s->segments[i].newest_ns);
	}
	return newest_ns == INT64_MIN ? INT64_MAX : newest_ns;
}

void spool_disk_expire(struct spool *s, int64_t before_ns)
{
	while (s->segment_count && s->segments[0].records && s->segments[0].newest_ns < before_ns)
		spool_disk_drop(s, 0, SPOOL_DROP_AGE);
}
