/* SPDX-License-Identifier: Apache-2.0 */
/* The file to upload: stripped into an unnamed file in the directory, and hashed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "agent/server/export/debuginfo/debuginfo_internal.h"
#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/io.h"

enum { BLOCK_BYTES = 64 << 10 };

/* Disk space to leave free in addition to the size of the unstripped file, an upper bound. */
static const uint64_t DISK_RESERVE_BYTES = UINT64_C(256) << 20;

static int open_temporary(const char *directory)
{
	autofree char *path = NULL;
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* Not every file system supports O_TMPFILE. */
	if (asprintf(&path, "%s/.debuginfo-XXXXXX", directory) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int check_disk(const struct debuginfo *d, int elf_fd)
{
	struct statvfs fs;

	if (statvfs(d->directory, &fs))
		return -errno;
	return io_known_bytes(elf_fd) + DISK_RESERVE_BYTES < (uint64_t)fs.f_bavail * fs.f_frsize
		       ? 0
		       : -ENOSPC;
}

static enum debuginfo_outcome judge_strip(struct debuginfo *d, int err)
{
	/* EIO is not retried: a file on a failing disk must not block all others. */
	bool ours = err == -EROFS || (failure_is_transient(err) && err != -EIO);

	if (ours) {
		verdict_set(
			&d->result, REMOTE_RETRY, "disk", "%s: %s", d->directory, strerror(-err));
		return DEBUGINFO_FAILED;
	}
	switch (err) {
	case 0:
		return DEBUGINFO_UPLOADED;
	case -ECANCELED:
		return DEBUGINFO_STOPPED;
	case -ENODATA:
		return DEBUGINFO_NOTHING;
	case -E2BIG:
	case -EFBIG:
		return DEBUGINFO_TOO_LARGE;
	case -ETIMEDOUT:
		verdict_set(&d->result, REMOTE_RETRY, "file", "%s", "the file does not answer");
		return DEBUGINFO_NO_ANSWER;
	default:
		return DEBUGINFO_UNREADABLE;
	}
}

enum debuginfo_outcome debuginfo_strip(
	struct debuginfo *d, const struct debuginfo_job *job, int *ret_fd)
{
	autoclose int fd = -1;
	enum debuginfo_outcome outcome;
	int err = check_disk(d, job->fd);

	if (!err) {
		fd = open_temporary(d->directory);
		err = MIN(fd, 0);
	}
	if (!err)
		err = d->strip(d->strip_context, job->fd, fd, d->stop_fd);
	outcome = judge_strip(d, err);
	if (outcome == DEBUGINFO_UPLOADED)
		*ret_fd = take_fd(&fd);
	return outcome;
}

/* Any text works that differs between contents. */
int debuginfo_hash(int fd, char text[DEBUGINFO_HASH_TEXT_BYTES], uint64_t *ret_size)
{
	autofree uint8_t *block = malloc(BLOCK_BYTES);
	XXH64_state_t *state = XXH64_createState();
	uint64_t size = 0;
	ssize_t got = block && state ? 1 : -1;

	if (got > 0)
		XXH64_reset(state, 0);
	while (got > 0) {
		got = pread(fd, block, BLOCK_BYTES, (off_t)size);
		if (got > 0) {
			XXH64_update(state, block, (size_t)got);
			size += (uint64_t)got;
		}
	}
	if (!got)
		snprintf(text, DEBUGINFO_HASH_TEXT_BYTES, "%016llx",
			(unsigned long long)XXH64_digest(state));
	XXH64_freeState(state);
	*ret_size = size;
	return got ? -EIO : 0;
}
