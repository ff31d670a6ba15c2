/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/fiber_labels.h"
#include "agent/report/span_label.h"
#include "agent/report/stacks.h"
#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/recording/notes.h"
#include "base/cleanup.h"
#include "base/host.h"
#include "pprof/pprof.h"

enum {
	MAX_PPROF_BYTES = 256 << 20,
	MAX_PROCESSES = 1 << 22,
	ALL_VALUES = 2 * SAMPLE_TYPES,
};

enum {
#define PROCESS_TEXT(...) +1
	PROCESS_LABELS = 0
#include "agent/sampler/profile/sample_labels.def"
};

enum { ALL_LABELS = SAMPLE_LABEL_COUNT + PROCESS_LABELS + FIBER_LABELS + ABI_FIBER_LABELS + 1 };

static const char GROUP_LABEL[] = "fathom_group";

DEFINE_AUTO(pprof);
DEFINE_AUTO(stacks);
DEFINE_AUTO(fiber_labels);

/*
 * pid, tid, … are names, not amounts: no tool scales this unit. Without a unit, a value of 0 would
 * be dropped.
 */
static const char *const id_unit = "id";

static const char MEAN_PERIOD[] =
	"the sampling frequency changed during the window: the period is the mean of the samples'";

struct pprof_report {
	const struct report_sources *sources;
	const struct report_options *options;
	struct pprof *pprof;
	struct stacks *stacks;
	struct fiber_labels *fibers;
	struct report_summary summary;
	uint64_t last_mapping; /* id */
};

/* ---- frames → locations ---- */

/* Ids rise by one with each new mapping. */
static int mapping_id(
	struct pprof_report *r, const struct symbolized_mapping *mapping, uint64_t *ret_id)
{
	struct pprof_mapping content;
	char comment[FILE_HASH_COMMENT_BYTES];
	int err;

	*ret_id = 0;
	if (!mapping)
		return 0;
	content = (struct pprof_mapping){ mapping->start, mapping->limit, mapping->offset,
		mapping->file, mapping->build_id };
	err = pprof_mapping(r->pprof, &content, ret_id);
	if (err || *ret_id <= r->last_mapping)
		return err;
	r->last_mapping = *ret_id;
	if (!r->options->file_hashes || !mapping->file_hash)
		return 0;
	file_hash_comment(*ret_id, mapping->file_hash, comment);
	return pprof_comment(r->pprof, comment);
}

static int add_location(void *context, const struct symbolized *frame, uint32_t *ret_id)
{
	struct pprof_report *r = context;
	struct pprof_line lines[INDEX_MAX_FRAMES];
	size_t count = frame->nameless && r->options->bare_addresses ? 0 : frame->line_count;
	uint64_t mapping, id;
	int err;

	for (size_t i = 0; i < count; i++) {
		const struct index_frame *line = &frame->lines[i];

		lines[i] = (struct pprof_line){ line->name, line->linkage, line->file, line->line,
			line->column, line->start_line, frame->nameless };
	}
	err = mapping_id(r, frame->mapping, &mapping);
	if (err)
		return err;
	err = pprof_location(r->pprof, mapping, frame->address, lines, count, &id);
	if (err)
		return err;
	*ret_id = (uint32_t)id;
	return 0;
}

static bool included(const struct pprof_report *r, const struct profile_sample *sample)
{
	const struct report_options *options = r->options;

	return !options->include || options->include(options->include_context, sample);
}

static size_t report_pprof_sample_count(const struct pprof_report *r)
{
	return r->options->samples ? r->options->sample_count
				   : profile_sample_count(r->sources->profile);
}

static const struct profile_sample *report_pprof_sample_at(const struct pprof_report *r, size_t i)
{
	return profile_sample_at(
		r->sources->profile, r->options->samples ? r->options->samples[i] : i);
}

/* ---- the main binary ---- */

/* The process generation with most samples, 0 if there are none. */
static int busiest_process(const struct pprof_report *r, uint32_t *ret_process)
{
	autocall(map_deinit) struct map counts;
	uint64_t most = 0, count;
	uint32_t busiest = 0;
	int err;

	map_init(&counts, MAX_PROCESSES);
	for (size_t i = 0; i < report_pprof_sample_count(r); i++) {
		const struct profile_sample *sample = report_pprof_sample_at(r, i);

		if (!included(r, sample))
			continue;
		count = 0;
		map_get(&counts, sample->process, &count);
		count += sample->count;
		err = map_set(&counts, sample->process, count);
		if (err)
			return err;
		if (count > most) {
			most = count;
			busiest = sample->process;
		}
	}
	*ret_process = busiest;
	return 0;
}

static const struct profile_frame *frame_in_module(
	const struct profile_stack *stack, uint32_t module)
{
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		if (stack->frames[i].module == module)
			return &stack->frames[i];
	}
	return NULL;
}

/*
 * google/pprof takes the first mapping for the main binary and puts it at the head of its reports.
 * Makes that the program of the busiest process, by symbolizing one of its frames first.
 */
