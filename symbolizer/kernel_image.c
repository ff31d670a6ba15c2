/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kernel_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"

enum {
	MAX_NOTES_BYTES = 64 * 1024,
	MAX_MODULE_NAME = 55, /* MODULE_NAME_LEN - 1 */
	NOTE_ALIGN = 4,
};

static uint64_t padding(uint32_t size)
{
	return -(uint64_t)size & (NOTE_ALIGN - 1);
}

/* Names and descriptors are padded to 4 bytes, the last one perhaps not. */
static const void *note_bytes(struct cursor *c, uint32_t size)
{
	const void *bytes = cursor_bytes(c, size);

	if (bytes)
		cursor_skip(c, MIN(padding(size), (uint64_t)cursor_left(c)));
	return bytes;
}

int build_id_from_notes(const void *notes, size_t size, struct build_id *ret_id)
{
	struct cursor c = cursor_over(notes, size);

	while (cursor_left(&c)) {
		uint32_t name_size = cursor_u32(&c);
		uint32_t bytes_size = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		const void *name = note_bytes(&c, name_size);
		const void *bytes = note_bytes(&c, bytes_size);

		if (!name || !bytes)
			return -EBADMSG;
		if (type != NT_GNU_BUILD_ID || name_size != sizeof(ELF_NOTE_GNU) ||
			memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			continue;
		if (!bytes_size)
			return -EBADMSG;
		if (bytes_size > BUILD_ID_MAX_BYTES)
			return -EOPNOTSUPP;
		*ret_id = (struct build_id){ .size = (uint8_t)bytes_size };
		memcpy(ret_id->bytes, bytes, bytes_size);
		return 0;
	}
	return -ENOENT;
}

static int build_id_from_file(const char *path, struct build_id *ret_id)
{
	autocall(buffer_deinit) struct buffer notes;
	int err;

	buffer_init(&notes, MAX_NOTES_BYTES);
	err = io_read_file(AT_FDCWD, path, &notes);
	if (err)
		return err;
	return build_id_from_notes(notes.bytes, notes.size, ret_id);
}

int kernel_build_id(struct build_id *ret_id)
{
	return build_id_from_file("/sys/kernel/notes", ret_id);
}

int kernel_module_build_id(const char *name, struct build_id *ret_id)
{
	size_t length = strlen(name);
	char path[PATH_MAX];

	if (!length || length > MAX_MODULE_NAME || strpbrk(name, "/."))
		return -ENOENT;
	snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	return build_id_from_file(path, ret_id);
}
