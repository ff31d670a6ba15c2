/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/file_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agent/sampler/files/file_identity.h"
#include "agent/sampler/process/open_file.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/foreign.h"
#include "base/intern.h"
#include "base/map.h"

struct known_file {
	uint64_t device, inode; /* of its mappings; an overlay's own file has others */
	uint64_t generation; /* of the inode number; 0 = not known yet */
	struct module_id id;
	uint64_t round; /* in which the file was last checked */
};

struct file_ids {
	struct known_file *items;
	size_t count, capacity;
	size_t limit;
	const struct build_id_reader *reader;
	struct map numbers; /* hash of device and inode → item number */
	uint64_t round;
	uint64_t shortages;
};

int file_ids_create(size_t limit, const struct build_id_reader *reader, struct file_ids **ret_ids)
{
	struct file_ids *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	ids->limit = limit;
	ids->reader = reader;
	ids->round = 1;
	map_init(&ids->numbers, limit);
	*ret_ids = ids;
	return 0;
}

void file_ids_destroy(struct file_ids *ids)
{
	if (!ids)
		return;
	free(ids->items);
	map_deinit(&ids->numbers);
	free(ids);
}

void file_ids_renew(struct file_ids *ids)
{
	ids->round++;
}

static uint64_t file_ids_key_of(uint64_t device, uint64_t inode)
{
	const uint64_t key[2] = { device, inode };

	return hash_bytes(key, sizeof(key));
}

/* The cached file of this device and inode, or NULL. Two files with one hash replace each other. */
static struct known_file *file_ids_find(const struct file_ids *ids, uint64_t device, uint64_t inode)
{
	uint64_t number;
	struct known_file *known;

	if (!map_get(&ids->numbers, file_ids_key_of(device, inode), &number))
		return NULL;
	known = &ids->items[number];
	return known->device == device && known->inode == inode ? known : NULL;
}

/* Caches FILE in place of an earlier entry. Out of memory only means another look later. */
static void file_ids_remember(struct file_ids *ids, const struct known_file *file)
{
	uint64_t key = file_ids_key_of(file->device, file->inode);
	uint64_t number;

	if (map_get(&ids->numbers, key, &number)) {
		ids->items[number] = *file;
		return;
	}
	if (ids->count >= ids->limit) {
		map_clear(&ids->numbers);
		ids->count = 0;
	}
	if (array_reserve(ids->items, ids->capacity, ids->count + 1, ids->limit) ||
		map_set(&ids->numbers, key, ids->count))
		return;
	ids->items[ids->count++] = *file;
}

/*
 * Returns 0 if FD has the mapping's device and inode, else -ESTALE. Through an overlay it never
 * has.
 */
static int check_numbers(int fd, const struct proc_mapping *mapping)
{
	struct stat st;

	int err = foreign_stat(fd, &st);

	if (err)
		return err;
	return st.st_dev == mapping->device && st.st_ino == mapping->inode ? 0 : -ESTALE;
}

static int open_mapped(
	int task_fd, const struct proc_mapping *mapping, struct build_id_question *ret_question)
{
	struct build_id_question question = {
		.task_fd = task_fd, .start = mapping->start, .end = mapping->end
	};
	autoclose int fd = -1, here = -1;
	int err = task_fd < 0 ? -ESRCH
			      : open_map_file(task_fd, mapping->start, mapping->end,
					mapping->device, &question.fd);

	if (!err)
		*ret_question = question;
	/* A shortage, or a hang, would make the other ways fail, too, and hide behind their errors.
	 */
	if (!err || failure_is_transient(err) || mapping->path[0] != '/')
		return err;
	if (task_fd >= 0 && !open_in_root(task_fd, mapping->path, &fd) &&
		!check_numbers(fd, mapping)) {
		*ret_question = (struct build_id_question){ .fd = take_fd(&fd), .task_fd = -1 };
		return 0;
	}
	err = open_here(mapping->path, &here);
	if (!err)
		err = check_numbers(here, mapping);
	if (!err)
		*ret_question = (struct build_id_question){ .fd = take_fd(&here), .task_fd = -1 };
	return err;
}

