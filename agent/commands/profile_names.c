/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/profile_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/utf8.h"
#include "pprof/pprof.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum {
	MAX_FUNCTIONS = 4 << 20,
	MAX_STRINGS = 8 << 20,
	MAX_LINES = 16 << 20, /* lines added, over all locations */
	MAX_STRING_BYTES = 256 << 20,
	MAX_NAME_BYTES = 64 << 10, /* longer names are cut */
};

/* Interned as bytes, so it must have no padding. */
struct new_function {
	uint32_t name, system_name, file; /* numbers in adding.strings */
	uint32_t start_line;
};

struct adding {
	const struct profile_names_options *options;
	struct pprof_read *profile;
	MESSAGE(Profile) * message;
	struct intern strings; /* new strings; number 0 is string 0 of the message */
	struct intern functions; /* struct new_function; 0 is none */
	uint64_t last_id; /* the last id given to a new function */
	uint64_t *function_ids; /* by number in `functions` */
	size_t function_id_capacity;
	size_t old_strings;
	size_t lines;
	bool *touched; /* by index of the mapping */
};

static void adding_deinit(struct adding *a)
{
	intern_deinit(&a->strings);
	intern_deinit(&a->functions);
	free(a->function_ids);
	free(a->touched);
}

/* Freed with the message, by an allocator that calls free(). */
static void *new_message(size_t size)
{
	return calloc(1, size);
}

static void free_line(MESSAGE(Line) * line)
{
	perftools__profiles__line__free_unpacked(line, NULL);
}

/* ---- strings and functions ------------------------------------------------------------------ */

/* Converts a number in `strings` to a string number of the message. */
static int64_t string_in_message(const struct adding *a, uint32_t number)
{
	return number ? (int64_t)(a->old_strings + number - 1) : 0;
}

static int profile_names_add_string(struct adding *a, const char *text, uint32_t *ret_number)
{
	size_t size = strnlen(text, MAX_NAME_BYTES);

	return intern_bytes(&a->strings, text, size, ret_number);
}

static uint64_t next_function_id(struct adding *a)
{
	uint64_t index;

	do {
		a->last_id++;
	} while (pprof_ids_get(&a->profile->functions, a->last_id, &index));
	return a->last_id;
}

static int profile_names_add_function(
	struct adding *a, const struct index_frame *frame, uint64_t *ret_id)
{
	const char *name = a->options->linkage_names ? frame->linkage : frame->name;
	struct new_function function = { .start_line = frame->start_line };
	size_t known = a->functions.count;
	uint32_t number;
	int err = profile_names_add_string(a, name, &function.name);

	if (!err)
		err = profile_names_add_string(a, frame->linkage, &function.system_name);
	if (!err)
		err = profile_names_add_string(a, frame->file, &function.file);
	if (!err)
		err = intern_bytes(&a->functions, &function, sizeof(function), &number);
	if (!err)
		err = array_reserve(
			a->function_ids, a->function_id_capacity, number + 1, MAX_FUNCTIONS + 1);
	if (err)
		return err;
	if (number == known)
		a->function_ids[number] = next_function_id(a);
	*ret_id = a->function_ids[number];
	return 0;
}

/* ---- locations ------------------------------------------------------------------------------ */

static const MESSAGE(Function) * function_of(const struct adding *a, const MESSAGE(Line) * line)
{
	uint64_t index;

	if (!pprof_ids_get(&a->profile->functions, line->function_id, &index))
		return NULL;
	return a->message->function[index];
}

static bool has_text(const struct adding *a, int64_t string)
{
	return *pprof_read_text(a->profile, string);
}

static bool profile_names_has_name(const struct adding *a, const MESSAGE(Function) * function)
{
	if (pprof_is_nameless(pprof_read_text(a->profile, function->name),
		    pprof_read_text(a->profile, function->system_name)))
		return false;
	return has_text(a, function->name) || has_text(a, function->system_name);
}

static bool profile_names_is_named(const struct adding *a, const MESSAGE(Location) * location)
{
	for (size_t i = 0; i < location->n_line; i++) {
		const MESSAGE(Function) *function = function_of(a, location->line[i]);

		if (function && profile_names_has_name(a, function))
			return true;
	}
	return false;
}

static void remove_lines(MESSAGE(Location) * location)
{
	for (size_t i = 0; i < location->n_line; i++)
		free_line(location->line[i]);
	free(location->line);
	location->line = NULL;
	location->n_line = 0;
}

static int profile_names_add_line(
	struct adding *a, MESSAGE(Location) * location, const struct index_frame *frame)
{
	MESSAGE(Line) * line;
	uint64_t function;
	int err;

	if (++a->lines > MAX_LINES)
		return -E2BIG;
	err = profile_names_add_function(a, frame, &function);
	if (err)
		return err;
	line = new_message(sizeof(*line));
	if (!line)
		return -ENOMEM;
	perftools__profiles__line__init(line);
	line->function_id = function;
	line->line = frame->line;
	line->column = frame->column;
	location->line[location->n_line++] = line;
	return 0;
}

static int name_location(
	struct adding *a, MESSAGE(Location) * location, struct index_frame *frames, size_t count)
{
	int err = 0;

	/* Without inlining: the outermost function, at the line of the innermost frame. */
	if (a->options->no_inlines && count > 1) {
		frames[count - 1].file = frames[0].file;
		frames[count - 1].line = frames[0].line;
		frames[count - 1].column = frames[0].column;
		frames += count - 1;
		count = 1;
	}
	remove_lines(location);
	location->line = calloc(count, sizeof(MESSAGE(Line) *));
	if (!location->line)
		return -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		err = profile_names_add_line(a, location, &frames[i]);
	return err;
}

