/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose functions are to be measured and that did not answer in time: they are opened again.
 */
#include <errno.h>
#include <signal.h>

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

static bool latency_is_read(const struct sampler *sampler, uint32_t pid)
{
	const struct process *p = processes_of_pid(sampler->processes, pid);

	return p && !p->unreadable && !p->stale;
}

/* Returns whether PID exists and could not be read. */
static bool latency_read_again(struct sampler *sampler, uint32_t pid)
{
	if (latency_is_read(sampler, pid) || (kill((pid_t)pid, 0) && errno == ESRCH))
		return false;
	(void)processes_scan(sampler->processes, &pid, 1);
	return !latency_is_read(sampler, pid);
}

size_t sampler_latency_read_again(struct sampler *sampler)
{
	const struct measured_pids *pids = &sampler->measured_pids;
	size_t unread = 0;

	for (size_t i = 0; sampler->probed_files && pids->is_filter && i < pids->count; i++)
		unread += latency_read_again(sampler, pids->items[i]);
	return unread;
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
