/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/commands/pgo.h"
#include "agent/server/store/file_name.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { MAX_FILES = 8 << 20 };

struct pgo_listing {
	const char *directory, *day;
	int64_t from_ns, to_ns;
	struct pgo_files *files;
};

/* Whether the window of a file overlaps the time asked for; one without a length counts too. */
static bool pgo_files_in_time(const struct pgo_listing *l, const struct file_name *name)
{
	int64_t begin_ns = name->time_tenths * FILE_NAME_TENTH_NS;
	int64_t end_ns = begin_ns + (int64_t)MAX(name->duration_tenths, 1U) * FILE_NAME_TENTH_NS;

	return begin_ns < l->to_ns && end_ns > l->from_ns;
}

static int pgo_files_add(const struct pgo_listing *l, int day_fd, const char *entry)
{
	char relative[FILE_NAME_BYTES];
	struct pgo_files *files = l->files;
	struct file_name name;
	struct stat st;
	int length, err;

	length = snprintf(relative, sizeof(relative), "%s/%s", l->day, entry);
	if (length >= (int)sizeof(relative) || !file_name_parse(relative, &name) ||
		!pgo_files_in_time(l, &name))
		return 0;
	if (fstatat(day_fd, entry, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	err = array_reserve(files->paths, files->capacity, files->count + 1, MAX_FILES);
	if (err)
		return err;
	if (asprintf(&files->paths[files->count], "%s/%s", l->directory, relative) < 0)
		return -ENOMEM;
	files->count++;
	return 0;
}

typedef int pgo_files_entry_fn(const struct pgo_listing *l, int directory_fd, const char *entry);

/* A directory that is gone by now has no entries. */
static int pgo_files_each(
	const struct pgo_listing *l, int parent_fd, const char *path, pgo_files_entry_fn *each)
{
	int fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclosedir DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int err;

	if (!directory) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	do {
		err = io_next_entry(directory, &entry);
		if (!err && entry)
			err = each(l, fd, entry->d_name);
	} while (!err && entry);
	return err;
}

static int pgo_files_add_day(const struct pgo_listing *l, int directory_fd, const char *entry)
{
	struct pgo_listing of_day = *l;
	int err;

	if (!file_name_is_day(entry))
		return 0;
	of_day.day = entry;
	err = pgo_files_each(&of_day, directory_fd, entry, pgo_files_add);
	return err == -ENOENT || err == -ENOTDIR ? 0 : err;
}

/* Names begin with their times, so their order is that of time. */
static int pgo_files_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int pgo_files_of_store(
	const char *directory, int64_t from_ns, int64_t to_ns, struct pgo_files *ret_files)
{
	struct pgo_files files = { 0 };
	const struct pgo_listing l = { directory, NULL, from_ns, to_ns, &files };
	int err = pgo_files_each(&l, AT_FDCWD, directory, pgo_files_add_day);

	if (err) {
		pgo_files_deinit(&files);
		return err;
	}
	if (files.count)
		qsort(files.paths, files.count, sizeof(*files.paths), pgo_files_compare);
	*ret_files = files;
	return 0;
}

void pgo_files_deinit(struct pgo_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct pgo_files){ 0 };
}
