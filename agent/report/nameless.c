/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/nameless.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/stacks.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/utf8.h"

enum {
	MAX_FRAMES = 1 << 24,
	MAX_PROGRAMS = 1 << 16,
	MAX_TEXTS = 1 << 20,
	MAX_TEXT_BYTES = 64 << 20,
	MAX_PAIRS = 1 << 20,
	SHARE_OF_PROGRAM = 20, /* a twentieth */
	SHARE_OF_ALL = 100,
};

DEFINE_AUTO(stacks);

/* What a frame is, after the reasons of enum nameless_why. */
enum { FRAME_FINE = NAMELESS_REASONS };

struct nameless_frame {
	uint8_t what;
	uint32_t file; /* number in `texts`; 0 = none */
};

/* What of a program most of the samples have. */
struct most {
	uint32_t value;
	uint64_t count;
};

struct program {
	uint64_t total, count, by_why[NAMELESS_REASONS];
	struct most file, process;
	uint32_t name; /* in `texts` */
};

struct nameless {
	const struct report_sources *sources;
	struct intern texts; /* names of programs and of files */
	struct nameless_frame *frames;
	size_t frame_count, frame_capacity;
	struct intern names; /* of programs: number N is program N - 1 */
	struct program *programs;
	size_t program_count, program_capacity;
	struct map in_file, in_process; /* program << 32 | file or process → samples */
	uint64_t samples; /* with a user stack */
};

static int nameless_init(struct nameless *n, const struct report_sources *sources)
{
	int err;

	n->sources = sources;
	map_init(&n->in_file, MAX_PAIRS);
	map_init(&n->in_process, MAX_PAIRS);
	err = intern_init(&n->texts, MAX_TEXTS, MAX_TEXT_BYTES);
	return err ? err : intern_init(&n->names, MAX_PROGRAMS, MAX_TEXT_BYTES);
}

