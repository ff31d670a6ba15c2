/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NAME-HASH.cursor: one line of text, `fathom-cursor 1 NEXT BEGUN BEGUN_SECOND DONE_SECOND HASH`.
 * Replaced by rename: after a kill a reader finds the old or the new one, complete. Bytes after the
 * line are left over from a longer one.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/server/export/spool/spool_internal.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/io.h"

enum {
	LINE_BYTES = 160,
	NAME_PART = 40,
	MAX_ENTRIES = 1 << 17, /* looked at in the directory */
};

static const char suffix[] = ".cursor";

/* The beginning of NAME, with characters that are safe in a file name. */
static void readable_part(const char *name, char part[NAME_PART + 1])
{
	size_t length = 0;

	for (const char *c = name; *c && length < NAME_PART; c++)
		part[length++] = isalnum((unsigned char)*c) ? *c : '_';
	part[length] = 0;
}

/* Readable, and unique for each name. */
static void spool_cursor_file_name(
	const char *target, const char *more, char name[SPOOL_NAME_BYTES])
{
	char part[NAME_PART + 1];

	readable_part(target, part);
	snprintf(name, SPOOL_NAME_BYTES, "%s-%016" PRIx64 "%s%s", part,
		hash_bytes(target, strlen(target)), suffix, more);
}

/* The name in version 0.1.0, which identified targets by their place in the settings. */
static void old_file_name(const char *target, char name[SPOOL_NAME_BYTES])
{
	char part[NAME_PART + 1];

	readable_part(target, part);
	snprintf(name, SPOOL_NAME_BYTES, "%s-%08" PRIx32 "%s", part,
		(uint32_t)hash_bytes(target, strlen(target)), suffix);
}

uint32_t spool_target_tag(const struct spool_target *t)
{
	return (uint32_t)hash_bytes(t->name, strlen(t->name));
}

static int spool_cursor_write_text(const struct spool_target *t, char *line)
{
	int size = snprintf(line, LINE_BYTES,
		"fathom-cursor 1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, t->next, t->begun,
		t->begun_second, t->done_second);
	uint64_t hash = hash_bytes(line, (size_t)size);

	return size + snprintf(line + size, LINE_BYTES - (size_t)size, " %016" PRIx64 "\n", hash);
}

static bool read_text(const char *line, struct spool_target *t)
{
	char again[LINE_BYTES];
	struct spool_target read = { 0 };
	int size;

	if (sscanf(line, "fathom-cursor 1 %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &read.next,
		    &read.begun, &read.begun_second, &read.done_second) != 4)
		return false;
	/* Valid only if these numbers would be written as the same line. */
	size = spool_cursor_write_text(&read, again);
	again[size - 1] = 0;
	if (strcmp(line, again))
		return false;
	t->next = read.next;
	t->begun = read.begun;
	t->begun_second = read.begun_second;
	t->done_second = read.done_second;
	return true;
}

/* False if there is no such file. A damaged one sends everything again, in doubt. */
static bool spool_cursor_read_file(const struct spool *s, const char *name, struct spool_target *t)
{
	char line[LINE_BYTES];
	ssize_t length = io_read_line(s->fd, name, line, sizeof(line));

	if (length == -ENOENT)
		return false;
	if (length > 0 && read_text(line, t))
		return true;
	/* Start over with all records, in doubt. */
	t->next = 1;
	t->doubtful = s->next_number - 1;
	t->dropped[SPOOL_DROP_CORRUPT]++;
	return true;
}

void spool_cursor_load(struct spool *s, struct spool_target *t)
{
	char name[SPOOL_NAME_BYTES];

	spool_cursor_file_name(t->name, "", name);
	if (s->fd < 0 || !spool_cursor_read_file(s, name, t))
		return;
	s->next_number = MAX(s->next_number, MAX(t->next, t->done_second + 1));
}

static int replace_file(const struct spool *s, const struct spool_target *t, const char *name)
{
	char beside[SPOOL_NAME_BYTES], line[LINE_BYTES];
	int size = spool_cursor_write_text(t, line);
	autoclose int fd = -1;

	spool_cursor_file_name(t->name, ".tmp", beside);
	fd = openat(s->fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		SPOOL_FILE_MODE);
	if (fd < 0 || io_write_all(fd, line, (size_t)size)) {
		unlinkat(s->fd, beside, 0);
		return -EIO;
	}
	return renameat(s->fd, beside, s->fd, name) ? -errno : 0;
}

/*
 * A full disk has no block for a new file, but the old one has its own. A kill cannot split such a
 * small write; the hash detects what a power cut leaves.
 */
static int overwrite_file(const struct spool *s, const struct spool_target *t, const char *name)
{
	char line[LINE_BYTES];
	int size = spool_cursor_write_text(t, line);
	autoclose int fd = openat(s->fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	return pwrite(fd, line, (size_t)size, 0) == size ? 0 : -EIO;
}

void spool_cursor_store(struct spool *s, struct spool_target *t)
{
	char name[SPOOL_NAME_BYTES];

	t->unwritten = true;
	if (s->fd < 0)
		return;
	spool_cursor_file_name(t->name, "", name);
	t->unwritten = replace_file(s, t, name) && overwrite_file(s, t, name);
}

bool spool_cursor_is_gone(const struct spool *s, const struct spool_target *t)
{
	char name[SPOOL_NAME_BYTES];

	spool_cursor_file_name(t->name, "", name);
	return faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
}

void spool_cursor_remove(struct spool *s, const struct spool_target *t)
{
	char name[SPOOL_NAME_BYTES];

	spool_cursor_file_name(t->name, "", name);
	if (s->fd >= 0)
		unlinkat(s->fd, name, 0);
}

void spool_cursor_adopt(struct spool *s, const char *old_name, const char *name)
{
	char old[SPOOL_NAME_BYTES], new[SPOOL_NAME_BYTES];

	old_file_name(old_name, old);
	spool_cursor_file_name(name, "", new);
	if (s->fd >= 0 && faccessat(s->fd, new, F_OK, AT_SYMLINK_NOFOLLOW))
		(void)renameat(s->fd, old, s->fd, new);
}

/* ---- cursors of targets that have gone ------------------------------------------------------ */

static bool is_cursor(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, suffix) && strlen(name) < SPOOL_NAME_BYTES;
}

static bool is_a_targets(const struct spool *s, const char *name)
{
	char own[SPOOL_NAME_BYTES];

	for (size_t i = 0; i < s->target_count; i++) {
		spool_cursor_file_name(s->targets[i].name, "", own);
		if (!strcmp(own, name))
			return true;
	}
	return false;
}

static void spool_cursor_retire(struct spool *s, const char *name)
{
	struct spool_target gone = { 0 };
	uint64_t first = s->segment_count ? s->segments[0].first : s->next_number;

	if (!spool_cursor_read_file(s, name, &gone) || unlinkat(s->fd, name, 0))
		return;
	spool_abandon(s, spool_awaited(s, &gone, first, s->next_number - 1));
}

void spool_cursors_retire(struct spool *s)
{
	int fd = s->fd < 0 ? -1 : openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclosedir DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!directory && fd >= 0)
		close(fd);
	for (size_t n = 0; directory && n < MAX_ENTRIES && (e = readdir(directory)); n++) {
		if (is_cursor(e->d_name) && !is_a_targets(s, e->d_name))
			spool_cursor_retire(s, e->d_name);
	}
}
