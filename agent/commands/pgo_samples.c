/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/pgo.h"
#include "base/cleanup.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum {
	COMM_BYTES = 15, /* what the kernel keeps of a thread's name */
	MAX_MINUTES = 16,
};

static const int64_t MINUTE_NS = INT64_C(60000000000), TEN_MINUTES_NS = INT64_C(600000000000);

static const char *pgo_samples_text(const struct pgo_samples *s, int64_t string)
{
	return pprof_read_text(s->profile, string);
}

/* ---- values --------------------------------------------------------------------------------- */

static size_t pgo_samples_type(const struct pgo_samples *s, const char *type, const char *unit)
{
	const MESSAGE(Profile) *p = s->profile->message;

	for (size_t i = 0; i < p->n_sample_type; i++) {
		if (!strcmp(pgo_samples_text(s, p->sample_type[i]->type), type) &&
			!strcmp(pgo_samples_text(s, p->sample_type[i]->unit), unit))
			return i;
	}
	return SIZE_MAX;
}

void pgo_samples_values(
	const struct pgo_samples *s, size_t number, int64_t *ret_count, int64_t *ret_time_ns)
{
	const int64_t *values = s->profile->message->sample[number]->value;

	*ret_count = s->count_type == SIZE_MAX ? 0 : values[s->count_type];
	*ret_time_ns = s->time_type == SIZE_MAX ? 0 : values[s->time_type];
}

static bool pgo_samples_negative(const struct pgo_samples *s)
{
	for (size_t i = 0; i < s->profile->message->n_sample; i++) {
		int64_t count, time_ns;

		pgo_samples_values(s, i, &count, &time_ns);
		if (count < 0 || time_ns < 0)
			return true;
	}
	return false;
}

/* ---- whose ---------------------------------------------------------------------------------- */

static const MESSAGE(Mapping) *
	pgo_samples_mapping(const struct pgo_samples *s, const MESSAGE(Location) * location)
{
	uint64_t index;

	if (!pprof_ids_get(&s->profile->mappings, location->mapping_id, &index))
		return NULL;
	return s->profile->message->mapping[index];
}

static const MESSAGE(Location) * pgo_samples_location(const struct pgo_samples *s, uint64_t id)
{
	uint64_t index = 0;

	pprof_ids_get(&s->profile->locations, id, &index); /* checked when the profile was read */
	return s->profile->message->location[index];
}

static bool pgo_samples_fits(const struct pgo_selection *selection, const char *path)
{
	const char *slash = strchr(selection->program, '/') ? NULL : strrchr(path, '/');

	if (selection->exact)
		return !strcmp(selection->program, path);
	return !fnmatch(selection->program, slash ? slash + 1 : path, 0);
}

static int pgo_samples_match_mappings(struct pgo_samples *s)
{
	const MESSAGE(Profile) *p = s->profile->message;

	s->mapped = calloc(p->n_mapping + 1, sizeof(*s->mapped));
	if (!s->mapped)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_mapping && s->selection->program; i++)
		s->mapped[i] = pgo_samples_fits(
			s->selection, pgo_samples_text(s, p->mapping[i]->filename));
	return 0;
}

static bool pgo_samples_of_program(const struct pgo_samples *s, const MESSAGE(Sample) * sample)
{
	for (size_t i = 0; i < sample->n_location_id; i++) {
		const MESSAGE(Location) *location = pgo_samples_location(s, sample->location_id[i]);
		uint64_t index;

		if (pprof_ids_get(&s->profile->mappings, location->mapping_id, &index) &&
			s->mapped[index])
			return true;
	}
	return false;
}

static bool pgo_samples_of_comm(const struct pgo_samples *s, const MESSAGE(Sample) * sample)
{
	for (size_t i = 0; i < sample->n_label; i++) {
		if (!strcmp(pgo_samples_text(s, sample->label[i]->key), "comm"))
			return !strncmp(pgo_samples_text(s, sample->label[i]->str),
				s->selection->comm, COMM_BYTES);
	}
	return false;
}

/* Minutes of a stored file count from a round time on (agent/server/store/README.md). */
static bool pgo_samples_in_time(const struct pgo_samples *s, const MESSAGE(Sample) * sample)
{
	const struct pgo_selection *wanted = s->selection;
	const int64_t time_ns = s->profile->message->time_nanos;
	const int64_t first_ns = time_ns - time_ns % TEN_MINUTES_NS;

	for (size_t i = 0; i < sample->n_label && (wanted->from_ns || wanted->to_ns); i++) {
		const int64_t minute = sample->label[i]->num - 1;

		if (strcmp(pgo_samples_text(s, sample->label[i]->key), "fathom_minute") != 0)
			continue;
		if (time_ns < 0 || first_ns > INT64_MAX - MAX_MINUTES * MINUTE_NS || minute < 0 ||
			minute >= MAX_MINUTES)
			return false;
		return first_ns + minute * MINUTE_NS < wanted->to_ns &&
		       first_ns + (minute + 1) * MINUTE_NS > wanted->from_ns;
	}
	return true;
}

bool pgo_samples_wanted(const struct pgo_samples *s, size_t number)
{
	const MESSAGE(Sample) *sample = s->profile->message->sample[number];
	int64_t count, time_ns;

	pgo_samples_values(s, number, &count, &time_ns);
	if (!count && !time_ns) /* a wait, for example */
		return false;
	if (s->selection->comm && !pgo_samples_of_comm(s, sample))
		return false;
	if (!pgo_samples_in_time(s, sample))
		return false;
	return !s->selection->program || pgo_samples_of_program(s, sample);
}

/* ---- Go ------------------------------------------------------------------------------------- */

static bool pgo_samples_is_go(const struct pgo_samples *s, const MESSAGE(Location) * location)
{
	for (size_t i = 0; i < location->n_line; i++) {
		const char *file;
		uint64_t index;
		size_t length;

		if (!pprof_ids_get(&s->profile->functions, location->line[i]->function_id, &index))
			continue;
		file = pgo_samples_text(s, s->profile->message->function[index]->filename);
		length = strlen(file);
		if (length > 3 && !strcmp(file + length - 3, ".go"))
			return true;
	}
	return false;
}

const MESSAGE(Mapping) * pgo_samples_go_mapping(const struct pgo_samples *s, size_t number)
{
	const MESSAGE(Sample) *sample = s->profile->message->sample[number];

	for (size_t i = 0; i < sample->n_location_id; i++) {
		const MESSAGE(Location) *location = pgo_samples_location(s, sample->location_id[i]);

		if (pgo_samples_is_go(s, location))
			return pgo_samples_mapping(s, location);
	}
	return NULL;
}

/* ---- a profile ------------------------------------------------------------------------------ */

int pgo_samples_init(struct pgo_samples *s, const struct pprof_read *profile,
	const struct pgo_selection *selection, const char **ret_why)
{
	*s = (struct pgo_samples){ .profile = profile, .selection = selection };
	s->count_type = pgo_samples_type(s, "samples", "count");
	s->time_type = pgo_samples_type(s, "cpu", "nanoseconds");
	*ret_why = "it is no CPU profile: it has neither samples/count nor cpu/nanoseconds";
	if (s->count_type == SIZE_MAX && s->time_type == SIZE_MAX)
		return -EBADMSG;
	*ret_why = "it has negative values, as the difference of two profiles has";
	if (pgo_samples_negative(s))
		return -EBADMSG;
	return pgo_samples_match_mappings(s);
}

void pgo_samples_deinit(struct pgo_samples *s)
{
	free(s->mapped);
	*s = (struct pgo_samples){ 0 };
}
