/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kernel_image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/build_id_note.h"
#include "base/cleanup.h"
#include "base/io.h"

enum {
	MAX_NOTES_BYTES = 64 * 1024,
	MAX_MODULE_NAME = 55, /* MODULE_NAME_LEN - 1 */
};

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