static int put_main_binary_first(struct pprof_report *r)
{
	const struct profile *profile = r->sources->profile;
	const struct profile_frame *frame;
	const struct process_facts *process;
	uint32_t busiest, id;
	int err;

	err = busiest_process(r, &busiest);
	if (err)
		return err;
	process = window_processes_find(r->sources->processes, busiest);
	if (!process || !process->program)
		return 0;
	for (size_t i = 0; i < report_pprof_sample_count(r); i++) {
		const struct profile_sample *sample = report_pprof_sample_at(r, i);
		struct profile_stack stack = profile_stack_at(profile, sample->stack);

		frame = frame_in_module(&stack, process->program);
		if (frame && sample->process == busiest)
			return stacks_add_frame(r->stacks, busiest, frame, &id);
	}
	return 0;
}

/* ---- samples ---- */

/* Their keys are none of ours: the profile refuses those. */
static size_t labels_of_fiber(const struct profile *profile, const struct profile_sample *sample,
	struct pprof_label ret_labels[ABI_FIBER_LABELS])
{
	const struct profile_fiber fiber = profile_fiber_at(profile, sample->fiber);
	struct profile_fiber_label label;
	const char *at = NULL;
	size_t count = 0;

	while (count < ABI_FIBER_LABELS && profile_fiber_next(&fiber, &at, &label))
		ret_labels[count++] = (struct pprof_label){ .key = label.key, .text = label.value };
	return count;
}

static size_t labels_of_sample(const struct sample_type *type, const struct profile_sample *sample,
	struct pprof_label ret_labels[SAMPLE_LABEL_COUNT])
{
	size_t count = 0;

	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		const struct sample_label *label = &sample_labels[i];
		struct pprof_label to = { .key = label->name };

		if (!(type->labels >> i & 1))
			continue;
		if (label->is_text) {
			to.text = sample_label_text(label, sample);
		} else {
			to.number = (int64_t)sample_label_value(label, sample);
			to.unit = id_unit;
			if (!to.number && !label->zero_is_value)
				continue;
		}
		ret_labels[count++] = to;
	}
	return count;
}

static size_t labels_of_process(
	const struct process_facts *process, struct pprof_label ret_labels[PROCESS_LABELS])
{
	const struct pprof_label labels[PROCESS_LABELS] = {
#define PROCESS_TEXT(name, ...) { #name, process->name, 0, NULL },
#include "agent/sampler/profile/sample_labels.def"
	};

	memcpy(ret_labels, labels, sizeof(labels));
	return PROCESS_LABELS;
}

/* All labels: RET_LABELS has room for ALL_LABELS. */
static int report_pprof_labels(struct pprof_report *r, const struct profile_sample *sample,
	const struct stack_facts *facts, struct pprof_label *ret_labels, size_t *ret_count)
{
	const struct process_facts *process =
		window_processes_find(r->sources->processes, sample->process);
	const struct sample_type *type = &r->options->types.of[sample->type];
	size_t count = labels_of_sample(type, sample, ret_labels);
	int err;

	if (process)
		count += labels_of_process(process, ret_labels + count);
	err = fiber_labels_add(r->fibers, sample, facts, ret_labels, &count);
	count += labels_of_fiber(r->sources->profile, sample, ret_labels + count);
	if (r->options->group)
		ret_labels[count++] = (struct pprof_label){ .key = GROUP_LABEL,
			.text = r->options->group(r->options->group_context, sample) };
	*ret_count = count;
	return err;
}

