/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/sampler/files/file_identity.h"
#include "agent/sampler/process/mappings.h"
#include "agent/sampler/process/modules.h"
#include "agent/sampler/process/open_file.h"
#include "agent/sampler/process/proc_reader.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/foreign.h"

enum way { BY_MAPPING, BY_PATH };

/*
 * Whether the file FOUND is the WANTED one, which was read when it was mapped. Before Linux 6.6 an
 * overlay's file has the overlay's device and the inode below. Two containers then map one file by
 * two devices; its birth time tells it from all others with that number. Only by its mapping: a
 * path could lead anywhere.
 */
static bool is_file_read(const struct file_id *found, const struct file_id *wanted, enum way way)
{
	struct file_id here = *found;

	if (way == BY_MAPPING && !found->claimed && major(found->device) == 0 &&
		major(wanted->device) == 0)
		here.device = wanted->device;
	return file_id_equal(&here, wanted);
}

/*
 * Whether a file with ST is the WANTED one, which could not be read when it was mapped. Mappings
 * show the inode of the file system proper, stat() that of an overlay or subvolume above it, whose
 * devices have major number 0.
 */
static bool is_file_unread(const struct stat *st, const struct module_id *wanted, enum way way)
{
	if (st->st_ino == wanted->file.inode && st->st_dev == wanted->file.device)
		return true;
	return way == BY_MAPPING && wanted->build_id.size && major(st->st_dev) == 0;
}

int module_identify(const struct build_id_reader *reader, int fd, struct module_id *ret_id)
{
	const struct build_id_question question = { .fd = fd, .task_fd = -1 };

	return file_identity_read(reader, &question, ret_id);
}

static bool module_open_is_same(const struct stat *st, const struct module_id *found,
	const struct module_id *wanted, enum way way)
{
	bool seen = !file_hash_is_none(&wanted->content);

	if ((seen || wanted->build_id.size) && !build_id_equal(&found->build_id, &wanted->build_id))
		return false;
	if (!seen)
		return is_file_unread(st, wanted, way);
	return file_hash_equal(&found->content, &wanted->content) &&
	       is_file_read(&found->file, &wanted->file, way);
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
	int err = file_identity_read(o->reader, &question, &o->found);

	if (!err)
		err = foreign_stat(fd, &st);
	if (err)
		return err;
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
		err = open_map_file(
			pid_fd, mapping->start, mapping->end, mapping->file.device, &fd);
		accept(&o, err, fd, BY_MAPPING);
	}
	/* What did not answer would not answer the other ways, either. */
	if (o.fd < 0 && !gone && o.why != -EAGAIN && module->path[0] == '/') {
		err = open_in_root(pid_fd, module->path, &fd);
		accept(&o, err, fd, BY_PATH);
	}
	if (o.fd < 0 && o.why != -EAGAIN && module->path[0] == '/') {
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
