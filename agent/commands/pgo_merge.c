/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/pgo.h"
#include "base/cleanup.h"
#include "pprof/pprof.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum {
	MERGE_BYTES = 256 << 20,
	MAX_WINDOWS = 1 << 22,
};

DEFINE_AUTO(pprof);

struct pgo_merge {
	struct pprof *pprof; /* NULL until the first profile */
	bool has_count, has_time; /* as all profiles have */
	struct map windows; /* begin → duration in ns: each is counted once */
	int64_t covered_ns; /* by these windows */
	struct pgo_merge_facts facts;
};

/* One profile on its way into the merge. */
struct pgo_input {
	struct pgo_merge *merge;
	const struct pgo_samples *samples;
	const struct upload_profile *profile;
	uint64_t *ids; /* in the merge, by index of the location; 0 = not added yet */
};

int pgo_merge_create(struct pgo_merge **ret_merge)
{
	struct pgo_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	map_init(&m->windows, MAX_WINDOWS);
	*ret_merge = m;
	return 0;
}

void pgo_merge_destroy(struct pgo_merge *m)
{
	if (!m)
		return;
	pprof_destroy(m->pprof);
	map_deinit(&m->windows);
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
static struct pprof_line pgo_merge_line(const struct pgo_input *in, const MESSAGE(Line) * line)
{
	const MESSAGE(Function) * function;
	const char *name, *linkage, *file;
	uint64_t index = 0;

	map_get(&in->profile->functions, line->function_id, &index);
	function = in->profile->message->function[index];
	name = upload_text(in->profile, function->name);
	linkage = upload_text(in->profile, function->system_name);
	file = upload_text(in->profile, function->filename);
	if (strstr(name, "[...]") && *linkage)
		name = linkage;
	in->merge->facts.start_lines |= function->start_line > 0;
	return (struct pprof_line){
		.name = name,
		.system_name = linkage,
		.file = file,
		.line = line->line,
		.start_line = function->start_line,
	};
}

/*
 * The mapping of a location in the merge. For named ones only the file counts: builds of a program
 * differ in addresses, and there are several in a week of profiles.
 */
static int pgo_merge_mapping(
	const struct pgo_input *in, const MESSAGE(Location) * location, uint64_t *ret_id)
{
	struct pprof_mapping content = { 0 };
	const MESSAGE(Mapping) * from;
	uint64_t index;

	*ret_id = 0;
	if (!map_get(&in->profile->mappings, location->mapping_id, &index))
		return 0;
	from = in->profile->message->mapping[index];
	content.file = upload_text(in->profile, from->filename);
	if (!location->n_line) {
		content.start = from->memory_start;
		content.limit = from->memory_limit;
		content.offset = from->file_offset;
		content.build_id = upload_text(in->profile, from->build_id);
	}
	return pprof_mapping(in->merge->pprof, &content, ret_id);
}

static int pgo_merge_add_location(
	const struct pgo_input *in, const MESSAGE(Location) * location, uint64_t *ret_id)
{
	struct pprof_line lines[PPROF_MAX_LINES];
	size_t count = MIN(location->n_line, (size_t)PPROF_MAX_LINES);
	uint64_t mapping;
	int err = pgo_merge_mapping(in, location, &mapping);

	for (size_t i = 0; i < count; i++)
		lines[i] = pgo_merge_line(in, location->line[i]);
	return err ? err
		   : pprof_location(in->merge->pprof, mapping, count ? 0 : location->address, lines,
			     count, ret_id);
}

static int pgo_merge_location(const struct pgo_input *in, uint64_t id, uint64_t *ret_id)
{
	uint64_t index = 0;
	int err = 0;

	map_get(&in->profile->locations, id, &index);
	if (!in->ids[index])
		err = pgo_merge_add_location(
			in, in->profile->message->location[index], &in->ids[index]);
	*ret_id = in->ids[index];
	return err;
}

/* The kernel, its modules and the vDSO: `[kernel.kallsyms]`, `[vdso]`. */
static bool pgo_merge_is_kernel(const struct pgo_input *in, uint64_t id)
{
	const MESSAGE(Location) * location;
	uint64_t index = 0;

	map_get(&in->profile->locations, id, &index);
	location = in->profile->message->location[index];
	if (!map_get(&in->profile->mappings, location->mapping_id, &index))
		return false;
	return *upload_text(in->profile, in->profile->message->mapping[index]->filename) == '[';
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
	size_t first = 0, depth = 0;
	int err = 0;

	while (first < sample->n_location_id && pgo_merge_is_kernel(in, sample->location_id[first]))
		first++;
	if (first == sample->n_location_id) {
		in->merge->facts.kernel_only++;
		return 0;
	}
	for (size_t i = first; i < sample->n_location_id && depth < PPROF_MAX_FRAMES && !err; i++)
		err = pgo_merge_location(in, sample->location_id[i], &stack[depth++]);
	if (err)
		return err;
	if (first + depth < sample->n_location_id)
		in->merge->facts.cut++;
	*ret_added = true;
	return pgo_merge_put(in, number, stack, depth);
}

/* ---- profiles ------------------------------------------------------------------------------- */

/* Several files of one window, one for each container, cover its time once. */
static int pgo_merge_note_window(struct pgo_merge *m, const MESSAGE(Profile) * p)
{
	int64_t duration_ns = MAX(p->duration_nanos, 0), end_ns, covered_ns;
	uint64_t known = 0;
	int err;

	if (p->time_nanos < 0 || __builtin_add_overflow(p->time_nanos, duration_ns, &end_ns))
		return 0;
	if (!m->windows.count || p->time_nanos < m->facts.begin_ns)
		m->facts.begin_ns = p->time_nanos;
	m->facts.end_ns = MAX(m->facts.end_ns, end_ns);
	map_get(&m->windows, (uint64_t)p->time_nanos, &known);
	if (known >= (uint64_t)duration_ns && known)
		return 0;
	err = map_set(&m->windows, (uint64_t)p->time_nanos, (uint64_t)duration_ns);
	if (!err &&
		!__builtin_add_overflow(m->covered_ns, duration_ns - (int64_t)known, &covered_ns))
		m->covered_ns = covered_ns;
	return err;
}

int pgo_merge_add(struct pgo_merge *m, const struct pgo_samples *samples, const char **ret_why)
{
	const MESSAGE(Profile) *p = samples->profile->message;
	autofree uint64_t *ids = calloc(p->n_location + 1, sizeof(*ids));
	struct pgo_input in = { m, samples, samples->profile, ids };
	bool checked = false, added = false;
	int err = 0;

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_sample && !err; i++) {
		if (!pgo_samples_wanted(samples, i))
			continue;
		if (!checked)
			err = pgo_merge_check_types(m, samples, ret_why);
		checked = true;
		if (!err)
			err = pgo_merge_add_sample(&in, i, &added);
	}
	if (err || !added)
		return err;
	m->facts.profiles++;
	return pgo_merge_note_window(m, p);
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
	pprof_set_times(m->pprof, pgo_merge_period(m), m->facts.begin_ns, m->covered_ns);
	return pprof_encode(m->pprof, true, out);
}
