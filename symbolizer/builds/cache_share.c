/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the index of a copy of the same file: one with the same bytes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/builds/cache_internal.h"
#include "symbolizer/index/format.h"

enum { COMPARED_BYTES = 16384 }; /* at a time */

static bool is_same_content(int one, int other, uint64_t size)
{
	uint8_t left[COMPARED_BYTES], right[COMPARED_BYTES];

	for (uint64_t at = 0; at < size; at += COMPARED_BYTES) {
		size_t part = MIN(size - at, (uint64_t)COMPARED_BYTES);

		if (io_read_at(one, at, left, part) != (ssize_t)part ||
			io_read_at(other, at, right, part) != (ssize_t)part ||
			memcmp(left, right, part) != 0)
			return false;
	}
	return true;
}

/* The checksum at the end differs unless the indexes are equal, or forged. */
static bool is_same_index(int one, int other)
{
	uint64_t left, right;
	struct stat st, st_other;

	if (fstat(one, &st) || fstat(other, &st_other) || st.st_size != st_other.st_size ||
		st.st_size < (off_t)sizeof(left))
		return false;
	if (io_read_at(one, (uint64_t)st.st_size - sizeof(left), &left, sizeof(left)) !=
			(ssize_t)sizeof(left) ||
		io_read_at(other, (uint64_t)st.st_size - sizeof(right), &right, sizeof(right)) !=
			(ssize_t)sizeof(right) ||
		left != right)
		return false;
	return is_same_content(one, other, (uint64_t)st.st_size);
}

/* Makes ENTRY the file NAME if that has the same bytes. */
static bool share_named(struct cache *cache, struct cache_entry *entry, const char *name)
{
	autoclose int fd =
		openat(cache->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || cache_check_trusted(fd) || !is_same_index(entry->fd, fd))
		return false;
	unlinkat(cache->dir_fd, entry->temporary, 0);
	close(entry->fd);
	entry->fd = take_fd(&fd);
	entry->temporary[0] = 0;
	snprintf(entry->shared, sizeof(entry->shared), "%.*s", CACHE_NAME_BYTES - 1, name);
	return true;
}

/* Whether NAME is an index of this format version of a file that PREFIX describes. */
static bool is_of_copy(const char *name, const char *prefix)
{
	char end[16];
	size_t length = strlen(name), prefix_length = strlen(prefix);
	size_t end_length = (size_t)snprintf(end, sizeof(end), ".v%d", INDEX_VERSION);

	return length < CACHE_NAME_BYTES && length > prefix_length + end_length &&
	       !strncmp(name, prefix, prefix_length) && name[prefix_length] == '-' &&
	       !strcmp(name + length - end_length, end);
}

void cache_share(struct cache *cache, struct cache_entry *entry, const struct module_id *id)
{
	int fd = openat(cache->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclosedir DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	char prefix[MODULE_ID_TEXT_BYTES];
	struct dirent *entry_name;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	module_id_format_copies(id, prefix, sizeof(prefix));
	while (!file_hash_is_none(&id->content) && !io_next_entry(directory, &entry_name) &&
		entry_name)
		if (is_of_copy(entry_name->d_name, prefix) &&
			share_named(cache, entry, entry_name->d_name))
			return;
}
