/* SPDX-License-Identifier: Apache-2.0 */
/* From a file's index to its attached probes: functions are chosen, numbered and probed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/probed_files/probed_files_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"

enum { MAX_SITES = 1 << 22, MAX_LISTED = 1 << 20 };

/* The owner of a site that belongs to no listed function. */
static const uint32_t UNLISTED = UINT32_MAX;

void probed_sites_deinit(struct probed_sites *s)
{
	free(s->items);
	free(s->owners);
	*s = (struct probed_sites){ 0 };
}

/* One file being attached. */
struct attaching {
	struct probed_files *files;
	struct probed_entry *entry;
	const struct index *index;
	struct abi_runtime_process runtime;
	bool has_fibers; /* `runtime` is known */
	struct probed_sites sites;
};

static void attaching_deinit(struct attaching *a)
{
	probed_sites_deinit(&a->sites);
}

/* The file offset of ELF address ADDRESS. */
static bool file_off_of(const struct index *index, uint64_t address, uint64_t *ret_off)
{
	for (size_t i = 0; i < index_segment_count(index); i++) {
		struct index_segment s = index_segment(index, i);

		if (address - s.address >= s.size)
			continue;
		*ret_off = address - s.address + s.file_off;
		return true;
	}
	return false;
}

/* ---- what is listed ------------------------------------------------------------------------- */

/* Adds a function with copies of NAME and LINKAGE. */
static int probed_attach_list(struct attaching *a, const char *name, const char *linkage,
	struct probed_function **ret_function)
{
	struct probed_files *files = a->files;
	autofree char *own_name = strdup(name), *own_linkage = strdup(linkage);
	int err;

	if (!own_name || !own_linkage)
		return -ENOMEM;
	err = array_reserve(
		files->functions, files->function_capacity, files->function_count + 1, MAX_LISTED);
	if (err)
		return err;
	*ret_function = &files->functions[files->function_count++];
	**ret_function = (struct probed_function){
		.file = (size_t)(a->entry - files->items),
		.name = take(own_name),
		.linkage = take(own_linkage),
	};
	return 0;
}

static int list_inlined(struct attaching *a, const struct refused_function *refused)
{
	struct index_inlined call;
	struct probed_function *listed;
	int err;

	if (!index_inlined(a->index, refused->number, &call))
		return 0;
	err = probed_attach_list(a, call.name, call.linkage, &listed);
	if (err)
		return err;
	listed->state = PROBED_FUNCTION_REFUSED;
	listed->refusal = refused->refusal;
	listed->inlined_calls = refused->calls;
	listed->inlined_line = call.line;
	listed->inlined_into = strdup(call.caller);
	listed->inlined_file = strdup(call.file);
	return listed->inlined_into && listed->inlined_file ? 0 : -ENOMEM;
}

static int list_refused(struct attaching *a, const struct refused_function *refused)
{
	struct index_function function;
	struct probed_function *listed;
	int err;

	if (refused->refusal == FUNCTION_INLINED)
		return list_inlined(a, refused);
	if (!index_function(a->index, refused->number, &function))
		return 0;
	err = probed_attach_list(a, function.name, function.linkage, &listed);
	if (err)
		return err;
	listed->state = PROBED_FUNCTION_REFUSED;
	listed->refusal = refused->refusal;
	listed->address = function.address;
	return 0;
}

/* ---- what is probed ------------------------------------------------------------------------- */

/* Adds SITE, which is at ADDRESS. */
static int add_site(
	struct attaching *a, uint64_t address, const struct latency_site *site, uint32_t owner)
{
	struct probed_sites *s = &a->sites;
	uint64_t file_off;
	int err;

	/* A forged index. */
	if (!file_off_of(a->index, address, &file_off))
		return -EBADMSG;
	err = array_reserve(s->items, s->capacity, s->count + 1, MAX_SITES);
	if (!err)
		err = array_reserve(s->owners, s->owner_capacity, s->count + 1, MAX_SITES);
	if (err)
		return err;
	s->owners[s->count] = owner;
	s->items[s->count] = *site;
	s->items[s->count++].file_off = file_off;
	return 0;
}

static int add_sites(struct attaching *a, const struct chosen_function *chosen,
	const struct index_function *function, const struct probed_function *listed)
{
	const struct latency_site entry = { .function = listed->probe };
	const struct latency_site again = { .function = listed->probe, .is_again = true };
	const struct latency_site left = { .function = listed->probe, .is_return = true };
	uint32_t owner = (uint32_t)(a->files->function_count - 1);
	int err = add_site(a, function->address, &entry, owner);

	if (!err && listed->restarts)
		err = add_site(a, function->address + function->restart_off, &again, owner);
	for (uint32_t i = 0; i < function->return_count && !err; i++)
		err = add_site(a, index_function_return(a->index, chosen->number, i), &left, owner);
	return err;
}