static bool file_ids_is_reported(const struct build_id *build_id)
{
	return build_id && build_id->size;
}

/* Whether STATE and, if it was reported, BUILD_ID are those of KNOWN (NULL = no). */
static bool is_unchanged(const struct known_file *known, const struct file_id *state,
	const struct build_id *build_id)
{
	return known && !memcmp(&known->id.file, state, sizeof(*state)) &&
	       (!file_ids_is_reported(build_id) || build_id_equal(build_id, &known->id.build_id));
}

/* Checks the file itself, and reads it unless it is cached in its present state. */
static int look(struct file_ids *ids, int task_fd, const struct proc_mapping *mapping,
	const struct build_id *build_id, struct module_id *ret_id)
{
	struct known_file *known = file_ids_find(ids, mapping->device, mapping->inode);
	struct known_file file = { .device = mapping->device,
		.inode = mapping->inode,
		.generation = mapping->generation,
		.round = ids->round };
	struct build_id_question question;
	autoclose int fd = -1;
	struct file_id state;
	int err = open_mapped(task_fd, mapping, &question);

	if (err)
		return err;
	fd = question.fd;
	err = foreign_state(fd, &state);
	if (err)
		return err;
	if (is_unchanged(known, &state, build_id)) {
		known->round = ids->round;
		if (mapping->generation)
			known->generation = mapping->generation;
		*ret_id = known->id;
		return 0;
	}
	err = file_identity_read(ids->reader, &question, &file.id);
	/* The file was changed after it was mapped. */
	if (!err && file_ids_is_reported(build_id) && !build_id_equal(build_id, &file.id.build_id))
		err = -ESTALE;
	if (err)
		return err;
	file_ids_remember(ids, &file);
	*ret_id = file.id;
	return 0;
}

/*
 * The identity of a file that cannot be read. Device and inode are part of it, because anybody can
 * write any build ID into a file.
 */
static struct module_id unseen(const struct proc_mapping *mapping, const struct build_id *build_id)
{
	struct module_id id = { .file = { .device = mapping->device,
					.inode = mapping->inode,
					.generation = mapping->generation } };

	if (file_ids_is_reported(build_id))
		id.build_id = *build_id;
	return id;
}

bool file_ids_known(const struct file_ids *ids, const struct proc_mapping *mapping,
	const struct build_id *build_id, struct module_id *ret_id)
{
	const struct known_file *known = file_ids_find(ids, mapping->device, mapping->inode);

	if (!known || !file_ids_is_reported(build_id) ||
		!build_id_equal(build_id, &known->id.build_id) ||
		known->generation != mapping->generation)
		return false;
	*ret_id = known->id;
	return true;
}

/* Whether MAPPING may be of the file KNOWN: nothing that the kernel reported contradicts it. */
static bool may_be(const struct known_file *known, const struct proc_mapping *mapping,
	const struct build_id *build_id)
{
	if (file_ids_is_reported(build_id) && !build_id_equal(build_id, &known->id.build_id))
		return false;
	return !known->generation || !mapping->generation ||
	       known->generation == mapping->generation;
}

struct module_id file_ids_get(struct file_ids *ids, int task_fd, const struct proc_mapping *mapping,
	const struct build_id *build_id)
{
	const struct known_file *known = file_ids_find(ids, mapping->device, mapping->inode);
	struct module_id id;
	int err;

	if (known && !may_be(known, mapping, build_id))
		known = NULL;
	if (known && known->round == ids->round)
		return known->id;
	err = look(ids, task_fd, mapping, build_id, &id);
	if (!err)
		return id;
	ids->shortages += failure_is_shortage(err);
	return known ? known->id : unseen(mapping, build_id);
}

uint64_t file_ids_shortages(const struct file_ids *ids)
{
	return ids->shortages;
}