static int profile_names_add_names(struct adding *a, struct profile_names_counts *counts)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	int err = 0;

	for (size_t i = 0; i < a->message->n_location && !err; i++) {
		MESSAGE(Location) *location = a->message->location[i];
		uint64_t mapping;
		size_t count;

		if (profile_names_is_named(a, location))
			continue;
		counts->nameless++;
		if (!pprof_ids_get(&a->profile->mappings, location->mapping_id, &mapping))
			continue;
		count = a->options->look_up(
			a->options->context, mapping, location->address, frames, INDEX_MAX_FRAMES);
		if (!count)
			continue;
		err = name_location(a, location, frames, count);
		counts->named++;
		a->touched[mapping] = true;
	}
	return err;
}

/* ---- into the message ----------------------------------------------------------------------- */

static char *profile_names_clean_copy(const struct intern *strings, uint32_t number)
{
	size_t size = intern_size(strings, number);
	char *copy = strndup(intern_text(strings, number), size);

	if (copy)
		utf8_clean(copy, strlen(copy));
	return copy;
}

static int append_strings(struct adding *a)
{
	MESSAGE(Profile) *message = a->message;
	size_t count = a->strings.count - 1;
	char **table = realloc(message->string_table,
		(message->n_string_table + count) * sizeof(*message->string_table));

	if (!table)
		return -ENOMEM;
	message->string_table = table;
	for (uint32_t i = 1; i <= count; i++) {
		char *copy = profile_names_clean_copy(&a->strings, i);

		if (!copy)
			return -ENOMEM;
		table[message->n_string_table++] = copy;
	}
	return 0;
}

static int append_functions(struct adding *a)
{
	MESSAGE(Profile) *message = a->message;
	size_t count = a->functions.count - 1;
	MESSAGE(Function) **table = realloc(
		message->function, (message->n_function + count + 1) * sizeof(*message->function));

	if (!table)
		return -ENOMEM;
	message->function = table;
	for (uint32_t i = 1; i <= count; i++) {
		const struct new_function *new = (const void *)intern_text(&a->functions, i);
		MESSAGE(Function) *function = new_message(sizeof(*function));

		if (!function)
			return -ENOMEM;
		perftools__profiles__function__init(function);
		function->id = a->function_ids[i];
		function->name = string_in_message(a, new->name);
		function->system_name = string_in_message(a, new->system_name);
		function->filename = string_in_message(a, new->file);
		function->start_line = new->start_line;
		table[message->n_function++] = function;
	}
	return 0;
}

/* ---- what a mapping may claim --------------------------------------------------------------- */

struct lacks {
	bool function, file, line;
};

static int index_new_functions(struct adding *a, size_t first)
{
	int err = 0;

	for (size_t i = first; i < a->message->n_function && !err; i++)
		err = map_set(&a->profile->functions.others, a->message->function[i]->id, i);
	return err;
}

static void note_lacks(
	const struct adding *a, const MESSAGE(Location) * location, struct lacks *lacks)
{
	lacks->function |= !location->n_line;
	lacks->file |= !location->n_line;
	lacks->line |= !location->n_line;
	for (size_t i = 0; i < location->n_line; i++) {
		const MESSAGE(Function) *function = function_of(a, location->line[i]);

		lacks->function |= !function || !has_text(a, function->name) ||
				   !profile_names_has_name(a, function);
		lacks->file |= !function || !has_text(a, function->filename);
		lacks->line |= location->line[i]->line <= 0;
	}
}

/* Sets has_* flags, clears none: a set flag is a claim of the profile's producer. */
static int set_flags(struct adding *a)
{
	autofree struct lacks *lacks = calloc(a->message->n_mapping + 1, sizeof(*lacks));
	uint64_t number;

	if (!lacks)
		return -ENOMEM;
	for (size_t i = 0; i < a->message->n_location; i++) {
		const MESSAGE(Location) *location = a->message->location[i];

		if (pprof_ids_get(&a->profile->mappings, location->mapping_id, &number))
			note_lacks(a, location, &lacks[number]);
	}
	for (size_t i = 0; i < a->message->n_mapping; i++) {
		MESSAGE(Mapping) *mapping = a->message->mapping[i];

		if (!a->touched[i])
			continue;
		mapping->has_functions |= !lacks[i].function;
		mapping->has_filenames |= !lacks[i].file;
		mapping->has_line_numbers |= !lacks[i].line;
		mapping->has_inline_frames |=
			!lacks[i].function && !lacks[i].line && !a->options->no_inlines;
	}
	return 0;
}

static int profile_names_run(struct adding *a, struct profile_names_counts *counts)
{
	size_t old_functions = a->message->n_function;
	int err;

	a->touched = calloc(a->message->n_mapping + 1, sizeof(*a->touched));
	if (!a->touched)
		return -ENOMEM;
	err = intern_init(&a->strings, MAX_STRINGS, MAX_STRING_BYTES);
	if (!err)
		err = intern_init(&a->functions, MAX_FUNCTIONS,
			(size_t)MAX_FUNCTIONS * 2 * sizeof(struct new_function));
	if (!err)
		err = profile_names_add_names(a, counts);
	if (!err)
		err = append_strings(a);
	if (!err)
		err = append_functions(a);
	if (!err)
		err = index_new_functions(a, old_functions);
	return err ? err : set_flags(a);
}

int profile_names_add(struct pprof_read *profile, const struct profile_names_options *options,
	struct profile_names_counts *ret_counts)
{
	autocall(adding_deinit) struct adding a = {
		.options = options,
		.profile = profile,
		.message = profile->message,
		.old_strings = profile->message->n_string_table,
	};
	struct profile_names_counts counts = { 0 };
	int err = profile_names_run(&a, &counts);

	if (!err)
		*ret_counts = counts;
	return err;
}
