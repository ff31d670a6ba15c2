/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>

#include "agent/sampler/process/mappings.h"
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

static int module_identify_mapped(const struct build_id_reader *reader,
	const struct build_id_question *question, struct module_id *ret_id)
{
	struct module_id id = { 0 };
	struct stat st;
	int fd = question->fd, err = host_build_id(reader, question, &id.build_id);

	if (failure_is_transient(err))
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

int module_identify(const struct build_id_reader *reader, int fd, struct module_id *ret_id)
{
	const struct build_id_question question = { .fd = fd, .task_fd = -1 };

	return module_identify_mapped(reader, &question, ret_id);
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

/* The file of a module, on the way to be opened. */
struct opening {
	const struct build_id_reader *reader;
	int pid_fd; /* of the process that maps it; -1 = gone */
	const struct mapping *mapping;
	struct module_id found;
	int fd; /* -1 = none accepted yet */
	int why; /* the best reason why not; 0 = none yet */
};

static int verify(struct opening *o, int fd, enum way way)
{
	const struct build_id_question question = { .fd = fd,
		.task_fd = way == BY_MAPPING ? o->pid_fd : -1,
		.start = o->mapping->start,
		.end = o->mapping->end };
	struct stat st;
	int err = module_identify_mapped(o->reader, &question, &o->found);

	if (err)
		return err;
	if (host_fstat(fd, &st))
		return -errno;
	return module_open_is_same(&st, &o->found, &o->mapping->module->id, way) ? 0 : -ESTALE;
}

static int rank_error(int err)
{
	if (failure_is_transient(err))
		return 3; /* later that way may find the file */
	if (err == -ESRCH)
		return 2;
	return err == -ESTALE;
}

/* The error that better explains why neither of two ways led to the file. */
static int graver_error(int one, int other)
{
	return rank_error(one) > rank_error(other) ? one : other;
}

/* Takes FD, if it was opened (ERR 0), if it is the module's file; closes it if not. */
static void accept(struct opening *o, int err, int fd, enum way way)
{
	if (!err) {
		err = verify(o, fd, way);
		if (err)
			close(fd);
	}
	if (err)
		o->why = graver_error(o->why, err);
	else
		o->fd = fd;
}

int module_open(const struct module_opener *opener, uint32_t pid, const struct mapping *mapping,
	struct module_id *ret_id, int *ret_fd)
{
	const struct module *module = mapping->module;
	struct opening o = {
		.reader = opener->build_ids, .mapping = mapping, .pid_fd = -1, .fd = -1
	};
	autoclose int pid_fd = -1;
	int gone, fd = -1, err;

	if (module->kind != MODULE_FILE)
		return -ENOENT;
	o.why = gone = proc_open(opener->proc_fd, pid, &pid_fd);
	o.pid_fd = pid_fd;
	if (!gone) {
		err = open_map_file(pid_fd, mapping->start, mapping->end, &fd);
		accept(&o, err, fd, BY_MAPPING);
	}
	if (o.fd < 0 && !gone && module->path[0] == '/') {
		err = open_in_root(pid_fd, module->path, &fd);
		accept(&o, err, fd, BY_PATH);
	}
	if (o.fd < 0 && module->path[0] == '/') {
		err = open_here(module->path, &fd);
		accept(&o, err, fd, BY_PATH);
	}
	if (o.fd < 0)
		return o.why;
	if (ret_id)
		*ret_id = o.found;
	*ret_fd = o.fd;
	return 0;
}
