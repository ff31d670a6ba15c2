/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probed_files/probed_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/probed_files/probed_files_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/log.h"

DEFINE_AUTO(probed_files);

enum { MAX_FUNCTIONS = 1 << 20 };

/* ---- the table ------------------------------------------------------------------------------ */

int probed_files_create(const struct probed_files_options *options, struct probed_files **ret_files)
{
	autocall(auto_probed_files_destroy) struct probed_files *files = calloc(1, sizeof(*files));

	if (!files)
		return -ENOMEM;
	files->options = *options;
	map_init(&files->by_module, PROBED_FILES_MAX);
	map_init(&files->by_probe, MAX_FUNCTIONS);
	files->matches = calloc(options->wanted->count + 1, sizeof(*files->matches));
	if (!files->matches)
		return -ENOMEM;
	*ret_files = take(files);
	return 0;
}

static void probed_function_deinit(struct probed_function *function)
{
	free(function->name);
	free(function->linkage);
	free(function->inlined_into);
	free(function->inlined_file);
}

/* Nothing is attached any more: their numbers are free again. */
static void probed_files_forget_functions(struct probed_files *files)
{
	autofree uint32_t *numbers = calloc(files->function_count + 1, sizeof(*numbers));
	size_t count = 0;

	for (size_t i = 0; numbers && i < files->function_count; i++)
		if (files->functions[i].numbered)
			numbers[count++] = files->functions[i].probe;
	if (count)
		latency_functions_remove(files->options.latency, numbers, count);
}

void probed_files_destroy(struct probed_files *files)
{
	if (!files)
		return;
	if (files->options.in_background) {
		probed_files_end(files);
		probed_files_forget_functions(files);
	} else {
		probed_files_detach(files);
	}
	for (size_t i = 0; i < files->count; i++) {
		probed_background_abandon(files, &files->items[i]);
		probed_sites_deinit(&files->items[i].sites);
		free(files->items[i].path);
	}
	for (size_t i = 0; i < files->function_count; i++)
		probed_function_deinit(&files->functions[i]);
	free(files->items);
	free(files->functions);
	free(files->matches);
	map_deinit(&files->by_module);
	map_deinit(&files->by_probe);
	free(files);
}

static struct probed_entry *probed_files_find(
	const struct probed_files *files, const struct module *module)
{
	uint64_t number;

	return map_get(&files->by_module, module->number, &number) ? &files->items[number] : NULL;
}

static int probed_files_enter(struct probed_files *files, struct module *module, bool program,
	struct probed_entry **ret_entry)
{
	autofree char *path = strdup(module->path ? module->path : "");
	int err;

	if (!path)
		return -ENOMEM;
	err = array_reserve(files->items, files->capacity, files->count + 1, PROBED_FILES_MAX);
	if (!err)
		err = map_set(&files->by_module, module->number, files->count);
	if (err)
		return err;
	*ret_entry = &files->items[files->count++];
	**ret_entry = (struct probed_entry){
		.module = module,
		.path = take(path),
		.build_id = module->id.build_id,
		.program = program,
		.fd = -1,
	};
	return 0;
}

void probed_entry_close(struct probed_entry *entry)
{
	if (entry->fd >= 0)
		close(take_fd(&entry->fd));
}

/* ---- files ---------------------------------------------------------------------------------- */

static void probed_files_open(struct probed_files *files, struct probed_entry *entry,
	const struct process *p, const struct mapping *mapping)
{
	const struct probed_files_options *options = &files->options;
	int err;

	entry->pid = p->pid;
	entry->err = options->open(options->context, p, mapping, &entry->fd);
	entry->state = entry->err ? PROBED_FILE_NOT_OPENED : PROBED_FILE_WAITING;
	if (entry->err)
		return;
	/* The answer may come from within the call, and the table may grow. */
	err = options->want(options->context, p, mapping);
	if (!err)
		return;
	entry = probed_files_find(files, mapping->module);
	entry->err = err;
	entry->state = failure_is_transient(err) ? PROBED_FILE_NOT_OPENED : PROBED_FILE_NO_INDEX;
	if (failure_is_transient(err))
		probed_entry_close(entry);
}

/* A process that selects ENTRY's file has mapped it, perhaps after it executed a program. */
static void probed_entry_attach_again(struct probed_files *files, struct probed_entry *entry)
{
	int err;

	if (!entry->attached || files->options.in_background)
		return;
	err = latency_attach_again(files->options.latency, entry->attached, entry->fd);
	if (err)
		log_warn("the functions of a file are not measured any more",
			"path=\"%s\" error=\"%s\"", entry->path, strerror(-err));
}

void probed_files_mapped(
	struct probed_files *files, const struct process *p, const struct mapping *mapping)
{
	const struct probed_files_options *options = &files->options;
	struct module *module = mapping->module;
	struct probed_entry *entry;
	bool program = p->executable == module;