static bool probed_attach_is_root(const struct attaching *a, const struct index_function *function)
{
	const struct function_patterns *roots = a->files->options.roots;
	struct name_forms forms;

	name_forms_of(function->name, function->linkage, &forms);
	for (size_t i = 0; roots && i < roots->count; i++) {
		const struct function_pattern *root = &roots->items[i];
		bool concerns = root->binary ? function_pattern_names_file(root, a->entry->path)
					     : a->entry->program;

		if (concerns && function_pattern_match(root, &forms) != FUNCTION_DIFFERS)
			return true;
	}
	return false;
}

static struct abi_latency_function latency_function_of(
	const struct attaching *a, const struct index_function *function)
{
	/* A function that jumps into others could be taken for one that begins again. */
	bool jumps = function->flags & INDEX_FUNCTION_TAIL_JUMP;
	struct abi_latency_function how = {
		.stack_check = ABI_LATENCY_NO_STACK_CHECK,
		.by = a->files->options.by,
		.set = a->files->options.set,
	};

	if (probed_attach_is_root(a, function))
		how.flags = ABI_LATENCY_ROOT;
	if (!(function->flags & INDEX_FUNCTION_FIBER))
		return how;
	how.flags |= ABI_LATENCY_FIBER;
	how.go = a->runtime.go;
	if (jumps || function->stack_check == INDEX_NO_STACK_CHECK)
		return how;
	how.stack_check = function->stack_check;
	how.restart_off = function->restart_off;
	if (function->restart_off)
		how.flags |= ABI_LATENCY_AGAIN_SITE;
	return how;
}

static int measure(struct attaching *a, const struct chosen_function *chosen,
	const struct index_function *function, struct probed_function *listed)
{
	const struct abi_latency_function how = latency_function_of(a, function);
	struct probed_files *files = a->files;
	int err;

	files->measured++;
	listed->restarts = how.flags & ABI_LATENCY_AGAIN_SITE;
	if (files->options.dry_run)
		return 0;
	err = latency_functions_add(files->options.latency, &how, &listed->probe);
	listed->numbered = !err;
	if (!err)
		err = map_set(&files->by_probe, listed->probe, files->function_count - 1);
	return err ? err : add_sites(a, chosen, function, listed);
}

static int add_chosen(struct attaching *a, const struct chosen_function *chosen)
{
	struct index_function function;
	struct probed_function *listed;
	int err;

	if (!index_function(a->index, chosen->number, &function))
		return -EBADMSG;
	err = probed_attach_list(a, function.name, function.linkage, &listed);
	if (err)
		return err;
	listed->address = function.address;
	listed->return_count = function.return_count;
	listed->aliases = chosen->aliases;
	listed->jumps_out = chosen->jumps_out;
	if (function.flags & INDEX_FUNCTION_FIBER && !a->has_fibers) {
		listed->state = PROBED_FUNCTION_UNKNOWN_FIBERS;
		return 0;
	}
	return measure(a, chosen, &function, listed);
}

/* Probes FUNCTION, at whose entry a fiber ends. Without it that is noticed later: no failure. */
static int add_fiber_end(struct attaching *a, const struct index_function *function)
{
	const struct abi_latency_function how = {
		.flags = ABI_LATENCY_FIBER | ABI_LATENCY_FIBER_END,
		.stack_check = ABI_LATENCY_NO_STACK_CHECK,
		.go = a->runtime.go,
	};
	uint32_t number;
	int err = latency_functions_add(a->files->options.latency, &how, &number);

	if (err)
		return err == -E2BIG ? 0 : err;
	return add_site(
		a, function->address, &(struct latency_site){ .function = number }, UNLISTED);
}

/* To be called once the functions are there that are traced. */
static int add_fiber_ends(struct attaching *a)
{
	const struct probed_files_options *options = &a->files->options;
	size_t count = index_function_count(a->index);
	struct index_function function;

	if (!options->ends_fiber || options->dry_run || !a->has_fibers || !a->sites.count)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (index_function(a->index, i, &function) &&
			function.flags & INDEX_FUNCTION_FIBER &&
			options->ends_fiber(function.linkage))
			return add_fiber_end(a, &function);
	return 0;
}

/* ---- attaching ------------------------------------------------------------------------------ */

/* A function with a site that the kernel refuses would count wrong: it is not shown. */
static void note_refused_sites(struct probed_files *files, struct probed_entry *entry)
{
	const struct latency_refused_site *refused;
	size_t count;

	refused = latency_refused_sites(entry->attached, &count);
	for (size_t i = 0; i < count; i++) {
		uint32_t owner = entry->sites.owners[refused[i].number];

		if (owner != UNLISTED)
			files->functions[owner].state = PROBED_FUNCTION_NOT_PROBEABLE;
	}
	entry->site_count = entry->sites.count - MIN(count, entry->sites.count);
}

