/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose functions are to be measured and that did not answer in time: they are opened again.
 */
#include "agent/sampler/sampler_internal.h"
#include "base/failure.h"

static size_t latency_unopened(const struct probed_files *files)
{
	size_t unopened = 0;

	for (size_t i = 0; i < probed_files_count(files); i++) {
		const struct probed_file file = probed_files_at(files, i);

		unopened += file.state == PROBED_FILE_NOT_OPENED && failure_is_transient(file.err);
	}
	return unopened;
}

size_t sampler_latency_open_again(struct sampler *sampler)
{
	struct process *p;
	size_t iterator = 0;

	if (!sampler->probed_files || !latency_unopened(sampler->probed_files))
		return 0;
	while ((p = processes_next(sampler->processes, &iterator)))
		for (size_t i = 0; i < mappings_count(p->mappings); i++)
			sampler_latency_mapped(sampler, p, mappings_at(p->mappings, i));
	return latency_unopened(sampler->probed_files);
}
