/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejected/: payloads that a server refused, for a person to look at: the profile as sent and, as
 * text, its target, the reason and its labels. Bounded; the oldest are removed first. Failing to
 * keep one is no loss: the refusal itself is counted and logged.
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
#include "base/cleanup.h"
#include "base/io.h"

enum {
	DIRECTORY_MODE = 0750,
	MAX_FILES = 64, /* two for each payload */
	MAX_BYTES = 32 << 20,
	TEXT_LIMIT = 1 << 20,
	MAX_ENTRIES = 4096, /* looked at in the directory */
};

static const char directory_name[] = "rejected";

static int spool_rejected_open_directory(const struct spool *s)
{
	if (mkdirat(s->fd, directory_name, DIRECTORY_MODE) && errno != EEXIST)
		return -errno;
	return openat(s->fd, directory_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void spool_rejected_write_file(int dir_fd, const char *name, const void *bytes, size_t size)
{
	autoclose int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, SPOOL_FILE_MODE);

	if (fd >= 0 && io_write_all(fd, bytes, size))
		unlinkat(dir_fd, name, 0);
}

struct listing {
	char oldest[SPOOL_NAME_BYTES]; /* the name that sorts first */
	size_t count;
	uint64_t bytes;
};

static int add_entry(int fd, const char *name, struct listing *l)
{
	struct stat st;

	if (*name == '.' || strlen(name) >= SPOOL_NAME_BYTES)
		return 0;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	l->count++;
	l->bytes += (uint64_t)st.st_size;
	if (!*l->oldest || strcmp(name, l->oldest) < 0)
		snprintf(l->oldest, SPOOL_NAME_BYTES, "%s", name);
	return 0;
}

static int list_files(int fd, struct listing *ret_listing)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclosedir DIR *directory = again >= 0 ? fdopendir(again) : NULL;
	struct listing l = { 0 };
	struct dirent *e;
	int err;

	if (!directory) {
		err = -errno;
		if (again >= 0)
			close(again);
		return err;
	}
	err = io_next_entry(directory, &e);
	while (!err && e && l.count < MAX_ENTRIES) {
		err = add_entry(fd, e->d_name, &l);
		if (!err)
			err = io_next_entry(directory, &e);
	}
	if (!err)
		*ret_listing = l;
	return err;
}

/* An incomplete listing does not show the oldest file: leave it to the next refusal. */
static void prune(int fd)
{
	for (size_t removed = 0; removed < MAX_ENTRIES; removed++) {
		struct listing l;

		if (list_files(fd, &l) || (l.count <= MAX_FILES && l.bytes <= MAX_BYTES))
			return;
		if (unlinkat(fd, l.oldest, 0))
			return;
	}
}

void spool_rejected_keep(struct spool *s, const struct spool_target *target, uint64_t number,
	const struct payload *payload, const char *reason)
{
	autocall(buffer_deinit) struct buffer text;
	autoclose int fd = -1;
	char name[SPOOL_NAME_BYTES];
	uint32_t which = spool_target_tag(target);

	buffer_init(&text, TEXT_LIMIT);
	if (s->fd < 0)
		return;
	fd = spool_rejected_open_directory(s);
	if (fd < 0)
		return;
	buffer_printf(&text, "target: %s\nreason: %s\ntime_ns: %" PRId64 "\n", target->name, reason,
		payload->time_ns);
	for (size_t i = 0; i < payload->labels.count; i++)
		buffer_printf(&text, "%s: %s\n", payload->labels.items[i].name,
			payload->labels.items[i].value);
	snprintf(name, sizeof(name), "%016" PRIx64 "-%08" PRIx32 ".txt", number, which);
	spool_rejected_write_file(fd, name, text.bytes, text.size);
	snprintf(name, sizeof(name), "%016" PRIx64 "-%08" PRIx32 ".pb.gz", number, which);
	spool_rejected_write_file(fd, name, payload->pprof.bytes, payload->pprof.size);
	prune(fd);
}