static int probed_attach_sites(struct attaching *a)
{
	const struct probed_files_options *options = &a->files->options;
	struct probed_entry *entry = a->entry;
	struct probed_chosen chosen;
	int err;

	if (options->dry_run || !a->sites.count)
		return 0;
	/* What was indexed may have been overwritten since. */
	err = options->check_file(options->context, entry->module, entry->fd);
	if (err)
		return err;
	chosen = (struct probed_chosen){
		.path = entry->path,
		.fd = entry->fd,
		.id = &entry->module->id,
		.pid = entry->pid,
		.root_fd = -1,
	};
	if (options->chosen)
		options->chosen(options->context, &chosen,
			&a->files->functions[entry->first_function],
			a->files->function_count - entry->first_function);
	entry->sites = a->sites;
	a->sites = (struct probed_sites){ 0 };
	if (options->in_background)
		return 0;
	return latency_attach(options->latency, entry->fd, entry->sites.items, entry->sites.count,
		&entry->attached, &entry->step);
}

static int probed_attach_choice(struct attaching *a, const struct choice *choice)
{
	int err = 0;

	a->entry->probeable = choice->probeable;
	a->entry->excluded = choice->excluded;
	a->entry->vendored = choice->vendored;
	for (size_t i = 0; i < a->files->options.wanted->count; i++)
		a->files->matches[i] += choice->matches[i];
	for (size_t i = 0; i < choice->refused_count && !err; i++)
		err = list_refused(a, &choice->refused[i]);
	if (err)
		return err;
	if (choice->probeable > choice->chosen_count) {
		a->entry->step = "choose the functions";
		return -E2BIG;
	}
	for (size_t i = 0; i < choice->chosen_count && !err; i++)
		err = add_chosen(a, &choice->chosen[i]);
	if (!err)
		err = add_fiber_ends(a);
	return err ? err : probed_attach_sites(a);
}

/* In the background, a process that was told to die may attach the sites of F yet. */
static void probed_attach_unnumber(struct probed_files *files, struct probed_function *f)
{
	if (files->options.in_background) {
		latency_functions_end(files->options.latency, &f->probe, 1);
		return;
	}
	f->numbered = false;
	map_remove(&files->by_probe, f->probe);
	latency_functions_remove(files->options.latency, &f->probe, 1);
}

/* Forgets the functions of a file that could not be attached. */
static void probed_attach_undo(struct probed_files *files, const struct probed_entry *entry)
{
	for (size_t i = entry->first_function; i < entry->function_end; i++) {
		struct probed_function *f = &files->functions[i];

		if (f->state != PROBED_FUNCTION_MEASURED)
			continue;
		f->state = PROBED_FUNCTION_NOT_PROBEABLE;
		files->measured--;
		if (f->numbered)
			probed_attach_unnumber(files, f);
	}
}

static int probed_attach_all(struct attaching *a)
{
	const struct probed_files_options *options = &a->files->options;
	const struct choose_options how = {
		.wanted = options->wanted,
		.unwanted = options->unwanted,
		.path = a->entry->path,
		.is_program = a->entry->program,
		.exclude_vendor = options->exclude_vendor,
		.find_inlined = options->dry_run,
		.limit = options->max_functions - a->files->measured,
	};
	autocall(choice_deinit) struct choice choice = { 0 };
	int err = choose_functions(a->index, &how, &choice);

	return err ? err : probed_attach_choice(a, &choice);
}

void probed_attach_finish(struct probed_files *files, struct probed_entry *entry, int err)
{
	entry->err = err;
	entry->state = err ? PROBED_FILE_NOT_ATTACHED : PROBED_FILE_READY;
	if (entry->attached)
		note_refused_sites(files, entry);
	probed_sites_deinit(&entry->sites);
	if (!err)
		return;
	probed_attach_undo(files, entry);
	if (err == -EINTR)
		return;
	log_warn("the functions of a file are not measured",
		"path=\"%s\" step=\"%s\" functions=%zu limit=%zu error=\"%s\"", entry->path,
		entry->step, entry->probeable, files->options.max_functions,
		err == -E2BIG ? "too many functions" : strerror(-err));
}

void probed_attach(struct probed_files *files, size_t number, const struct index *index)
{
	const struct probed_files_options *options = &files->options;
	struct probed_entry *entry = &files->items[number];
	autocall(attaching_deinit) struct attaching a = {
		.files = files,
		.entry = entry,
		.index = index,
	};
	int err;

	a.has_fibers = options->fibers(options->context, index, &a.runtime);
	entry->step = "attach the probes";
	entry->first_function = files->function_count;
	err = probed_attach_all(&a);
	entry->function_end = files->function_count;
	if (!err && options->in_background && entry->sites.count)
		probed_background_attach(files, entry);
	else
		probed_attach_finish(files, entry, err);
}
