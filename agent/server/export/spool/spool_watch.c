/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory is ours, but people empty it to free disk space, or replace it. Open files would go
 * on taking data that nobody will ever find, so names are checked regularly. Missing files are
 * counted, and writing continues in a new segment, in a new directory if need be.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/export/spool/spool_internal.h"
#include "base/cleanup.h"

/* The configured path leads to another directory, or to none. */
static bool is_replaced(const struct spool *s)
{
	struct stat named, ours;

	if (stat(s->path, &named))
		return errno == ENOENT || errno == ENOTDIR;
	if (fstat(s->fd, &ours))
		return false;
	return named.st_dev != ours.st_dev || named.st_ino != ours.st_ino;
}

static void lose_all_segments(struct spool *s)
{
	for (size_t i = s->segment_count; i--;) {
		if (!s->segments[i].records)
			continue;
		spool_lose(s, 1, s->segments[i].last, SPOOL_DROP_REMOVED);
		return;
	}
}

/* Its records have numbers of another sequence than ours. */
static bool is_used(const struct spool *s)
{
	return s->segment_count > 0;
}

static void spool_watch_open_again(struct spool *s)
{
	const uint64_t next_number = s->next_number;
	int err = spool_disk_open(s, s->path);

	if (err)
		s->trouble = err == -EPERM ? "it must belong to you and be writable by nobody else"
			     : err == -EBUSY ? "another agent uses it"
					     : "out of memory";
	else if (is_used(s))
		s->trouble = "it was replaced by another one that contains profiles: the next "
			     "start will use that";
	if (s->trouble)
		spool_disk_close(s);
	s->next_number = next_number;
	s->replaced = s->fd < 0;
	for (size_t i = 0; i < s->target_count; i++)
		spool_cursor_store(s, &s->targets[i]);
}

static void watch_segments(struct spool *s)
{
	for (size_t i = 0; i < s->segment_count;) {
		if (!spool_disk_is_gone(s, i)) {
			i++;
			continue;
		}
		s->removals++;
		spool_disk_drop(s, i, SPOOL_DROP_REMOVED);
	}
}

void spool_watch(struct spool *s)
{
	if (s->replaced) {
		spool_watch_open_again(s);
		return;
	}
	if (s->fd < 0)
		return;
	if (is_replaced(s)) {
		s->removals++;
		lose_all_segments(s);
		spool_disk_close(s);
		spool_watch_open_again(s);
		return;
	}
	watch_segments(s);
	for (size_t i = 0; i < s->target_count; i++) {
		if (spool_cursor_is_gone(s, &s->targets[i]))
			s->targets[i].unwritten = true;
	}
}

void spool_watch_writing(struct spool *s)
{
	struct stat st;

	if (s->fd >= 0 &&
		((s->write_fd >= 0 && !fstat(s->write_fd, &st) && !st.st_nlink) || is_replaced(s)))
		spool_watch(s);
}
