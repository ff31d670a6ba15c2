/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: `comm;frame;frame count`, root first, one line for each distinct text. A frame is
 * the names of its inlined calls joined by `;`. The format has no units, so a file has the samples
 * of one type only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/stacks.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	MAX_TEXTS = 1 << 24,
	MAX_TEXT_BYTES = 256 << 20,
	MAX_LINE_BYTES = 8 << 20,
	NS_PER_US = 1000,
};

DEFINE_AUTO(stacks);

struct folded {
	const struct report_sources *sources;
	uint32_t type; /* of samples: only these */
	bool is_time; /* their weight is in ns */
	struct stacks *stacks;
	struct intern frames; /* texts of frames; numbers are the stacks' ids */
	struct intern comms;
	struct map counts; /* comm << 32 | stack → ticks, or weight */
	struct report_summary summary;
	struct buffer scratch;
	/* lines of output */
	struct intern lines;
	uint64_t *line_counts;
	size_t line_capacity;
};

static void folded_deinit(struct folded *f)
{
	intern_deinit(&f->frames);
	intern_deinit(&f->comms);
	intern_deinit(&f->lines);
	map_deinit(&f->counts);
	buffer_deinit(&f->scratch);
	free(f->line_counts);
}

/* Appends one part of a line, replacing characters that would end or split it. */
static int report_folded_put_part(struct buffer *out, const char *text)
{
	size_t begin = out->size;

	if (buffer_string(out, text))
		return out->error;
	utf8_clean((char *)out->bytes + begin, out->size - begin);
	for (size_t i = begin; i < out->size; i++) {
		if (out->bytes[i] == ';')
			out->bytes[i] = ':';
	}
	return 0;
}

static int put_unknown(struct buffer *out, const struct symbolized *frame)
{
	const char *file, *name;

	if (!frame->mapping)
		return buffer_string(out, "[unknown]");
	file = frame->mapping->file;
	if (!frame->mapping->is_file)
		return report_folded_put_part(out, file);
	name = strrchr(file, '/');
	buffer_string(out, "[");
	report_folded_put_part(out, name ? name + 1 : file);
	return buffer_printf(out, "+0x%" PRIx64 "]", frame->address);
}

static int add_frame(void *context, const struct symbolized *frame, uint32_t *ret_id)
{
	struct folded *f = context;
	struct buffer *out = &f->scratch;

	out->size = 0;
	if (frame->line_count == 0) {
		put_unknown(out, frame);
		buffer_string(out, frame->kernel ? "_[k]" : "");
	}
	for (size_t i = frame->line_count; i-- > 0;) {
		report_folded_put_part(out, frame->lines[i].name);
		buffer_string(out, frame->kernel ? "_[k]" : "");
		buffer_string(out, i ? ";" : "");
	}
	if (out->error)
		return out->error;
	return intern_bytes(&f->frames, out->bytes, out->size, ret_id);
}

static int count_sample(struct folded *f, const struct profile_sample *sample)
{
	const struct process_facts *process =
		window_processes_find(f->sources->processes, sample->process);
	const struct stack_facts *facts;
	uint64_t key, count = 0;
	uint32_t comm;
	int err;

	err = stacks_get(f->stacks, sample, &facts);
	if (err)
		return err;
	err = intern_string(&f->comms, process ? process->comm : sample->comm, &comm);
	if (err)
		return err;
	key = (uint64_t)comm << 32 | facts->number;
	map_get(&f->counts, key, &count);
	err = map_set(&f->counts, key,
		count + (f->type == SAMPLE_TYPE_TICKS ? sample->count : sample->weight));
	if (err)
		return err;
	stacks_account(f->stacks, facts, sample, &f->summary);
	return 0;
}

static int report_folded_count_samples(struct folded *f)
{
	const struct profile *profile = f->sources->profile;
	int err;

	for (size_t i = 0; i < profile_sample_count(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);

		if (sample->type != f->type)
			continue;
		err = count_sample(f, sample);
		if (err == -E2BIG)
			metrics_add(f->sources->metrics, METRIC_LOST_MEMORY_LIMIT, sample->count);
		else if (err)
			return err;
	}
	return 0;
}

/* Merges: different stacks and processes may yield one text. */
static int report_folded_add_line(struct folded *f, uint32_t comm, uint32_t stack, uint64_t count)
{
	const struct stack_facts *facts = &f->stacks->facts[stack];
	struct buffer *out = &f->scratch;
	size_t known = f->lines.count;
	uint32_t number;
	int err;

	out->size = 0;
	report_folded_put_part(out, intern_text(&f->comms, comm));
	for (uint32_t i = facts->count; i-- > 0;) {
		buffer_string(out, ";");
		buffer_string(out, intern_text(&f->frames, f->stacks->ids[facts->first + i]));
	}
	if (out->error)
		return out->error;
	err = array_reserve(f->line_counts, f->line_capacity, known + 1, MAX_TEXTS);
	if (err)
		return err;
	err = intern_bytes(&f->lines, out->bytes, out->size, &number);
	if (err)
		return err;
	f->line_counts[number] = (number == known ? 0 : f->line_counts[number]) + count;
	return 0;
}

static int report_folded_add_lines(struct folded *f)
{
	uint64_t key, count;
	size_t iterator = 0;
	int err;

	while (map_next(&f->counts, &iterator, &key, &count)) {
		err = report_folded_add_line(f, (uint32_t)(key >> 32), (uint32_t)key, count);
		if (err)
			return err;
	}
	return 0;
}

static int by_text(const void *a, const void *b, void *context)
{
	const struct intern *lines = context;

	return strcmp(
		intern_text(lines, *(const uint32_t *)a), intern_text(lines, *(const uint32_t *)b));
}

static int put_lines(struct folded *f, struct buffer *out)
{
	size_t count = f->lines.count - 1;
	autofree uint32_t *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i + 1;
	qsort_r(order, count, sizeof(*order), by_text, &f->lines);
	for (size_t i = 0; i < count; i++) {
		uint64_t value = f->line_counts[order[i]];

		if (f->type != SAMPLE_TYPE_TICKS && f->is_time)
			value /= NS_PER_US;
		if (!value)
			continue;
		buffer_string(out, intern_text(&f->lines, order[i]));
		buffer_printf(out, " %" PRIu64 "\n", value);
	}
	return out->error;
}

static int folded_init(struct folded *f)
{
	int err;

	buffer_init(&f->scratch, MAX_LINE_BYTES);
	map_init(&f->counts, MAX_TEXTS);
	err = intern_init(&f->frames, MAX_TEXTS, MAX_TEXT_BYTES);
	if (err)
		return err;
	err = intern_init(&f->comms, MAX_TEXTS, MAX_TEXT_BYTES);
	if (err)
		return err;
	return intern_init(&f->lines, MAX_TEXTS, MAX_TEXT_BYTES);
}

int report_folded(const struct report_sources *sources, const struct report_options *options,
	uint32_t type, struct buffer *out, struct report_summary *ret_summary)
{
	autocall(folded_deinit) struct folded f = {
		.sources = sources, .type = type, .is_time = options->types.of[type].is_time
	};
	autocall(auto_stacks_destroy) struct stacks *stacks = NULL;
	int err;

	err = folded_init(&f);
	if (err)
		return err;
	err = stacks_create(sources, options, add_frame, &f, &stacks);
	if (err)
		return err;
	f.stacks = stacks;
	err = report_folded_count_samples(&f);
	if (err)
		return err;
	err = report_folded_add_lines(&f);
	if (err)
		return err;
	err = put_lines(&f, out);
	if (err)
		return err;
	*ret_summary = f.summary;
	return 0;
}
