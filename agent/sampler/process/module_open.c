/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>

#include "agent/sampler/process/modules.h"
#include "agent/sampler/process/open_file.h"
#include "agent/sampler/process/proc_reader.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/host.h"

enum way { BY_MAPPING, BY_PATH };

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st->st_mtim.tv_nsec;
}

/*
 * Whether ST is the file ID, for files without a build ID. Mappings show the inode of the file
 * system proper, stat() that of the overlay or subvolume above it. So modification time and size
 * are enough for a file that was opened through its mapping; by path the inode must match, too.
 */
static bool is_file(const struct stat *st, const struct file_id *id, enum way way)
{
	bool unchanged = id->mtime_ns == mtime_ns(st) && id->size_bytes == (uint64_t)st->st_size;
	bool same_inode = id->inode == st->st_ino;

	if (id->mtime_ns == 0)
		return same_inode && id->device == st->st_dev;
	return unchanged && (way == BY_MAPPING || same_inode);
}

int module_identify(int fd, struct module_id *ret_id)
{
	struct module_id id = { 0 };
	struct stat st;
	int err = module_read_build_id(fd, &id.build_id);

	if (err == -ENOMEM || err == -EIO)
		return err;
	if (err)
		id.build_id.size = 0;
	err = file_hash_read(fd, &id.content);
	if (err)
		return err;
	if (!id.build_id.size) {
		if (host_fstat(fd, &st))
			return -errno;
		id.file = (struct file_id){ .device = st.st_dev,
			.inode = st.st_ino,
			.mtime_ns = mtime_ns(&st),
			.size_bytes = (uint64_t)st.st_size };
	}
	*ret_id = id;
	return 0;
}

/* A file that was never read is identified, by path, by its device and inode. */
static bool module_open_is_same(const struct stat *st, const struct module_id *found,
	const struct module_id *wanted, enum way way)
{
	bool seen = !file_hash_is_none(&wanted->content);

	if ((seen || wanted->build_id.size) && !build_id_equal(&found->build_id, &wanted->build_id))
		return false;
	if (seen && !file_hash_equal(&found->content, &wanted->content))
		return false;
	if (wanted->build_id.size && (seen || way == BY_MAPPING))
		return true;
	return is_file(st, &wanted->file, way);
}

static int verify(int fd, const struct module *module, enum way way)
{
	struct module_id found;
	struct stat st;
	int err = module_identify(fd, &found);

	if (err)
		return err;
	if (host_fstat(fd, &st))
		return -errno;
	return module_open_is_same(&st, &found, &module->id, way) ? 0 : -ESTALE;
}

/* Checks that FD, if it was opened (ERR 0), is the module's file; closes it if not. */
static int accept(int err, int fd, const struct module *module, enum way way)
{
	if (err)
		return err;
	err = verify(fd, module, way);
	if (err)
		close(fd);
	return err;
}

static int rank_error(int err)
{
	if (failure_is_shortage(err))
		return 3; /* without the shortage that way might have found the file */
	if (err == -ESRCH)
		return 2;
	return err == -ESTALE;
}

/* The error that better explains why neither of two ways led to the file. */
static int graver_error(int one, int other)
{
	return rank_error(one) > rank_error(other) ? one : other;
}

int module_open(int proc_fd, uint32_t pid, uint64_t start, uint64_t end,
	const struct module *module, int *ret_fd)
{
	autoclose int pid_fd = -1;
	int gone, why, fd = -1, err = -ESRCH;

	if (module->kind != MODULE_FILE)
		return -ENOENT;
	why = gone = proc_open(proc_fd, pid, &pid_fd);
	if (!gone) {
		err = open_map_file(pid_fd, start, end, &fd);
		err = accept(err, fd, module, BY_MAPPING);
		why = graver_error(why, err);
	}
	if (err && !gone && module->path[0] == '/') {
		err = open_in_root(pid_fd, module->path, &fd);
		err = accept(err, fd, module, BY_PATH);
		why = graver_error(why, err);
	}
	if (err && module->path[0] == '/') {
		err = open_here(module->path, &fd);
		err = accept(err, fd, module, BY_PATH);
		why = graver_error(why, err);
	}
	if (err)
		return why;
	*ret_fd = fd;
	return 0;
}
