/* SPDX-License-Identifier: Apache-2.0 */
#include "base/build_id_note.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"

enum { NOTE_ALIGN = 4 };

static uint64_t padding(uint32_t size)
{
	return -(uint64_t)size & (NOTE_ALIGN - 1);
}

/* Names and descriptors are padded to 4 bytes, but the padding at the end may be missing. */
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
