/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/pgo.h"
#include "base/cleanup.h"
#include "pprof/pprof_copy.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum {
	MERGE_BYTES = 256 << 20,
};

DEFINE_AUTO(pprof);

struct pgo_merge {
	struct pprof *pprof; /* NULL until the first profile */
	bool has_count, has_time; /* as all profiles have */
	struct pprof_span span;
	struct pgo_merge_facts facts;
};

/* One profile on its way into the merge. */
struct pgo_input {
	struct pgo_merge *merge;
	const struct pgo_samples *samples;
	const struct pprof_read *profile;
	struct pprof_copy copy; /* its arrays are NULL until the first wanted sample */
};

int pgo_merge_create(struct pgo_merge **ret_merge)
{
	struct pgo_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	pprof_span_init(&m->span);
	*ret_merge = m;
	return 0;
}

void pgo_merge_destroy(struct pgo_merge *m)
{
	if (!m)
		return;
	pprof_destroy(m->pprof);
	pprof_span_deinit(&m->span);
	free(m);
}

struct pgo_merge_facts pgo_merge_facts(const struct pgo_merge *m)
{
	return m->facts;
}

/* ---- types ---------------------------------------------------------------------------------- */

/*
 * Of samples/count and cpu/nanoseconds, the Go compiler takes what comes first. This is the time:
 * counts of profiles with different sampling frequencies cannot be added.
 */
static int pgo_merge_begin(struct pgo_merge *m, const struct pgo_samples *samples)
{
	struct pprof_options options = { .limit_bytes = MERGE_BYTES };

	m->has_time = samples->time_type != SIZE_MAX;
	m->has_count = samples->count_type != SIZE_MAX;
	if (m->has_time)
		options.types[options.type_count++] = (struct pprof_type){ "cpu", "nanoseconds" };
	if (m->has_count)
		options.types[options.type_count++] = (struct pprof_type){ "samples", "count" };
	options.default_type = options.types[0].type;
	options.period_type = options.types[0];
	return pprof_create(&options, &m->pprof);
}

static int pgo_merge_check_types(
	struct pgo_merge *m, const struct pgo_samples *samples, const char **ret_why)
{
	*ret_why = "its sample types are not those of the profiles before it";
	if (!m->pprof)
		return pgo_merge_begin(m, samples);
	return m->has_time == (samples->time_type != SIZE_MAX) &&
			       m->has_count == (samples->count_type != SIZE_MAX)
		       ? 0
		       : -EBADMSG;
}

/* ---- locations ------------------------------------------------------------------------------ */

/*
 * The compiler compares names with its own, which are those of symbols. Of a Go function, the
 * linkage name is that name: `slices.Sort[go.shape.int]`; the other is short: `slices.Sort[...]`.
 */
static void pgo_merge_line(void *context, struct pprof_line *line)
{
	struct pgo_merge *m = context;

	if (strstr(line->name, "[...]") && *line->system_name)
		line->name = line->system_name;
	line->column = 0;
	line->nameless = false;
	m->facts.start_lines |= line->start_line > 0;
}

/* The kernel, its modules and the vDSO: `[kernel.kallsyms]`, `[vdso]`. */
static bool pgo_merge_is_kernel(const struct pgo_input *in, uint64_t id)
{
	const MESSAGE(Location) * location;
	uint64_t index = 0;

	pprof_ids_get(&in->profile->locations, id, &index);
	location = in->profile->message->location[index];
	if (!pprof_ids_get(&in->profile->mappings, location->mapping_id, &index))
		return false;
	return *pprof_read_text(in->profile, in->profile->message->mapping[index]->filename) == '[';
}

/* ---- samples -------------------------------------------------------------------------------- */

static uint64_t pgo_merge_sum(uint64_t a, int64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, (uint64_t)b, &sum) ? UINT64_MAX : sum;
}

static int pgo_merge_put(struct pgo_input *in, size_t number, const uint64_t *stack, size_t depth)
{
	struct pgo_merge *m = in->merge;
	int64_t count, time_ns, values[2];
	size_t types = 0;
	int err;

	pgo_samples_values(in->samples, number, &count, &time_ns);
	if (m->has_time)
		values[types++] = time_ns;
	if (m->has_count)
		values[types++] = count;
	err = pprof_sample(m->pprof, stack, depth, values, NULL, 0);
	if (err)
		return err;
	m->facts.samples = pgo_merge_sum(m->facts.samples, count);
	m->facts.time_ns = pgo_merge_sum(m->facts.time_ns, time_ns);
	return 0;
}

static int pgo_merge_add_sample(struct pgo_input *in, size_t number, bool *ret_added)
{
	const MESSAGE(Sample) *sample = in->profile->message->sample[number];
	uint64_t stack[PPROF_MAX_FRAMES];
	size_t first = 0, depth;
	int err;

	while (first < sample->n_location_id && pgo_merge_is_kernel(in, sample->location_id[first]))
		first++;
	if (first == sample->n_location_id) {
		in->merge->facts.kernel_only++;
		return 0;
	}
	err = pprof_copy_stack(&in->copy, sample, first, stack, &depth);
	if (err)
		return err;
	if (first + depth < sample->n_location_id)
		in->merge->facts.cut++;
	*ret_added = true;
	return pgo_merge_put(in, number, stack, depth);
}

/* ---- profiles ------------------------------------------------------------------------------- */

static int pgo_merge_begin_copy(struct pgo_input *in, const char **ret_why)
{
	int err = pgo_merge_check_types(in->merge, in->samples, ret_why)
			  ?: pprof_copy_init(&in->copy, in->merge->pprof, in->profile);

	in->copy.source_only = true;
	in->copy.line = pgo_merge_line;
	in->copy.context = in->merge;
	return err;
}

static int pgo_merge_add_samples(struct pgo_input *in, bool *ret_added, const char **ret_why)
{
	const MESSAGE(Profile) *p = in->profile->message;
	int err = 0;

	for (size_t i = 0; i < p->n_sample && !err; i++) {
		if (!pgo_samples_wanted(in->samples, i))
			continue;
		if (!in->copy.ids)
			err = pgo_merge_begin_copy(in, ret_why);
		if (!err)
			err = pgo_merge_add_sample(in, i, ret_added);
	}
	return err;
}

int pgo_merge_add(struct pgo_merge *m, const struct pgo_samples *samples, const char **ret_why)
{
	struct pgo_input in = { .merge = m, .samples = samples, .profile = samples->profile };
	bool added = false;
	int err = pgo_merge_add_samples(&in, &added, ret_why);

	pprof_copy_deinit(&in.copy);
	if (err || !added)
		return err;
	m->facts.profiles++;
	err = pprof_span_add(&m->span, samples->profile->message);
	m->facts.begin_ns = m->span.begin_ns;
	m->facts.end_ns = m->span.end_ns;
	return err;
}

int pgo_merge_comment(struct pgo_merge *m, const char *text)
{
	return m->pprof ? pprof_comment(m->pprof, text) : -ENOENT;
}

/* The mean, as frequencies may have been different. */
static int64_t pgo_merge_period(const struct pgo_merge *m)
{
	if (!m->has_time || !m->facts.samples)
		return m->has_time ? 0 : 1;
	return (int64_t)MIN(m->facts.time_ns / m->facts.samples, (uint64_t)INT64_MAX);
}

int pgo_merge_encode(struct pgo_merge *m, struct buffer *out)
{
	if (!m->pprof)
		return -ENOENT;
	pprof_set_times(m->pprof, pgo_merge_period(m), m->facts.begin_ns, m->span.covered_ns);
	return pprof_encode(m->pprof, true, out);
}
