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
		.restarts = f->restarts,
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

static const char *kernel_refusal_of(
	const struct kernel_functions *kernel, const struct kernel_function *f)
{
	if (f->refusal)
		return kernel_refusal_text(f->refusal);
	return kernel_functions_problem(kernel) ? "kernel functions cannot be probed here" : NULL;
}

static struct latency_candidate kernel_candidate_of(
	const struct kernel_functions *kernel, const struct kernel_function *f)
{
	return (struct latency_candidate){
		.name = f->name,
		.linkage = f->name,
		.binary = f->binary,
		.entry_count = (uint32_t)f->address_count,
		.return_count = (uint32_t)f->address_count,
		.aliases = f->aliases,
		.note = f->address_count > 1 ? "several functions have this name; they are "
					       "measured as one"
					     : "",
		.refusal = kernel_refusal_of(kernel, f),
		.caller = "",
		.file = "",
	};
}

int latency_candidates_of(const struct probed_files *files, const struct kernel_functions *kernel,
	struct latency_candidates *ret_candidates)
{
	size_t user = probed_functions_count(files);
	size_t count = user + (kernel ? kernel_functions_count(kernel) : 0);
	struct latency_candidate *items = calloc(count + 1, sizeof(*items));
	struct latency_candidates list = { .items = items, .count = count };

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < user; i++)
		items[i] = candidate_of(files, probed_functions_at(files, i));
	for (size_t i = user; i < count; i++)
		items[i] = kernel_candidate_of(kernel, kernel_functions_at(kernel, i - user));
	list.excluded = kernel ? kernel_functions_excluded(kernel) : 0;
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