static int64_t value_of(uint64_t number)
{
	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

/* Puts the values in the order of the types in pprof_options_of(). */
static void put_values(const struct sample_types *types, const struct profile_sample *sample,
	int64_t values[ALL_VALUES])
{
	size_t first = 0;

	for (uint32_t i = 0; i < sample->type; i++)
		first += sample_types_have(types, i) ? 2 : 0;
	values[first] = value_of(sample->count);
	values[first + 1] = value_of(sample->weight);
}

static int report_pprof_add_sample(struct pprof_report *r, const struct profile_sample *sample)
{
	const struct sample_types *types = &r->options->types;
	int64_t values[ALL_VALUES] = { 0 };
	const struct stack_facts *facts;
	struct pprof_label labels[ALL_LABELS];
	uint64_t locations[PPROF_MAX_FRAMES];
	size_t count, label_count = 0;
	int err;

	err = stacks_get(r->stacks, sample, &facts);
	if (err)
		return err;
	count = MIN(facts->count, (uint32_t)PPROF_MAX_FRAMES);
	for (size_t i = 0; i < count; i++)
		locations[i] = r->stacks->ids[facts->first + i];
	if (!r->options->no_labels)
		err = report_pprof_labels(r, sample, facts, labels, &label_count);
	else if (r->options->span_labels)
		label_count = span_label(r->sources->profile, sample, labels);
	if (err)
		return err;
	put_values(types, sample, values);
	err = pprof_sample(r->pprof, locations, count, values, labels, label_count);
	if (err)
		return err;
	stacks_account(r->stacks, facts, sample, &r->summary);
	return 0;
}

/* A sample that does not fit is counted as lost; the ones before it stay. */
static int report_pprof_add_samples(struct pprof_report *r)
{
	int err;

	for (size_t i = 0; i < report_pprof_sample_count(r); i++) {
		const struct profile_sample *sample = report_pprof_sample_at(r, i);

		if (!included(r, sample) || !sample_types_have(&r->options->types, sample->type))
			continue;
		err = report_pprof_add_sample(r, sample);
		if (err == -E2BIG)
			metrics_add(r->sources->metrics, METRIC_LOST_MEMORY_LIMIT, sample->count);
		else if (err)
			return err;
	}
	return 0;
}

/*
 * The period of the profile. If the frequency changed, no single value fits all samples: returns
 * their mean, so that samples times period is the CPU time, and sets *RET_MEAN.
 */
static int64_t report_pprof_period_of(const struct pprof_report *r, bool *ret_mean)
{
	uint64_t period = (uint64_t)r->options->period, count = 0, weight = 0;
	bool timed = r->options->types.of[SAMPLE_TYPE_TICKS].is_time, changed = false;

	for (size_t i = 0; timed && i < report_pprof_sample_count(r); i++) {
		const struct profile_sample *sample = report_pprof_sample_at(r, i);

		if (sample->type != SAMPLE_TYPE_TICKS || !included(r, sample))
			continue;
		changed |= sample->weight != sample->count * period;
		count += sample->count;
		weight += sample->weight;
	}
	*ret_mean = changed && count;
	return *ret_mean ? value_of((weight + count / 2) / count) : r->options->period;
}

static int report_pprof_put_comments(const struct pprof_report *r, bool mean_period)
{
	int err = 0;

	if (r->options->comment)
		err = pprof_comment(r->pprof, r->options->comment);
	if (!err && mean_period)
		err = pprof_comment(r->pprof, MEAN_PERIOD);
	return err;
}

static struct pprof_type pprof_type_of(const struct sample_value *value)
{
	return (struct pprof_type){ value->type, value->unit };
}

/* The first type is that of the period, and what tools show first. */
static struct pprof_options pprof_options_of(const struct report_options *options)
{
	struct pprof_options head = {
		.period = options->period,
		.time_ns = options->time_ns,
		.duration_ns = options->duration_ns,
		.limit_bytes = MAX_PPROF_BYTES,
		.no_inlines = options->no_inlines,
	};

	for (uint32_t i = 0; i < SAMPLE_TYPES; i++) {
		const struct sample_type *type = &options->types.of[i];

		if (!sample_types_have(&options->types, i))
			continue;
		head.types[head.type_count++] = pprof_type_of(&type->count);
		head.types[head.type_count++] = pprof_type_of(&type->weight);
	}
	head.period_type = head.types[1];
	head.default_type = head.types[1].type;
	return head;
}

struct report_sources report_window_sources(
	const struct sealed_window *window, struct symbolize *symbolize, struct metrics *metrics)
{
	return (struct report_sources){
		.profile = window->profile,
		.processes = window->processes,
		.anon_module = window->anon_module,
		.symbolize = symbolize,
		.metrics = metrics,
	};
}

struct report_options report_window_options(const struct sealed_window *window)
{
	return (struct report_options){
		.types = window->types,
		.period = (int64_t)window->period,
		.time_ns = (int64_t)window->began_real_ns,
		.duration_ns = (int64_t)(window->ended_ns - window->began_ns),
	};
}

int report_pprof(const struct report_sources *sources, const struct report_options *options,
	struct buffer *out, struct report_summary *ret_summary)
{
	struct pprof_options head = pprof_options_of(options);
	autocall(auto_pprof_destroy) struct pprof *pprof = NULL;
	autocall(auto_stacks_destroy) struct stacks *stacks = NULL;
	autocall(auto_fiber_labels_destroy) struct fiber_labels *fibers = NULL;
	struct pprof_report r = { .sources = sources, .options = options };
	bool mean_period;
	size_t before;
	int err;

	head.period = report_pprof_period_of(&r, &mean_period);
	err = pprof_create(&head, &pprof);
	if (err)
		return err;
	err = stacks_create(sources, options, add_location, &r, &stacks);
	if (!err)
		err = fiber_labels_create(sources, &fibers);
	if (err)
		return err;
	r.pprof = pprof;
	r.fibers = fibers;
	r.stacks = stacks;
	err = report_pprof_put_comments(&r, mean_period) ?: put_main_binary_first(&r);
	if (!err)
		err = report_pprof_add_samples(&r);
	if (err)
		return err;
	before = out->size;
	err = pprof_encode(pprof, true, out);
	if (err)
		return err;
	host_note(HOST_NOTE_REPORT, &(struct note_report){
					    .options = options,
					    .profile = sources->profile,
					    .pprof = out->bytes + before,
					    .pprof_bytes = out->size - before,
				    });
	r.summary.entries = pprof_sample_count(pprof);
	*ret_summary = r.summary;
	return 0;
}
