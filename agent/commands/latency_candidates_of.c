/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/latency_candidates_of.h"

#include <errno.h>
#include <stdlib.h>

static const char *refusal_of(const struct probed_function *f)
{
	switch (f->state) {
	case PROBED_FUNCTION_MEASURED:
		return NULL;
	case PROBED_FUNCTION_REFUSED:
		return function_refusal_text(f->refusal);
	case PROBED_FUNCTION_UNKNOWN_FIBERS:
		return "its Go version is not known, so its goroutines cannot be told apart";
	case PROBED_FUNCTION_NOT_PROBEABLE:
		break;
	}
	return "the kernel cannot probe one of its instructions";
}

static struct latency_candidate candidate_of(
	const struct probed_files *files, const struct probed_function *f)
{
	return (struct latency_candidate){
		.name = f->name,
		.linkage = f->linkage,
		.binary = probed_files_at(files, f->file).path,
		.address = f->address,
		.return_count = f->return_count,
		.aliases = f->aliases,
		.note = f->jumps_out ? "some calls end in a jump to another function; these are "
				       "not measured"
				     : "",
		.refusal = refusal_of(f),
		.caller = f->inlined_into ? f->inlined_into : "",
		.file = f->inlined_file ? f->inlined_file : "",
		.line = f->inlined_line,
		.calls = f->inlined_calls,
	};
}

int latency_candidates_of(
	const struct probed_files *files, struct latency_candidates *ret_candidates)
{
	size_t count = probed_functions_count(files);
	struct latency_candidate *items = calloc(count + 1, sizeof(*items));
	struct latency_candidates list = { .items = items, .count = count };

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		items[i] = candidate_of(files, probed_functions_at(files, i));
	for (size_t i = 0; i < probed_files_count(files); i++) {
		const struct probed_file file = probed_files_at(files, i);

		list.excluded += file.excluded + file.vendored;
	}
	*ret_candidates = list;
	return 0;
}

void latency_candidates_of_free(struct latency_candidates *candidates)
{
	free((struct latency_candidate *)candidates->items);
	*candidates = (struct latency_candidates){ 0 };
}
