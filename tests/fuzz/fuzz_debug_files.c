/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module and its debug files, all arbitrary: the files that they name are searched for, and an
 * index is built from them. The input is the role and the size (16 bits) of three files, then their
 * bytes.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"
#include "symbolizer/builds/debug_search.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/elf/debug_names.h"
#include "symbolizer/index/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { FILES = 3 };

static int file_of(struct cursor *c, size_t size)
{
	size_t length = MIN(size, cursor_left(c));
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || io_write_all(fd, cursor_bytes(c, length), length))
		abort();
	return fd;
}

static void look_for(int fd)
{
	const struct debug_search search = {
		.directories = "/nonexistent", .root_fd = -1, .path = "/nonexistent/x"
	};
	static struct debug_names names;
	struct debug_files found;

	if (debug_names_read(fd, &names))
		return;
	debug_search_find(&search, fd, &names, &found);
	debug_files_close(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_over(bytes, size);
	struct sandbox_files files = { .output_fd = memfd_create("fuzz", MFD_CLOEXEC) };
	uint8_t roles[FILES];
	uint16_t sizes[FILES];
	struct sandbox_result result;
	struct index *index;

	for (size_t i = 0; i < FILES; i++) {
		roles[i] = cursor_u8(&c);
		sizes[i] = cursor_u16(&c);
	}
	c.bad = false;
	for (size_t i = 0; i < FILES; i++)
		files.debug_files.items[files.debug_files.count++] = (struct debug_file){
			.fd = file_of(&c, sizes[i]),
			.role = roles[i] % DEBUG_FILE_ROLES,
			.crc = roles[i],
		};
	files.elf_fd = file_of(&c, SIZE_MAX);
	look_for(files.elf_fd);
	if (!builder_run_files(&files, &result)) {
		if (index_open(files.output_fd, &index))
			abort();
		index_destroy(index);
	}
	debug_files_close(&files.debug_files);
	close(files.elf_fd);
	close(files.output_fd);
	return 0;
}
