/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/unwind/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/unwind/ranges.h"
#include "agent/sampler/unwind/unwind_internal.h"
#include "base/intern.h"

struct known_file {
	struct known_file *next; /* another copy of the module's file */
	struct abi_file file;
	const struct module *module;
	struct range_run run;
	enum unwind_module state; /* of the module, when this was written; initially WAITING */
};

void files_init(struct files *f)
{
	map_init(&f->known, ABI_UNWIND_FILES);
	map_init(&f->by_module, ABI_UNWIND_FILES);
}

void files_deinit(struct files *f)
{
	size_t iterator = 0;
	uint64_t hash, known;

	while (map_next(&f->known, &iterator, &hash, &known))
		free((void *)(uintptr_t)known);
	map_deinit(&f->known);
	map_deinit(&f->by_module);
}

/*
 * Invalidates what CPUs have cached of files. They cache nothing of unknown or waiting files, so
 * adding one needs no call.
 */
static void tell_change(struct unwind *u)
{
	if (unwind_by_file(u))
		u->options.target.set_files_epoch(u->options.target.context, ++u->files.tick);
}

static enum unwind_module state_of(const struct unwind *u, const struct module *module)
{
	const struct index *index;

	return u->options.module(u->options.context, module, &index);
}

/* Writes the ranges of the whole file, by file offset. */
static int files_write_file(struct unwind *u, struct known_file *known)
{
	const struct unwind_target *target = &u->options.target;
	const struct mapping whole = {
		.end = INT64_MAX,
		.module = (struct module *)known->module,
	};
	struct abi_unwind_process entry = { 0 };
	struct range_run run;
	struct ranges r;
	int err;

	ranges_begin(&r, u);
	ranges_add(&r, &whole);
	err = ranges_write(&r, &run);
	if (err)
		return err;
	entry.first_range = run.first;
	entry.range_count = run.count;
	err = target->set_file(target->context, &known->file, &entry);
	if (err) {
		ranges_give(u, &run);
		return err;
	}
	if (known->state != UNWIND_MODULE_WAITING)
		tell_change(u);
	ranges_give(u, &known->run);
	known->run = run;
	known->state = state_of(u, known->module);
	return 0;
}

static void remove_file(struct unwind *u, struct known_file *known)
{
	u->options.target.remove_file(u->options.target.context, &known->file);
	map_remove(&u->files.known, hash_bytes(&known->file, sizeof(known->file)));
	ranges_give(u, &known->run);
	free(known);
}

/* Adds KNOWN to the maps. */
static int files_put(struct unwind *u, struct known_file *known)
{
	struct files *f = &u->files;
	uint64_t hash = hash_bytes(&known->file, sizeof(known->file));
	int err;

	known->next = map_get_pointer(&f->by_module, known->module->number);
	err = map_set_pointer(&f->known, hash, known);
	if (!err)
		err = map_set_pointer(&f->by_module, known->module->number, known);
	if (err)
		map_remove(&f->known, hash);
	return err;
}

int files_learn(struct unwind *u, const struct abi_file *file, const struct module *module)
{
	struct known_file *known =
		map_get_pointer(&u->files.known, hash_bytes(file, sizeof(*file)));
	int err;

	/* Learned in the meantime (or, very unlikely, a hash collision). */
	if (known)
		return 0;
	known = calloc(1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	known->file = *file;
	known->module = module;
	err = files_write_file(u, known);
	if (err) {
		free(known);
		return err;
	}
	err = files_put(u, known);
	if (err)
		remove_file(u, known);
	return err;
}

void files_modules_changed(struct unwind *u)
{
	size_t iterator = 0;
	uint64_t hash, pointer;

	while (map_next(&u->files.known, &iterator, &hash, &pointer)) {
		struct known_file *known = (void *)(uintptr_t)pointer;

		if (known->state != UNWIND_MODULE_READY &&
			known->state != state_of(u, known->module))
			(void)files_write_file(u, known);
	}
}

void files_forget_module(struct unwind *u, const struct module *module)
{
	struct known_file *known = map_get_pointer(&u->files.by_module, module->number);

	if (!known)
		return;
	map_remove(&u->files.by_module, module->number);
	while (known) {
		struct known_file *next = known->next;

		remove_file(u, known);
		known = next;
	}
	tell_change(u);
}

void files_forget_all(struct unwind *u)
{
	size_t iterator = 0;
	uint64_t hash, known;

	map_clear(&u->files.by_module);
	while (map_next(&u->files.known, &iterator, &hash, &known)) {
		remove_file(u, (void *)(uintptr_t)known);
		iterator = 0;
	}
	tell_change(u);
}
