/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/file_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/intern.h"

enum { MAX_KEYS = 1 << 20 }; /* descriptors */

static uint64_t key_of(const void *bytes, size_t size)
{
	uint64_t key = hash_bytes(bytes, size);

	return key ? key : 1;
}

uint64_t file_key_of_entry(int dir_fd, const char *name)
{
	struct stat st = { 0 };
	uint64_t parts[3] = { 0 };

	if (dir_fd >= 0 && !fstat(dir_fd, &st)) {
		parts[0] = st.st_dev;
		parts[1] = st.st_ino;
	}
	parts[2] = hash_bytes(name, strlen(name));
	return key_of(parts, sizeof(parts));
}

uint64_t file_key_of_memory(int task_fd)
{
	return file_key_of_entry(task_fd, "maps");
}

/* The folder of PATH, as seen in the mount of ROOT_FD; that must not ask ROOT_FD's file system. */
static uint64_t key_of_folder(int root_fd, const char *path)
{
	char name[40], line[64];
	const char *slash = strrchr(path, '/');
	uint64_t parts[2] = { 0, hash_bytes(path, slash ? (size_t)(slash - path) : 0) };
	autofclose FILE *info = NULL;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", root_fd);
	info = root_fd >= 0 ? fopen(name, "re") : NULL;
	while (info && fgets(line, sizeof(line), info))
		if (sscanf(line, "mnt_id: %" SCNu64, &parts[0]) == 1)
			break;
	return key_of(parts, sizeof(parts));
}

uint64_t file_key_of_path(const struct foreign_path *path)
{
	switch (path->place) {
	case FOREIGN_MAPPED:
		return path->device ? key_of(&path->device, sizeof(path->device))
				    : file_key_of_entry(path->dir_fd, path->name);
	case FOREIGN_BELOW:
		return key_of_folder(path->dir_fd, path->path);
	case FOREIGN_HERE:
		return key_of_folder(-1, path->path);
	case FOREIGN_TEXT:
		/* All such files are read from the memory of the process, or under its lock. */
		return path->dir_fd >= 0 ? file_key_of_memory(path->dir_fd)
					 : file_key_of_entry(-1, path->name);
	default:
		return file_key_of_entry(path->dir_fd, path->name);
	}
}

uint64_t file_keys_get(const struct file_keys *k, int fd)
{
	return (size_t)fd < k->count && k->items[fd] ? k->items[fd] : 1;
}

void file_keys_set(struct file_keys *k, int fd, uint64_t key)
{
	size_t wanted = (size_t)fd + 1;

	if (wanted > k->count) {
		uint64_t *keys =
			wanted <= MAX_KEYS ? realloc(k->items, wanted * sizeof(*keys)) : NULL;

		if (!keys)
			return;
		memset(keys + k->count, 0, (wanted - k->count) * sizeof(*keys));
		k->items = keys;
		k->count = wanted;
	}
	k->items[fd] = key;
}
