/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/store/entries.h"
#include "agent/server/store/file_name.h"
#include "agent/server/store/store_internal.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/settled_clock.h"

enum {
	DIRECTORY_MODE = 0750,
	FILE_MODE = 0640,
	/* Old files dropped for one new file on a full disk: another program may be filling it. */
	MAX_DROPS = 64,
	MAX_SAME_NAMES = 100,
	MAX_SWEPT = 256, /* files removed at once */
	MINUTES_BITS = 4, /* of an iterator: which minute of a file is next */
};

static const char TEMPORARY_SUFFIX[] = ".tmp";

/* ---- removing ------------------------------------------------------------------------------- */

/* Removes it from the list even if unlink fails, so that it is not retried for ever. */
static bool store_remove_at(struct store *s, size_t place)
{
	char path[FILE_NAME_BYTES];
	struct file_name name;
	bool removed;

	entries_name(&s->entries, entries_at(&s->entries, place), &name);
	file_name_format(&name, path, sizeof(path));
	removed = !unlinkat(s->fd, path, 0) || errno == ENOENT;
	if (!removed) {
		s->removal_error = s->removal_error ? s->removal_error : -errno;
		metrics_add(s->options.metrics, METRIC_STORE_REMOVE_FAILED, 1);
	}
	entries_remove(&s->entries, place);
	path[FILE_NAME_DAY_LENGTH] = 0;
	unlinkat(s->fd, path, AT_REMOVEDIR);
	return removed;
}

static void drop_at(struct store *s, size_t place, enum metric reason)
{
	if (store_remove_at(s, place))
		metrics_add(s->options.metrics, reason, 1);
}

static size_t store_first_doomed(const struct store *s)
{
	size_t place = 0;

	while (place < entries_count(&s->entries) && !entries_at(&s->entries, place)->doomed)
		place++;
	return place;
}

/* What is in another file by now goes first, and is no loss. */
static void drop_oldest(struct store *s, int64_t now_tenths, enum metric reason)
{
	if (s->entries.doomed)
		(void)store_remove_at(s, store_first_doomed(s));
	else
		drop_at(s, entries_oldest(&s->entries, now_tenths), reason);
}

/* Not at once: whoever has been told of such a file may be about to read it. */
static void store_sweep(struct store *s, uint64_t boot_ns)
{
	size_t swept = 0, place = 0;

	while (s->entries.doomed && swept < MAX_SWEPT && place < entries_count(&s->entries)) {
		uint16_t doomed = entries_at(&s->entries, place)->doomed;

		if (!doomed || !store_stamp_is_old(doomed, boot_ns)) {
			place++;
			continue;
		}
		(void)store_remove_at(s, place);
		swept++;
	}
}

/*
 * The list is bounded in files and in distinct names. When it is full, drops the oldest eighth at
 * once: one by one would mean renewing all names each time.
 */
static void drop_eighth(struct store *s, int64_t now_tenths)
{
	size_t drops = entries_count(&s->entries) / 8 + 1;

	for (; drops && entries_count(&s->entries); drops--)
		drop_oldest(s, now_tenths, METRIC_STORE_DROPPED_LIMIT);
}

/* ---- what an earlier run left --------------------------------------------------------------- */

/* True for `.NAME.tmp`: a file whose writing was interrupted. */
static bool is_temporary(const char *day, const char *name)
{
	const size_t suffix = sizeof(TEMPORARY_SUFFIX) - 1;
	size_t length = strlen(name);
	char path[FILE_NAME_BYTES];
	struct file_name parsed;

	if (*name != '.' || length <= suffix + 1 ||
		strcmp(name + length - suffix, TEMPORARY_SUFFIX))
		return false;
	if (snprintf(path, sizeof(path), "%s/%.*s", day, (int)(length - suffix - 1), name + 1) >=
		(int)sizeof(path))
		return false;
	return file_name_parse(path, &parsed);
}

