/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `fathom symbolize -e`, and its index, which may have only some addresses. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/commands/symbolize.h"
#include "base/cleanup.h"

/* A smaller file is hardly one of those that have a big debug file. */
enum { LEAST_BYTES = 1 << 20 };

int symbolize_file_open(
	struct symbolize_indexes *indexes, const char *path, struct symbolize_named_file *ret_file)
{
	struct symbolize_named_file file = { .indexes = indexes, .path = path };
	struct stat st;
	int err = symbolize_open(path, &file.fd, &file.id);

	if (err)
		return err;
	file.may_be_big = !fstat(file.fd, &st) && st.st_size >= LEAST_BYTES;
	file.whole_path = realpath(path, NULL);
	*ret_file = file;
	return 0;
}

void symbolize_file_close(struct symbolize_named_file *file)
{
	index_destroy(file->index);
	free(file->whole_path);
	if (file->fd >= 0)
		close(file->fd);
}

static int file_index(const struct symbolize_named_file *file,
	const struct symbolize_addresses *addresses, struct index **ret_index)
{
	const struct symbolize_file indexed = {
		.path = file->whole_path ? file->whole_path : file->path,
		.elf_fd = file->fd,
		.root_fd = -1,
		.addresses = addresses ? addresses->items : NULL,
		.address_count = addresses ? addresses->count : 0,
	};

	return symbolize_index(file->indexes, &file->id, &indexed, ret_index);
}

int symbolize_file_index(struct symbolize_named_file *file)
{
	return file_index(file, &file->known, &file->index);
}

int symbolize_index_of_file(
	struct symbolize_indexes *indexes, const char *path, struct index **ret_index)
{
	autocall(symbolize_file_close) struct symbolize_named_file file = { .fd = -1 };
	int err = symbolize_file_open(indexes, path, &file);

	return err ? err : file_index(&file, NULL, ret_index);
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void symbolize_file_sort(struct symbolize_named_file *file)
{
	qsort(file->known.items, file->known.count, sizeof(file->known.items[0]), by_address);
}

static bool file_is_known(const struct symbolize_named_file *file, uint64_t address)
{
	return bsearch(&address, file->known.items, file->known.count, sizeof(address), by_address);
}

/* False if there is certainly none. */
static bool file_has_code_at(const struct symbolize_named_file *file, uint64_t address)
{
	size_t count = index_segment_count(file->index);

	for (size_t i = 0; i < count; i++) {
		struct index_segment s = index_segment(file->index, i);

		if (address >= s.address && address - s.address < s.size)
			return true;
	}
	return !count; /* an object */
}

/* Replaces an index of some addresses by that of all. */
static bool file_complete(struct symbolize_named_file *file)
{
	struct index *whole;

	if (file->has_failed)
		return false;
	file->has_failed = file_index(file, NULL, &whole) != 0;
	if (file->has_failed)
		return false;
	index_destroy(file->index);
	file->index = whole;
	return true;
}

size_t symbolize_file_lookup(
	struct symbolize_named_file *file, uint64_t address, struct index_frame *frames)
{
	bool is_part = index_sources(file->index) & INDEX_SOURCE_ASKED;
	size_t count = 0;

	if (!is_part || file_is_known(file, address))
		count = index_lookup(file->index, address, frames, INDEX_MAX_FRAMES);
	if (count || !is_part || !file_has_code_at(file, address) || !file_complete(file))
		return count;
	return index_lookup(file->index, address, frames, INDEX_MAX_FRAMES);
}
