/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>

#include "agent/process/modules.h"
#include "agent/process/open_file.h"
#include "agent/process/proc_reader.h"
#include "base/cleanup.h"

enum way { BY_MAPPING, BY_PATH };

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;
}

/*
 * A file without a build ID. Mappings show the inode of the file system proper, stat() that of the
 * overlay or subvolume above it, so for a file that was reached through its mapping the device and
 * inode may differ where modification time and size agree; by path the inode must be right too.
 */
static bool is_file(const struct stat *st, const struct file_id *id, enum way way)
{
	bool unchanged = id->mtime_ns == mtime_ns(st) && id->size_bytes == (uint64_t)st->st_size;
	bool same_inode = id->inode == st->st_ino;

	if (id->mtime_ns == 0)
		return same_inode && id->device == st->st_dev;
	return unchanged && (way == BY_MAPPING || same_inode);
}

static int verify(int fd, const struct module *module, enum way way)
{
	struct build_id found;
	struct stat st;
	int err;

	if (module->id.build_id.size) {
		err = module_read_build_id(fd, &found);
		if (err == -ENOMEM || err == -EIO)
			return err;
		return !err && build_id_equal(&found, &module->id.build_id) ? 0 : -ESTALE;
	}
	if (fstat(fd, &st))
		return -errno;
	return is_file(&st, &module->id.file, way) ? 0 : -ESTALE;
}

/* Keeps FD if it was opened (ERR 0) and is the module's. */
static int accept(int err, int fd, const struct module *module, enum way way)
{
	if (err)
		return err;
	err = verify(fd, module, way);
	if (err)
		close(fd);
	return err;
}

int module_open(int proc_fd, uint32_t pid, uint64_t start, uint64_t end,
	const struct module *module, int *ret_fd)
{
	autoclose int pid_fd = -1;
	int gone, fd = -1, err = -ESRCH;
	bool stale = false;

	if (module->kind != MODULE_FILE)
		return -ENOENT;
	gone = proc_open(proc_fd, pid, &pid_fd);
	if (!gone) {
		err = open_map_file(pid_fd, start, end, &fd);
		err = accept(err, fd, module, BY_MAPPING);
		stale |= err == -ESTALE;
	}
	if (err && !gone && module->path[0] == '/') {
		err = open_in_root(pid_fd, module->path, &fd);
		err = accept(err, fd, module, BY_PATH);
		stale |= err == -ESTALE;
	}
	if (err && module->path[0] == '/') {
		err = open_here(module->path, &fd);
		err = accept(err, fd, module, BY_PATH);
		stale |= err == -ESTALE;
	}
	if (!err)
		*ret_fd = fd;
	else if (gone)
		err = gone;
	else if (stale)
		err = -ESTALE;
	return err;
}