	if (module->kind != MODULE_FILE ||
		!choose_concerns(options->wanted, module->path ? module->path : "", program) ||
		!options->selects(options->context, p))
		return;
	entry = probed_files_find(files, module);
	if (entry && entry->state == PROBED_FILE_NO_INDEX && options->in_background) {
		(void)options->want(options->context, p, mapping);
		return;
	}
	if (entry && entry->state != PROBED_FILE_NOT_OPENED) {
		probed_entry_attach_again(files, entry);
		return;
	}
	if (!entry && probed_files_enter(files, module, program, &entry)) {
		log_warn("the functions of a file are not measured: there are too many files",
			"path=\"%s\" limit=%d", module->path ? module->path : "", PROBED_FILES_MAX);
		return;
	}
	probed_files_open(files, entry, p, mapping);
}

int probed_files_add(struct probed_files *files, struct module *module, int fd_, bool program)
{
	autoclose int fd = fd_;
	struct probed_entry *entry = probed_files_find(files, module);
	int err = 0;

	if (!entry)
		err = probed_files_enter(files, module, program, &entry);
	if (err)
		return err;
	entry->program |= program;
	if (entry->fd < 0 && entry->state <= PROBED_FILE_NOT_OPENED) {
		entry->fd = take_fd(&fd);
		entry->state = PROBED_FILE_WAITING;
	}
	return 0;
}

/* Whether ENTRY's file can be checked now; if not, it is to be opened again. */
static bool probed_entry_answers(const struct probed_files *files, struct probed_entry *entry)
{
	const struct probed_files_options *options = &files->options;
	int err = 0;

	if (!options->dry_run && entry->fd >= 0)
		err = options->check_file(options->context, entry->module, entry->fd);
	if (!failure_is_transient(err))
		return true;
	entry->err = err;
	entry->state = PROBED_FILE_NOT_OPENED;
	probed_entry_close(entry);
	return false;
}

void probed_files_index(
	struct probed_files *files, const struct module *module, const struct index *index)
{
	struct probed_entry *entry = probed_files_find(files, module);

	if (!entry || (entry->state != PROBED_FILE_WAITING && entry->state != PROBED_FILE_NO_INDEX))
		return;
	if (!index)
		entry->state = PROBED_FILE_NO_INDEX;
	else if (index_has_functions(index) && probed_entry_answers(files, entry))
		probed_attach(files, (size_t)(entry - files->items), index);
}

static void probed_entry_detach(struct probed_files *files, struct probed_entry *entry)
{
	if (files->options.in_background)
		probed_background_detach(files, entry);
	latency_detach(files->options.latency, take(entry->attached));
	probed_entry_close(entry);
}

void probed_files_check(struct probed_files *files)
{
	const struct probed_files_options *options = &files->options;

	for (size_t i = 0; i < files->count; i++) {
		struct probed_entry *entry = &files->items[i];

		if (!entry->attached || !entry->module)
			continue;
		if (options->check_file(options->context, entry->module, entry->fd) != -ESTALE) {
			probed_entry_attach_again(files, entry);
			continue;
		}
		probed_entry_detach(files, entry);
		entry->state = PROBED_FILE_CHANGED;
		log_warn("a file was written to; its functions are not measured any more",
			"path=\"%s\"", entry->path);
	}
}

void probed_files_keep(const struct probed_files *files, uint64_t now_ns)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->items[i].module)
			files->items[i].module->used_ns = now_ns;
}

void probed_files_forget(struct probed_files *files, const struct module *module)
{
	struct probed_entry *entry = probed_files_find(files, module);

	if (!entry)
		return;
	probed_entry_detach(files, entry);
	entry->module = NULL;
	map_remove(&files->by_module, module->number);
}

void probed_files_detach(struct probed_files *files)
{
	struct latency_attached *attached[PROBED_FILES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++) {
		if (files->items[i].attached)
			attached[count++] = take(files->items[i].attached);
		probed_entry_close(&files->items[i]);
	}
	if (count)
		latency_detach_all(files->options.latency, attached, count);
}

/* ---- what became of them -------------------------------------------------------------------- */

size_t probed_files_count(const struct probed_files *files)
{
	return files->count;
}

struct probed_file probed_files_at(const struct probed_files *files, size_t number)
{
	const struct probed_entry *entry = &files->items[number];

	return (struct probed_file){
		.path = entry->path,
		.build_id = entry->build_id,
		.program = entry->program,
		.state = entry->state,
		.err = entry->err,
		.step = entry->step,
		.probeable = entry->probeable,
		.excluded = entry->excluded,
		.vendored = entry->vendored,
		.sites = entry->site_count,
	};
}

size_t probed_files_waiting(const struct probed_files *files)
{
	size_t waiting = 0;

	for (size_t i = 0; i < files->count; i++)
		waiting += files->items[i].state == PROBED_FILE_WAITING;
	return waiting;
}

size_t probed_files_matches(const struct probed_files *files, size_t pattern)
{
	return files->matches[pattern];
}

size_t probed_functions_count(const struct probed_files *files)
{
	return files->function_count;
}

const struct probed_function *probed_functions_at(const struct probed_files *files, size_t number)
{
	return &files->functions[number];
}

const struct probed_function *probed_functions_of_probe(
	const struct probed_files *files, uint32_t probe)
{
	uint64_t number;

	return map_get(&files->by_probe, probe, &number) ? &files->functions[number] : NULL;
}