static void nameless_deinit(struct nameless *n)
{
	intern_deinit(&n->texts);
	intern_deinit(&n->names);
	map_deinit(&n->in_file);
	map_deinit(&n->in_process);
	free(n->frames);
	free(n->programs);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static uint8_t nameless_what(const struct symbolized *frame)
{
	switch (frame->outcome) {
	case SYMBOLIZE_NO_MAPPING:
		return NAMELESS_NOWHERE;
	case SYMBOLIZE_NO_INDEX:
		return NAMELESS_NO_INDEX;
	case SYMBOLIZE_NO_SYMBOL:
	case SYMBOLIZE_UNREAD:
		if (frame->mapping && frame->mapping->is_file)
			return NAMELESS_STRIPPED;
		return frame->mapping && !strcmp(frame->mapping->file, "[anon]") ? NAMELESS_JIT
										 : FRAME_FINE;
	default:
		return FRAME_FINE;
	}
}

static int nameless_add_frame(void *context, const struct symbolized *frame, uint32_t *ret_id)
{
	struct nameless *n = context;
	struct nameless_frame *new;
	const char *file = frame->mapping && frame->mapping->is_file ? frame->mapping->file : "";
	int err = array_reserve(n->frames, n->frame_capacity, n->frame_count + 1, MAX_FRAMES);

	if (err)
		return err;
	new = &n->frames[n->frame_count];
	*new = (struct nameless_frame){ .what = nameless_what(frame) };
	if (*file && new->what < NAMELESS_REASONS)
		err = intern_bytes(&n->texts, file, strlen(file) + 1, &new->file);
	if (!err)
		*ret_id = (uint32_t)n->frame_count++;
	return err;
}

/* ---- samples --------------------------------------------------------------------------------- */

static const char *program_name(const struct process_facts *p, const char *comm)
{
	const char *slash = p ? strrchr(p->program_path, '/') : NULL;

	if (slash && slash[1])
		return slash + 1;
	if (p && *p->comm)
		return p->comm;
	return *comm ? comm : "??";
}

static int program_of(
	struct nameless *n, const struct profile_sample *sample, struct program **ret_program)
{
	const struct process_facts *p =
		window_processes_find(n->sources->processes, sample->process);
	const char *name = program_name(p, sample->comm);
	size_t known = n->program_count;
	uint32_t number;
	int err = array_reserve(n->programs, n->program_capacity, known + 1, MAX_PROGRAMS);

	if (!err)
		err = intern_bytes(&n->names, name, strlen(name) + 1, &number);
	if (err)
		return err;
	if (number > known) {
		n->programs[known] = (struct program){ 0 };
		err = intern_bytes(&n->texts, name, strlen(name) + 1, &n->programs[known].name);
		if (err)
			return err;
		n->program_count++;
	}
	*ret_program = &n->programs[number - 1];
	return 0;
}

static int add_to_most(
	struct map *counts, struct most *most, size_t program, uint32_t value, uint64_t count)
{
	uint64_t key = (uint64_t)program << 32 | value, sum = 0;
	int err;

	map_get(counts, key, &sum);
	sum += count;
	err = map_set(counts, key, sum);
	if (!err && sum > most->count)
		*most = (struct most){ value, sum };
	return err;
}

static int add_nameless(struct nameless *n, struct program *program,
	const struct nameless_frame *frame, const struct profile_sample *sample)
{
	size_t number = (size_t)(program - n->programs);
	int err;

	program->count += sample->count;
	program->by_why[frame->what] += sample->count;
	err = add_to_most(
		&n->in_process, &program->process, number, sample->process, sample->count);
	if (err || !frame->file)
		return err;
	return add_to_most(&n->in_file, &program->file, number, frame->file, sample->count);
}

static int nameless_add_sample(
	struct nameless *n, struct stacks *stacks, const struct profile_sample *sample)
{
	const struct profile_stack stack = profile_stack_at(n->sources->profile, sample->stack);
	const struct nameless_frame *frame;
	struct program *program;
	uint32_t id;
	int err;

	if (sample->type != SAMPLE_TYPE_TICKS || stack.frame_count <= stack.kernel_count)
		return 0;
	/* Only the innermost frame of the user stack counts. */
	err = stacks_add_frame(stacks, sample->process, &stack.frames[stack.kernel_count], &id);
	if (err)
		return err;
	frame = &n->frames[id];
	err = program_of(n, sample, &program);
	if (err)
		return err;
	n->samples += sample->count;
	program->total += sample->count;
	return frame->what < NAMELESS_REASONS ? add_nameless(n, program, frame, sample) : 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

static enum nameless_why main_reason(const struct program *p)
{
	enum nameless_why most = 0;

	for (enum nameless_why why = 1; why < NAMELESS_REASONS; why++) {
		if (p->by_why[why] > p->by_why[most])
			most = why;
	}
	return most;
}

/*
 * Some samples of any program are in no mapping where the kernel's records were lost; most of a
 * program's are so only if its code is in no file.
 */
static bool is_worth_telling(const struct nameless *n, const struct program *p)
{
	if (main_reason(p) == NAMELESS_NOWHERE && p->count * 2 < p->total)
		return false;
	return p->count && p->count * SHARE_OF_PROGRAM >= p->total &&
	       p->count * SHARE_OF_ALL >= n->samples;
}

static int more_nameless(const void *a, const void *b)
{
	const struct program *x = a, *y = b;

	return (y->count > x->count) - (y->count < x->count);
}

static char *nameless_text(const struct nameless *n, uint32_t number)
{
	char *copy = strdup(number ? (const char *)intern_text(&n->texts, number) : "");

	if (copy)
		utf8_clean(copy, strlen(copy));
	return copy;
}

static int make_row(
	const struct nameless *n, const struct program *p, struct report_nameless *ret_row)
{
	const struct process_facts *facts =
		window_processes_find(n->sources->processes, p->process.value);
	enum nameless_why why = main_reason(p);
	bool in_file = why == NAMELESS_STRIPPED || why == NAMELESS_NO_INDEX;

	*ret_row = (struct report_nameless){
		.program = nameless_text(n, p->name),
		.file = nameless_text(n, in_file ? p->file.value : 0),
		.why = why,
		.pid = facts ? facts->pid : 0,
		.contained = facts && *facts->container_id,
		.count = p->count,
		.total = p->total,
	};
	return ret_row->program && ret_row->file ? 0 : -ENOMEM;
}

static int nameless_list(
	struct nameless *n, size_t max, struct report_nameless **ret_list, size_t *ret_count)
{
	struct report_nameless *list = calloc(max + 1, sizeof(*list));
	size_t count = 0;
	int err = list ? 0 : -ENOMEM;

	if (n->program_count)
		qsort(n->programs, n->program_count, sizeof(*n->programs), more_nameless);
	for (size_t i = 0; !err && i < n->program_count && count < max; i++) {
		if (is_worth_telling(n, &n->programs[i]))
			err = make_row(n, &n->programs[i], &list[count++]);
	}
	if (err) {
		report_nameless_free(list, count);
		return err;
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

int report_nameless(const struct report_sources *sources, size_t max,
	struct report_nameless **ret_list, size_t *ret_count)
{
	autocall(nameless_deinit) struct nameless n = { 0 };
	autocall(auto_stacks_destroy) struct stacks *stacks = NULL;
	const struct profile *profile = sources->profile;
	int err = nameless_init(&n, sources);

	if (!err)
		err = stacks_create(sources, NULL, nameless_add_frame, &n, &stacks);
	for (size_t i = 0; !err && i < profile_sample_count(profile); i++)
		err = nameless_add_sample(&n, stacks, profile_sample_at(profile, i));
	return err ? err : nameless_list(&n, max, ret_list, ret_count);
}

void report_nameless_free(struct report_nameless *list, size_t count)
{
	for (size_t i = 0; list && i < count; i++) {
		free(list[i].program);
		free(list[i].file);
	}
	free(list);
}
