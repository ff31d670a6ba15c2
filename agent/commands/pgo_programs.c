/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/commands/pgo.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_PROGRAMS = 4096,
	NAMES_BYTES = 16 << 20,
};

int pgo_programs_init(struct pgo_programs *p)
{
	*p = (struct pgo_programs){ 0 };
	return intern_init(&p->names, MAX_PROGRAMS, NAMES_BYTES);
}

void pgo_programs_deinit(struct pgo_programs *p)
{
	intern_deinit(&p->names);
	free(p->weights);
	*p = (struct pgo_programs){ 0 };
}

int pgo_programs_add(struct pgo_programs *p, const char *name, uint64_t weight)
{
	size_t known = p->names.count;
	uint32_t number;
	int err = array_reserve(p->weights, p->capacity, known + 1, MAX_PROGRAMS + 1);

	if (!err)
		err = intern_string(&p->names, name, &number);
	if (err == -E2BIG) {
		p->unlisted += weight;
		return 0;
	}
	if (err)
		return err;
	if (number == known)
		p->weights[number] = 0;
	if (number)
		p->weights[number] += weight;
	return 0;
}

size_t pgo_programs_heaviest(const struct pgo_programs *p, uint32_t *ret_numbers, size_t max)
{
	size_t count = 0;

	for (uint32_t number = 1; number < p->names.count; number++) {
		size_t at = count;

		while (at > 0 && p->weights[ret_numbers[at - 1]] < p->weights[number])
			at--;
		if (at == max)
			continue;
		for (size_t i = MIN(count, max - 1); i > at; i--)
			ret_numbers[i] = ret_numbers[i - 1];
		ret_numbers[at] = number;
		count = MIN(count + 1, max);
	}
	return count;
}

static int pgo_programs_add_sample(
	struct pgo_programs *p, const struct pgo_samples *samples, size_t number, bool builds)
{
	const Perftools__Profiles__Mapping *mapping = pgo_samples_go_mapping(samples, number);
	autofree char *name = NULL;
	const char *path, *build_id;
	int64_t count, time_ns;
	int length;

	if (!mapping)
		return 0;
	pgo_samples_values(samples, number, &count, &time_ns);
	path = pprof_read_text(samples->profile, mapping->filename);
	build_id = pprof_read_text(samples->profile, mapping->build_id);
	length = builds && *build_id ? asprintf(&name, "%s (build ID %s)", path, build_id)
				     : asprintf(&name, "%s", path);
	if (length < 0)
		return -ENOMEM;
	return pgo_programs_add(p, name, (uint64_t)(time_ns ? time_ns : count));
}

int pgo_programs_survey(struct pgo_programs *p, const struct pgo_samples *samples, bool builds)
{
	int err = 0;

	for (size_t i = 0; i < samples->profile->message->n_sample && !err; i++) {
		if (pgo_samples_wanted(samples, i))
			err = pgo_programs_add_sample(p, samples, i, builds);
	}
	return err;
}
