/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/builds/cache_internal.h"
#include "symbolizer/index/format.h"

enum { MAX_TEMPORARY_TRIES = 1000 };

DEFINE_AUTO(cache);

void cache_format_name(
	const struct module_id *id, const char *suffix, char name[static CACHE_NAME_BYTES])
{
	char text[MODULE_ID_TEXT_BYTES];

	module_id_format(id, text, sizeof(text));
	snprintf(name, CACHE_NAME_BYTES, "%s.v%d%s", text, INDEX_VERSION, suffix);
}

static int check_directory(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	/* The group bits also cover access control lists that let others write. */
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	return 0;
}

int cache_create(const char *directory, uint64_t limit_bytes, struct cache **ret_cache)
{
	autocall(auto_cache_destroy) struct cache *cache = calloc(1, sizeof(*cache));
	int err;

	if (!cache)
		return -ENOMEM;
	cache->dir_fd = -1;
	cache->limit_bytes = limit_bytes;
	err = io_make_directories(directory, 0700);
	if (err)
		return err;
	cache->dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cache->dir_fd < 0)
		return -errno;
	err = check_directory(cache->dir_fd);
	if (err)
		return err;
	*ret_cache = take(cache);
	return 0;
}

void cache_destroy(struct cache *cache)
{
	if (!cache)
		return;
	if (cache->dir_fd >= 0)
		close(cache->dir_fd);
	free(cache);
}

int cache_check_trusted(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH))
		       ? 0
		       : -EBADMSG;
}

