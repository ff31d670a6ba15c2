/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_PIECES = 256,
	MAX_BYTES = 256 << 20, /* of one */
};

/* Code that is mapped from a file. */
struct own_code_piece {
	uintptr_t start;
	size_t length;
	off_t file_off;
};

struct own_code {
	struct own_code_piece *items;
	size_t count, capacity;
};

static bool own_code_parse(const char *line, struct own_code_piece *ret_piece)
{
	unsigned long start, end, file_off, inode;
	char access[5];

	if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &start, &end, access, &file_off, &inode) != 5)
		return false;
	*ret_piece = (struct own_code_piece){
		.start = start,
		.length = end - start,
		.file_off = (off_t)file_off,
	};
	return inode && !strcmp(access, "r-xp") && end - start <= MAX_BYTES;
}

/* The pieces change while they are replaced, so they are listed before. */
static void own_code_list(struct own_code *code)
{
	autofclose FILE *maps = fopen("/proc/self/maps", "re");
	struct own_code_piece piece;
	autofree char *line = NULL;
	size_t room = 0;

	while (maps && getline(&line, &room, maps) > 0) {
		if (!own_code_parse(line, &piece))
			continue;
		if (array_reserve(code->items, code->capacity, code->count + 1, MAX_PIECES))
			return;
		code->items[code->count++] = piece;
	}
}

/* The file's bytes: memory may already have breakpoints. What is behind its end is zero. */
static int own_code_read(const struct own_code_piece *piece, char *copy)
{
	char path[64];
	autoclose int fd = -1;
	size_t done = 0;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)piece->start,
		(unsigned long)(piece->start + piece->length));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (done < piece->length) {
		ssize_t size =
			pread(fd, copy + done, piece->length - done, piece->file_off + (off_t)done);

		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			return size ? -errno : 0;
		done += (size_t)size;
	}
	return 0;
}

/* The copy takes the place of PIECE at once: this code may be a part of it. */
static int own_code_replace(const struct own_code_piece *piece)
{
	char *copy = mmap(
		NULL, piece->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (copy == MAP_FAILED)
		return -errno;
	err = own_code_read(piece, copy);
	__builtin___clear_cache(copy, copy + piece->length);
	if (!err && mprotect(copy, piece->length, PROT_READ | PROT_EXEC))
		err = -errno;
	if (!err && mremap(copy, piece->length, piece->length, MREMAP_MAYMOVE | MREMAP_FIXED,
			    (void *)piece->start) == MAP_FAILED)
		err = -errno;
	if (err)
		munmap(copy, piece->length);
	return err;
}

void own_code_copy(size_t *ret_bytes)
{
	struct own_code code = { 0 };
	size_t bytes = 0;

	own_code_list(&code);
	for (size_t i = 0; i < code.count; i++)
		if (!own_code_replace(&code.items[i]))
			bytes += code.items[i].length;
	free(code.items);
	*ret_bytes = bytes;
}