static int scan_file(struct store *s, int day_fd, const char *day, const char *name)
{
	char path[FILE_NAME_BYTES];
	struct file_name parsed;
	struct stat st;
	int err;

	if (is_temporary(day, name)) {
		unlinkat(day_fd, name, 0);
		return 0;
	}
	if (snprintf(path, sizeof(path), "%s/%s", day, name) >= (int)sizeof(path) ||
		!file_name_parse(path, &parsed))
		return 0;
	if (fstatat(day_fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
		(uint64_t)st.st_size > ENTRY_LARGEST_BYTES)
		return 0;
	/* A power cut after the rename and before the data was written. */
	if (!st.st_size) {
		unlinkat(day_fd, name, 0);
		return 0;
	}
	err = entries_append(&s->entries, &parsed, (uint64_t)st.st_size);
	if (err != -E2BIG)
		return err;
	entries_sort(&s->entries);
	drop_eighth(s, INT64_MAX);
	return entries_append(&s->entries, &parsed, (uint64_t)st.st_size);
}

static int scan_day(struct store *s, const char *day)
{
	autoclosedir DIR *directory = NULL;
	int fd = openat(s->fd, day, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *e;
	int err = 0;

	/* Not a directory, or a symlink: not ours. */
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP || errno == ENOENT ? 0 : -errno;
	directory = fdopendir(fd);
	if (!directory) {
		close(fd);
		return -ENOMEM;
	}
	err = io_next_entry(directory, &e);
	while (!err && e) {
		err = scan_file(s, fd, day, e->d_name);
		if (!err)
			err = io_next_entry(directory, &e);
	}
	/* Fails unless the directory is empty. */
	unlinkat(s->fd, day, AT_REMOVEDIR);
	return err;
}

static int store_scan(struct store *s)
{
	autoclosedir DIR *directory = NULL;
	/* A separate descriptor: reading moves its offset. */
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *e;
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
		if (file_name_is_day(e->d_name))
			err = scan_day(s, e->d_name);
		if (!err)
			err = io_next_entry(directory, &e);
	}
	entries_sort(&s->entries);
	store_doom_merged(s, store_old_stamp(s->options.now.boot_ns));
	return err;
}

/* ---- making --------------------------------------------------------------------------------- */

static int store_open_directory(const char *path, int *ret_fd)
{
	autoclose int fd = -1;
	int err = io_open_own_directory(path, DIRECTORY_MODE, &fd);

	if (err)
		return err;
	/* Fail now rather than after the first window. */
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* INT64_MAX if the store is empty. */
static int64_t newest_ns(const struct store *s)
{
	size_t count = entries_count(&s->entries);

	return count ? entries_at(&s->entries, count - 1)->time_tenths * FILE_NAME_TENTH_NS
		     : INT64_MAX;
}

int store_create(const struct store_options *options, struct store **ret_store)
{
	struct store *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->fd = -1;
	s->options = *options;
	s->options.directory = NULL;
	err = entries_init(&s->entries, options->limit_names);
	if (!err)
		err = store_open_directory(options->directory, &s->fd);
	if (!err)
		err = store_scan(s);
	if (err) {
		store_destroy(s);
		return err;
	}
	settled_clock_init(&s->age_clock, options->now.real_ns, options->now.boot_ns, newest_ns(s));
	/* Nothing is old before the first store_trim(). */
	s->settled_tenths = INT64_MIN;
	*ret_store = s;
	return 0;
}

void store_destroy(struct store *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	entries_deinit(&s->entries);
	free(s);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static bool store_too_old(const struct store *s, int64_t now_tenths)
{
	const struct entry *earliest = entries_at(&s->entries, 0);
	int64_t end = earliest->time_tenths + earliest->duration_tenths;

	return s->options.limit_age_ns && now_tenths > end &&
	       (uint64_t)(now_tenths - end) > s->options.limit_age_ns / FILE_NAME_TENTH_NS;
}

static void trim_bytes(struct store *s, int64_t now_tenths)
{
	while (entries_count(&s->entries) && s->entries.block_bytes > s->options.limit_bytes)
		drop_oldest(s, now_tenths, METRIC_STORE_DROPPED_LIMIT);
}

static void trim_age(struct store *s, int64_t now_tenths)
{
	while (entries_count(&s->entries) && store_too_old(s, now_tenths)) {
		if (entries_at(&s->entries, 0)->doomed)
			(void)store_remove_at(s, 0);
		else
			drop_at(s, 0, METRIC_STORE_DROPPED_LIMIT);
	}
}

int store_trim(struct store *s, struct store_now now)
{
	int64_t settled_ns = settled_clock_now(&s->age_clock, now.real_ns, now.boot_ns);
	int err;

	s->settled_tenths = settled_ns / FILE_NAME_TENTH_NS;
	store_sweep(s, now.boot_ns);
	store_unstick(s, now.boot_ns);
	trim_age(s, s->settled_tenths);
	trim_bytes(s, now.real_ns / FILE_NAME_TENTH_NS);
	err = s->removal_error;
	s->removal_error = 0;
	return err;
}

void store_set_limits(struct store *s, uint64_t limit_bytes, uint64_t limit_age_ns)
{
	s->options.limit_bytes = limit_bytes;
	s->options.limit_age_ns = limit_age_ns;
}

/* ---- adding --------------------------------------------------------------------------------- */

void store_temporary_path(const char *path, char *temporary, size_t size)
{
	snprintf(temporary, size, "%.*s/.%s%s", FILE_NAME_DAY_LENGTH, path,
		path + FILE_NAME_DAY_LENGTH + 1, TEMPORARY_SUFFIX);
}

int store_open_temporary(const struct store *s, const char *path)
{
	char temporary[STORE_TEMPORARY_BYTES];
	int fd;

	store_temporary_path(path, temporary, sizeof(temporary));
	fd = openat(
		s->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	return fd < 0 ? -errno : fd;
}

/* Writes the whole file or nothing. */
static int store_write_file(const struct store *s, const char *path, const void *bytes, size_t size)
{
	char temporary[STORE_TEMPORARY_BYTES];
	autoclose int fd = store_open_temporary(s, path);
	int err;

	if (fd < 0)
		return fd;
	store_temporary_path(path, temporary, sizeof(temporary));
	err = io_write_all(fd, bytes, size);
	/* Some file systems only report write errors at close. */
	if (close(take_fd(&fd)) && !err)
		err = -errno;
	if (!err && renameat(s->fd, temporary, s->fd, path))
		err = -errno;
	if (err)
		unlinkat(s->fd, temporary, 0);
	return err;
}

static int write_into_day(const struct store *s, const char *path, const void *bytes, size_t size)
{
	char day[FILE_NAME_DAY_LENGTH + 1];
	int err = store_write_file(s, path, bytes, size);

	if (err != -ENOENT)
		return err;
	memcpy(day, path, FILE_NAME_DAY_LENGTH);
	day[FILE_NAME_DAY_LENGTH] = 0;
	if (mkdirat(s->fd, day, DIRECTORY_MODE) && errno != EEXIST)
		return -errno;
	return store_write_file(s, path, bytes, size);
}

/* On a full disk, drops the oldest files until the new one fits. */
static int write_with_drops(
	struct store *s, const struct file_name *name, const void *bytes, size_t size)
{
	char path[FILE_NAME_BYTES];
	int err;

	file_name_format(name, path, sizeof(path));
	err = write_into_day(s, path, bytes, size);

	for (int drops = 0; drops < MAX_DROPS && (err == -ENOSPC || err == -EDQUOT); drops++) {
		if (!entries_count(&s->entries))
			break;
		drop_oldest(s, name->time_tenths, METRIC_STORE_DROPPED_DISK_FULL);
		err = write_into_day(s, path, bytes, size);
	}
	return err;
}

static int make_window_unique(const struct store *s, struct file_name *name)
{
	int generation = store_newest_merged(s, file_name_slot(name)) + 1;

	for (; generation <= FILE_NAME_GENERATIONS; generation++) {
		name->generation = (uint16_t)generation;
		if (!entries_find(&s->entries, name))
			return 0;
	}
	return -EEXIST;
}

/* Groups with the same cleaned name must not replace each other. */
static int make_unique(const struct store *s, struct file_name *name)
{
	char label[FILE_NAME_LABEL_BYTES];

	if (name->kind == FILE_KIND_WINDOW)
		return make_window_unique(s, name);
	memcpy(label, name->label, sizeof(label));
	for (int number = 2; entries_find(&s->entries, name); number++) {
		if (number > MAX_SAME_NAMES)
			return -EEXIST;
		snprintf(name->label, sizeof(name->label), "%.*s_%d", FILE_NAME_LABEL_BYTES - 5,
			label, number);
	}
	return 0;
}

static int store_put_file(struct store *s, struct file_name *name, const void *bytes, size_t size)
{
	char path[FILE_NAME_BYTES];
	int err;

	if (entries_block_bytes(size) > s->options.limit_bytes || size > ENTRY_LARGEST_BYTES)
		return -E2BIG;
	err = make_unique(s, name);
	if (err)
		return err;
	err = write_with_drops(s, name, bytes, size);
	if (err)
		return err;
	err = entries_add(&s->entries, name, size);
	if (err == -E2BIG) {
		drop_eighth(s, name->time_tenths);
		err = entries_add(&s->entries, name, size);
	}
	if (err) {
		file_name_format(name, path, sizeof(path));
		unlinkat(s->fd, path, 0);
	}
	return err;
}

int store_put(struct store *s, const char *name, int64_t time_ns, int64_t duration_ns,
	const void *bytes, size_t size)
{
	struct file_name file;
	int err;

	err = file_name_init(&file, name, time_ns, duration_ns) && size
		      ? store_put_file(s, &file, bytes, size)
		      : -EINVAL;
	if (err) {
		metrics_add(s->options.metrics, METRIC_STORE_FAILED, 1);
		return err;
	}
	/* A failed removal does not undo what was stored; store_trim() returns it. */
	trim_bytes(s, file.time_tenths);
	return 0;
}

/* ---- asking --------------------------------------------------------------------------------- */

static struct store_file times_of(const struct entry *entry, unsigned int minute)
{
	int64_t begin = entry->time_tenths, duration = entry->duration_tenths;
	uint64_t size_bytes = entry->size_bytes;

	if (entry->kind == FILE_KIND_MINUTES) {
		size_bytes /= (unsigned int)MAX(__builtin_popcount(entry->minutes), 1);
		begin += (int64_t)minute * FILE_NAME_MINUTE_TENTHS;
		duration = FILE_NAME_MINUTE_TENTHS;
	}
	return (struct store_file){
		.kind = (enum file_kind)entry->kind,
		.minute = minute,
		.minutes = entry->minutes,
		.time_ns = begin * FILE_NAME_TENTH_NS,
		.duration_ns = duration * FILE_NAME_TENTH_NS,
		.size_bytes = size_bytes,
	};
}

void store_describe(const struct store *s, const struct entry *entry, struct store_file *file)
{
	struct file_name name;

	entries_name(&s->entries, entry, &name);
	file_name_format(&name, file->path, sizeof(file->path));
	file->name = intern_text(&s->entries.labels, entry->label);
}

static bool store_touches(const struct store_file *file, int64_t from_ns, int64_t to_ns)
{
	return file->time_ns < to_ns &&
	       file->time_ns + MAX(file->duration_ns, FILE_NAME_TENTH_NS) > from_ns;
}

/* Advances the iterator; false if there is no such minute, or nothing at all. */
static bool store_take_next(size_t *iterator, const struct entry *entry, unsigned int *ret_minute)
{
	unsigned int minute = *iterator & ((1U << MINUTES_BITS) - 1);
	bool has_minutes = entry->kind == FILE_KIND_MINUTES;

	if (has_minutes && minute + 1 < FILE_NAME_MINUTES)
		(*iterator)++;
	else
		*iterator = ((*iterator >> MINUTES_BITS) + 1) << MINUTES_BITS;
	*ret_minute = minute;
	return !entry->doomed && (!has_minutes || entry->minutes >> minute & 1);
}

bool store_next(const struct store *s, size_t *iterator, int64_t from_ns, int64_t to_ns,
	struct store_file *ret_file)
{
	while (*iterator >> MINUTES_BITS < entries_count(&s->entries)) {
		const struct entry *entry = entries_at(&s->entries, *iterator >> MINUTES_BITS);
		struct store_file file;
		unsigned int minute;

		if (!store_take_next(iterator, entry, &minute))
			continue;
		file = times_of(entry, minute);
		if (!store_touches(&file, from_ns, to_ns))
			continue;
		store_describe(s, entry, &file);
		*ret_file = file;
		return true;
	}
	return false;
}

int store_open(const struct store *s, const char *path, int *ret_fd)
{
	const struct entry *entry;
	struct file_name name;
	int fd;

	if (!file_name_parse(path, &name))
		return -ENOENT;
	entry = entries_find(&s->entries, &name);
	if (!entry || entry->doomed)
		return -ENOENT;
	fd = openat(s->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Not a duplicate, which would share the lock. */
int store_open_root(const struct store *s, int *ret_fd)
{
	int fd = openat(s->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

uint64_t store_bytes(const struct store *s)
{
	return s->entries.block_bytes;
}

size_t store_count(const struct store *s)
{
	return entries_count(&s->entries);
}
