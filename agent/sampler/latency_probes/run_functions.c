/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a run, whether they are a file's or the kernel's. */
#include "agent/sampler/latency_probes/latency_probes_internal.h"

size_t run_function_count(const struct probe_run *run)
{
	return run->kernel ? kernel_functions_count(run->kernel)
			   : probed_functions_count(run->files);
}

static struct run_function run_function_of_kernel(const struct probe_run *run, size_t number)
{
	const struct kernel_function *f = kernel_functions_at(run->kernel, number);

	return (struct run_function){
		.name = f->name,
		.linkage = f->name,
		.binary = f->binary,
		.number = f->number,
		.numbered = f->numbered,
		.measured = f->numbered && !f->refusal,
		.sites = 2 * (uint32_t)f->address_count,
		.refusal = kernel_refusal_text(f->refusal),
	};
}

static const char *run_function_refusal(const struct probed_function *f)
{
	switch (f->state) {
	case PROBED_FUNCTION_MEASURED:
		return "";
	case PROBED_FUNCTION_REFUSED:
		return function_refusal_text(f->refusal);
	case PROBED_FUNCTION_UNKNOWN_FIBERS:
		return "its goroutines cannot be read in this version of Go";
	default:
		return "the kernel does not probe one of its instructions";
	}
}

struct run_function run_function_at(const struct probe_run *run, size_t number)
{
	const struct probed_function *f;
	struct probed_file file;

	if (run->kernel)
		return run_function_of_kernel(run, number);
	f = probed_functions_at(run->files, number);
	file = probed_files_at(run->files, f->file);
	return (struct run_function){
		.name = f->name,
		.linkage = f->linkage,
		.binary = file.path,
		.build_id = file.build_id,
		.address = f->address,
		.number = f->probe,
		.numbered = f->numbered,
		.measured = f->state == PROBED_FUNCTION_MEASURED,
		.refusal = run_function_refusal(f),
	};
}
