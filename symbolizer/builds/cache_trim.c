/* SPDX-License-Identifier: Apache-2.0 */
/* Evicts the least recently used files of the index cache, and what dead processes left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "symbolizer/builds/cache_internal.h"

enum {
	MAX_FILES = 1 << 20,
	TRIM_SHARE = 8, /* of the limit: an eighth is freed when it is reached */
};

/* Tolerance for files written while the directory is being read. */
static const uint64_t FUTURE_NS = UINT64_C(60000000000);

struct cached_file {
	uint64_t used_ns; /* mtime; 0 = in the future, from a clock that was wrong */
	uint64_t inode;
	uint64_t bytes; /* that are free when it has been removed, and all names before it */
	char name[CACHE_NAME_BYTES];
};

struct listing {
	uint64_t latest_ns; /* later times count as in the future */
	struct cached_file *files;
	size_t count, capacity;
	uint64_t bytes;
};

static void listing_deinit(struct listing *l)
{
	free(l->files);
}

/* If the lock is free, its owner and all its children are gone. */
static void remove_orphan(struct cache *cache, const char *name)
{
	autoclose int fd =
		openat(cache->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(cache->dir_fd, name, 0);
}

static int list_file(struct cache *cache, struct listing *l, const char *name)
{
	struct cached_file *file;
	struct stat st;
	int err;

	if (strlen(name) >= CACHE_NAME_BYTES)
		return 0; /* none of ours */
	if (fstatat(cache->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	err = array_reserve(l->files, l->capacity, l->count + 1, MAX_FILES);
	if (err)
		return err;
	file = &l->files[l->count++];
	memcpy(file->name, name, strlen(name) + 1);
	file->used_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	if (file->used_ns > l->latest_ns)
		file->used_ns = 0;
	file->inode = st.st_ino;
	file->bytes = (uint64_t)st.st_size;
	return 0;
}

/* Only our own files are removed: ID.vNUMBER, optionally with a dot and a suffix. */
static bool is_our_name(const char *name)
{
	const char *generation = strstr(name, ".v");
	size_t digits;

	if (!generation || generation == name ||
		strspn(name, "0123456789abcdefi-") != (size_t)(generation - name))
		return false;
	digits = strspn(generation + 2, "0123456789");
	return digits && (!generation[2 + digits] || generation[2 + digits] == '.');
}

static int list_directory(struct cache *cache, struct listing *l)
{
	int fd = openat(cache->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclosedir DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	int err = 0;

	if (!directory) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = io_next_entry(directory, &entry);
	while (!err && entry) {
		if (!strncmp(entry->d_name, CACHE_TEMPORARY_PREFIX, strlen(CACHE_TEMPORARY_PREFIX)))
			remove_orphan(cache, entry->d_name);
		else if (is_our_name(entry->d_name))
			err = list_file(cache, l, entry->d_name);
		if (!err)
			err = io_next_entry(directory, &entry);
	}
	return err;
}

static int compare_use(const void *a, const void *b)
{
	const struct cached_file *left = a, *right = b;

	if (left->used_ns != right->used_ns)
		return left->used_ns < right->used_ns ? -1 : 1;
	if (left->inode != right->inode)
		return left->inode < right->inode ? -1 : 1;
	return strcmp(left->name, right->name);
}

/*
 * Sorts the files by their last use, and counts the bytes of a file at its last name. All names of
 * a file have one time, so they are together.
 */
static void listing_sort(struct listing *l)
{
	if (l->count)
		qsort(l->files, l->count, sizeof(*l->files), compare_use);
	for (size_t i = 0; i < l->count; i++) {
		struct cached_file *file = &l->files[i];

		if (i + 1 < l->count && file[1].inode == file->inode)
			file->bytes = 0;
		file->bytes += CACHE_FILE_OVERHEAD_BYTES;
		l->bytes += file->bytes;
	}
}

int cache_trim(struct cache *cache)
{
	autocall(listing_deinit) struct listing l = { .latest_ns = clock_real_ns() + FUTURE_NS };
	uint64_t limit = cache->limit_bytes;
	int err = list_directory(cache, &l);

	/*
	 * On -E2BIG there are more files than fit the list; what was listed is still worth
	 * trimming.
	 */
	if (err && err != -E2BIG)
		return err;
	listing_sort(&l);
	/* Free an eighth at once, because each trimming reads all entries. */
	if (l.bytes > limit)
		limit -= limit / TRIM_SHARE;
	for (size_t i = 0; i < l.count && l.bytes > limit; i++) {
		if (!unlinkat(cache->dir_fd, l.files[i].name, 0) || errno == ENOENT)
			l.bytes -= l.files[i].bytes;
	}
	cache->used_bytes = l.bytes;
	cache->counted = true;
	return 0;
}
