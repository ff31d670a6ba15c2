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

struct sites {
	struct latency_site *items;
	uint32_t *owners; /* index into probed_files.functions, of each */
	size_t count, capacity, owner_capacity;
};

static void sites_deinit(struct sites *s)
{
	free(s->items);
	free(s->owners);
}

/* One file being attached. */
struct attaching {
	struct probed_files *files;
	struct probed_entry *entry;
	const struct index *index;
	struct abi_runtime_process runtime;
	bool has_fibers; /* `runtime` is known */
	size_t first; /* of its functions */
	struct sites sites;
};

static void attaching_deinit(struct attaching *a)
{
	sites_deinit(&a->sites);
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

static int add_site(struct attaching *a, uint64_t address, uint32_t probe, bool is_return)
{
	struct sites *s = &a->sites;
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
	s->owners[s->count] = (uint32_t)(a->files->function_count - 1);
	s->items[s->count++] = (struct latency_site){
		.file_off = file_off, .function = probe, .is_return = is_return
	};
	return 0;
}

static int add_sites(struct attaching *a, const struct chosen_function *chosen,
	const struct index_function *function, uint32_t probe)
{
	int err = add_site(a, function->address, probe, false);

	for (uint32_t i = 0; i < function->return_count && !err; i++)
		err = add_site(a, index_function_return(a->index, chosen->number, i), probe, true);
	return err;
}

static struct abi_latency_function latency_function_of(
	const struct attaching *a, const struct index_function *function)
{
	/* A function that jumps into others could be taken for one that begins again. */
	bool jumps = function->flags & INDEX_FUNCTION_TAIL_JUMP;
	struct abi_latency_function how = { .stack_check = ABI_LATENCY_NO_STACK_CHECK };

	if (!(function->flags & INDEX_FUNCTION_FIBER))
		return how;
	how.flags = ABI_LATENCY_FIBER;
	how.go = a->runtime.go;
	if (!jumps && function->stack_check != INDEX_NO_STACK_CHECK)
		how.stack_check = function->stack_check;
	return how;
}

static int measure(struct attaching *a, const struct chosen_function *chosen,
	const struct index_function *function, struct probed_function *listed)
{
	const struct abi_latency_function how = latency_function_of(a, function);
	struct probed_files *files = a->files;
	int err;

	files->measured++;
	if (files->options.dry_run)
		return 0;
	err = latency_functions_add(files->options.latency, &how, &listed->probe);
	if (!err)
		err = map_set(&files->by_probe, listed->probe, files->function_count - 1);
	return err ? err : add_sites(a, chosen, function, listed->probe);
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

/* ---- attaching ------------------------------------------------------------------------------ */

/* A function with a site that the kernel refuses would count wrong: it is not shown. */
static void note_refused_sites(struct attaching *a)
{
	const struct latency_refused_site *refused;
	size_t count;

	refused = latency_refused_sites(a->entry->attached, &count);
	for (size_t i = 0; i < count; i++) {
		struct probed_function *f =
			&a->files->functions[a->sites.owners[refused[i].number]];

		f->state = PROBED_FUNCTION_NOT_PROBEABLE;
	}
}

static int probed_attach_sites(struct attaching *a)
{
	const struct probed_files_options *options = &a->files->options;
	int err;

	if (options->dry_run || !a->sites.count)
		return 0;
	/* What was indexed may have been overwritten since. */
	if (!options->is_unchanged(options->context, a->entry->module, a->entry->fd))
		return -ESTALE;
	err = latency_attach(options->latency, a->entry->fd, a->sites.items, a->sites.count,
		&a->entry->attached, &a->entry->step);
	if (!err)
		note_refused_sites(a);
	return err;
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
	return err ? err : probed_attach_sites(a);
}

/* Forgets the functions of a file that could not be attached. */
static void probed_attach_undo(struct attaching *a)
{
	struct probed_files *files = a->files;

	for (size_t i = a->first; i < files->function_count; i++) {
		struct probed_function *f = &files->functions[i];
		uint64_t number;

		if (f->state != PROBED_FUNCTION_MEASURED)
			continue;
		f->state = PROBED_FUNCTION_NOT_PROBEABLE;
		files->measured--;
		if (files->options.dry_run || !map_get(&files->by_probe, f->probe, &number) ||
			number != i)
			continue;
		map_remove(&files->by_probe, f->probe);
		latency_functions_remove(files->options.latency, &f->probe, 1);
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

void probed_attach(struct probed_files *files, size_t number, const struct index *index)
{
	const struct probed_files_options *options = &files->options;
	autocall(attaching_deinit) struct attaching a = {
		.files = files,
		.entry = &files->items[number],
		.index = index,
		.first = files->function_count,
	};

	a.has_fibers = options->fibers(options->context, index, &a.runtime);
	a.entry->step = "attach the probes";
	a.entry->err = probed_attach_all(&a);
	a.entry->state = PROBED_FILE_READY;
	if (!a.entry->err)
		return;
	probed_attach_undo(&a);
	a.entry->state = PROBED_FILE_NOT_ATTACHED;
	log_warn("the functions of a file are not measured",
		"path=\"%s\" step=\"%s\" functions=%zu limit=%zu error=\"%s\"", a.entry->path,
		a.entry->step, a.entry->probeable, options->max_functions,
		a.entry->err == -E2BIG ? "too many functions" : strerror(-a.entry->err));
}