/* Returns -EBADMSG if NAME is not one of our own plain files. */
static int cache_open_trusted(struct cache *cache, const char *name, int *ret_fd)
{
	autoclose int fd =
		openat(cache->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int err;

	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	err = cache_check_trusted(fd);
	if (!err)
		*ret_fd = take_fd(&fd);
	return err;
}

/* In a read-only directory only the order of use is lost. */
static void cache_mark_used(int fd)
{
	static const struct timespec now[2] = { { .tv_nsec = UTIME_NOW },
		{ .tv_nsec = UTIME_NOW } };

	(void)futimens(fd, now);
}

/* Opens NAME, which must be an index of ID. */
static int open_named(
	struct cache *cache, const char *name, const struct module_id *id, struct index **ret_index)
{
	struct index *index = NULL;
	autoclose int fd = -1;
	int err = cache_open_trusted(cache, name, &fd);

	if (!err)
		err = index_open(fd, &index);
	if (!err && !index_is_of(index, id)) {
		index_destroy(index);
		err = -EBADMSG;
	}
	if (err == -EBADMSG)
		unlinkat(cache->dir_fd, name, 0);
	if (err)
		return err;
	*ret_index = index;
	cache_mark_used(fd);
	return 0;
}

int cache_open(struct cache *cache, const struct module_id *id, struct index **ret_index)
{
	char name[CACHE_NAME_BYTES];

	cache_format_name(id, "", name);
	return open_named(cache, name, id, ret_index);
}

/* Returns true if NAME is an index of this format version whose build ID is HEX. */
static bool has_build_id(const char *name, const char *hex)
{
	const char *dash = strchr(name, '-');
	char end[16];
	size_t length = strlen(name), end_length;

	end_length = (size_t)snprintf(end, sizeof(end), ".v%d", INDEX_VERSION);
	if (length >= CACHE_NAME_BYTES || length <= end_length ||
		strcmp(name + length - end_length, end) || strncmp(name, hex, strlen(hex)))
		return false;
	/* Earlier programs left indexes of build ID and content hash only, which can be forged. */
	return name[strlen(hex)] == '.' || (name[strlen(hex)] == '-' && strchr(dash + 1, '-'));
}

static bool cache_is_same_file(const struct cache *cache, const char *one, const char *other)
{
	struct stat st, st_other;

	return !fstatat(cache->dir_fd, one, &st, AT_SYMLINK_NOFOLLOW) &&
	       !fstatat(cache->dir_fd, other, &st_other, AT_SYMLINK_NOFOLLOW) &&
	       st.st_ino == st_other.st_ino;
}

int cache_open_by_build_id(
	struct cache *cache, const struct build_id *build_id, struct index **ret_index)
{
	const struct module_id id = { .build_id = *build_id };
	int fd = openat(cache->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclosedir DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	char hex[MODULE_ID_TEXT_BYTES], name[CACHE_NAME_BYTES] = "";
	struct dirent *entry;
	int err;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? -errno : -ENOMEM;
	}
	build_id_format(build_id, hex, sizeof(hex));
	while (!(err = io_next_entry(directory, &entry)) && entry) {
		if (!has_build_id(entry->d_name, hex))
			continue;
		if (*name && !cache_is_same_file(cache, name, entry->d_name))
			return -ENOTUNIQ;
		snprintf(name, sizeof(name), "%.*s", CACHE_NAME_BYTES - 1, entry->d_name);
	}
	/* On error there may be a second one, and the choice would be arbitrary. */
	if (err)
		return err;
	return *name ? open_named(cache, name, &id, ret_index) : -ENOENT;
}

/* Returns true if we hold the file's lock and no trimmer has unlinked it. */
static bool claim(int fd)
{
	struct stat st;

	return !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && st.st_nlink == 1;
}

int cache_begin(struct cache *cache, struct cache_entry *ret_entry)
{
	struct cache_entry entry;

	for (int i = 0; i < MAX_TEMPORARY_TRIES; i++) {
		snprintf(entry.temporary, sizeof(entry.temporary), "%s%d-%u",
			CACHE_TEMPORARY_PREFIX, (int)getpid(), cache->next_temporary++);
		entry.fd = openat(cache->dir_fd, entry.temporary,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (entry.fd < 0 && errno != EEXIST)
			return -errno;
		if (entry.fd < 0)
			continue;
		entry.shared[0] = 0;
		if (claim(entry.fd)) {
			*ret_entry = entry;
			return 0;
		}
		close(entry.fd);
	}
	return -EAGAIN;
}

/* Gives ENTRY's file the further name NAME. */
static int link_shared(struct cache *cache, const struct cache_entry *entry, const char *name)
{
	if (!strcmp(entry->shared, name))
		return 0;
	/* What is there was built before, without a debug file that is there now, say. */
	unlinkat(cache->dir_fd, name, 0);
	return linkat(cache->dir_fd, entry->shared, cache->dir_fd, name, 0) ? -errno : 0;
}

static int cache_place(
	struct cache *cache, const struct cache_entry *entry, int fd, const char *name)
{
	struct stat st;

	if (entry->shared[0]) {
		cache->used_bytes += CACHE_FILE_OVERHEAD_BYTES;
		return link_shared(cache, entry, name);
	}
	if (fstat(fd, &st) || renameat(cache->dir_fd, entry->temporary, cache->dir_fd, name))
		return -errno;
	cache->used_bytes += (uint64_t)st.st_size + CACHE_FILE_OVERHEAD_BYTES;
	return 0;
}

static int cache_commit_as(struct cache *cache, struct cache_entry *entry,
	const struct module_id *id, const char *suffix)
{
	autoclose int fd = entry->fd;
	char name[CACHE_NAME_BYTES];
	int err;

	if (id->file.claimed) {
		take_fd(&fd);
		cache_abandon(cache, entry);
		return 0;
	}
	entry->fd = -1;
	cache_format_name(id, suffix, name);
	err = cache_place(cache, entry, fd, name);
	if (err) {
		if (entry->temporary[0])
			unlinkat(cache->dir_fd, entry->temporary, 0);
		return err;
	}
	if (!*suffix)
		cache_forget_interrupted(cache, id);
	if (!cache->counted || cache->used_bytes > cache->limit_bytes)
		cache_trim(cache); /* ignoring errors: the next commit tries again */
	return 0;
}

int cache_commit(struct cache *cache, struct cache_entry *entry, const struct module_id *id)
{
	return cache_commit_as(cache, entry, id, "");
}

void cache_abandon(struct cache *cache, struct cache_entry *entry)
{
	if (entry->fd < 0)
		return;
	if (entry->temporary[0])
		unlinkat(cache->dir_fd, entry->temporary, 0);
	close(take_fd(&entry->fd));
}

int cache_scratch(struct cache *cache, int *ret_fd)
{
	struct cache_entry entry;
	int err = cache_begin(cache, &entry);

	if (err)
		return err;
	unlinkat(cache->dir_fd, entry.temporary, 0);
	*ret_fd = take_fd(&entry.fd);
	return 0;
}

/* ---- files of other kinds -------------------------------------------------------------------- */

int cache_open_beside(
	struct cache *cache, const struct module_id *id, const char *suffix, int *ret_fd)
{
	char name[CACHE_NAME_BYTES];
	int err;

	cache_format_name(id, suffix, name);
	err = cache_open_trusted(cache, name, ret_fd);
	if (err == -EBADMSG)
		unlinkat(cache->dir_fd, name, 0);
	if (!err)
		cache_mark_used(*ret_fd);
	return err;
}

int cache_commit_beside(struct cache *cache, struct cache_entry *entry, const struct module_id *id,
	const char *suffix)
{
	return cache_commit_as(cache, entry, id, suffix);
}

void cache_remove_beside(struct cache *cache, const struct module_id *id, const char *suffix)
{
	char name[CACHE_NAME_BYTES];

	cache_format_name(id, suffix, name);
	(void)unlinkat(cache->dir_fd, name, 0);
}
