/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NAME-HASH.cursor: one line of text, `fathom-cursor 1 NEXT BEGUN BEGUN_SECOND DONE_SECOND HASH`.
 * Written beside it and renamed: whoever reads it after a kill has the old or the new one, whole.
 * What follows the line is left over from a longer one.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/export/spool_internal.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/io.h"

enum { LINE_BYTES = 160, NAME_PART = 40 };

/* Readable, and for any name another. */
static void file_name(const struct spool_target *t, const char *suffix, char *name)
{
	uint64_t hash = hash_bytes(t->name, strlen(t->name));
	char part[NAME_PART + 1];
	size_t length = 0;

	for (const char *c = t->name; *c && length < NAME_PART; c++)
		part[length++] = isalnum((unsigned char)*c) ? *c : '_';
	part[length] = 0;
	snprintf(name, SPOOL_NAME_BYTES, "%s-%08" PRIx32 ".cursor%s", part, (uint32_t)hash, suffix);
}

static int write_text(const struct spool_target *t, char *line)
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
	/* The line without its newline is what would be written for these numbers. */
	size = write_text(&read, again);
	again[size - 1] = 0;
	if (strcmp(line, again))
		return false;
	t->next = read.next;
	t->begun = read.begun;
	t->begun_second = read.begun_second;
	t->done_second = read.done_second;
	return true;
}

/*
 * A target that was never seen begins with what comes next. One whose cursor cannot be read begins
 * with all there is, in doubt.
 */
void spool_cursor_load(struct spool *s, struct spool_target *t)
{
	char name[SPOOL_NAME_BYTES], line[LINE_BYTES];
	ssize_t length;

	t->next = s->next_number;
	if (s->fd < 0)
		return;
	file_name(t, "", name);
	length = io_read_line(s->fd, name, line, sizeof(line));
	if (length != -ENOENT && !(length > 0 && read_text(line, t))) {
		t->next = 1;
		t->doubtful = s->next_number - 1;
		t->dropped[SPOOL_DROP_CORRUPT]++;
	}
	if (t->next > s->next_number)
		s->next_number = t->next;
	if (t->done_second >= s->next_number)
		s->next_number = t->done_second + 1;
}

static int replace_file(const struct spool *s, const struct spool_target *t, const char *name)
{
	char beside[SPOOL_NAME_BYTES], line[LINE_BYTES];
	int size = write_text(t, line);
	autoclose int fd = -1;

	file_name(t, ".tmp", beside);
	fd = openat(s->fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		SPOOL_FILE_MODE);
	if (fd < 0 || io_write_all(fd, line, (size_t)size)) {
		unlinkat(s->fd, beside, 0);
		return -EIO;
	}
	return renameat(s->fd, beside, s->fd, name) ? -errno : 0;
}

/*
 * A full disk has no block for a new file, but the old one has its own. A kill cannot part so small
 * a write; what a power cut leaves is found by its hash.
 */
static int overwrite_file(const struct spool *s, const struct spool_target *t, const char *name)
{
	char line[LINE_BYTES];
	int size = write_text(t, line);
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
	file_name(t, "", name);
	t->unwritten = replace_file(s, t, name) && overwrite_file(s, t, name);
}
