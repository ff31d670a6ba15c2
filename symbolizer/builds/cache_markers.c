/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the index cache remembers beside indexes, as small files: which modules cannot be indexed,
 * whose builds were interrupted, and what servers do not have.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failure.h"
#include "base/intern.h"
#include "base/io.h"
#include "symbolizer/builds/cache_internal.h"

enum { WHOM_BYTES = 16 + 1 };

/* How long servers are not asked again for what they did not have. */
static const uint64_t ABSENT_NS = UINT64_C(86400000000000);
/* Pause after an interrupted build. */
static const uint64_t FIRST_PAUSE_NS = UINT64_C(1000000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(86400000000000);

/* ---- builds that failed ---------------------------------------------------------------------- */

void cache_set_failed(struct cache *cache, const struct module_id *id)
{
	char name[CACHE_NAME_BYTES];
	autoclose int fd = -1;

	if (id->file.claimed)
		return;
	cache_format_name(id, ".failed", name);
	fd = openat(
		cache->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		cache->used_bytes += CACHE_FILE_OVERHEAD_BYTES;
}

bool cache_failed(struct cache *cache, const struct module_id *id)
{
	char name[CACHE_NAME_BYTES];

	cache_format_name(id, ".failed", name);
	return !faccessat(cache->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* ---- builds that were interrupted ----------------------------------------------------------- */

/* The file's size is the count, its mtime the time of the last interruption. */
void cache_add_interrupted(struct cache *cache, const struct module_id *id)
{
	char name[CACHE_NAME_BYTES];
	autoclose int fd = -1;
	struct stat st;

	cache_format_name(id, ".interrupted", name);
	fd = openat(cache->dir_fd, name,
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || cache_check_trusted(fd) || fstat(fd, &st))
		return;
	if (!io_write_all(fd, "\n", 1) && st.st_size == 0)
		cache->used_bytes += CACHE_FILE_OVERHEAD_BYTES;
}

uint64_t cache_pause_ns(struct cache *cache, const struct module_id *id, uint64_t now_ns)
{
	char name[CACHE_NAME_BYTES];
	uint64_t last_ns, pause_ns;
	struct stat st;

	cache_format_name(id, ".interrupted", name);
	if (fstatat(cache->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_size <= 0)
		return 0;
	last_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	pause_ns = failure_pause_ns(
		(unsigned int)MIN(st.st_size, UINT16_MAX), FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
	/* A time in the future comes from a clock that was wrong. */
	return now_ns >= last_ns && now_ns - last_ns < pause_ns ? pause_ns - (now_ns - last_ns) : 0;
}

void cache_forget_interrupted(struct cache *cache, const struct module_id *id)
{
	char name[CACHE_NAME_BYTES];

	cache_format_name(id, ".interrupted", name);
	(void)unlinkat(cache->dir_fd, name, 0);
}

/* ---- what servers do not have --------------------------------------------------------------- */

/* Hash of the servers' names, as stored in the marker. */
static void format_whom(const char *whom, char text[static WHOM_BYTES])
{
	snprintf(text, WHOM_BYTES, "%016" PRIx64, hash_bytes(whom, strlen(whom)));
}

void cache_set_absent(struct cache *cache, const struct build_id *id, const char *whom)
{
	const struct module_id module = { .build_id = *id };
	char name[CACHE_NAME_BYTES], text[WHOM_BYTES];
	autoclose int fd = -1;

	cache_format_name(&module, ".absent", name);
	format_whom(whom, text);
	fd = openat(cache->dir_fd, name,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd >= 0 && !io_write_all(fd, text, strlen(text)))
		cache->used_bytes += CACHE_FILE_OVERHEAD_BYTES;
}

bool cache_absent(struct cache *cache, const struct build_id *id, const char *whom, uint64_t now_ns)
{
	const struct module_id module = { .build_id = *id };
	char name[CACHE_NAME_BYTES], text[WHOM_BYTES], found[WHOM_BYTES] = "";
	autoclose int fd = -1;
	struct stat st;
	uint64_t since_ns;

	cache_format_name(&module, ".absent", name);
	format_whom(whom, text);
	fd = openat(cache->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || cache_check_trusted(fd) || fstat(fd, &st) ||
		read(fd, found, sizeof(found) - 1) != (ssize_t)strlen(text) || strcmp(found, text))
		return false;
	since_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	return now_ns >= since_ns && now_ns - since_ns < ABSENT_NS;
}
