/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/sealing.h"

#include <string.h>

/* BEGAN_NS: of the window. */
static struct process_facts sealing_facts_of(const struct process *p, uint64_t began_ns)
{
	struct process_facts facts = {
		.number = p->number,
		.pid = p->pid,
		.start_ticks = p->start_ticks,
		.program_path = process_program_path(p),
		.kernel_thread = p->kernel_thread,
		.ended = p->ended,
	};

	memcpy(facts.comm, p->comm, sizeof(facts.comm));
	/* Which samples of one that has moved are of which container is not known: none is right.
	 */
	if (!p->moved_ns || p->moved_ns < began_ns) {
		memcpy(facts.container_id, p->container_id, sizeof(facts.container_id));
		memcpy(facts.pod_uid, p->pod_uid, sizeof(facts.pod_uid));
	}
	if (p->executable) {
		facts.program = p->executable->number;
		facts.program_build_id = p->executable->id.build_id;
	}
	return facts;
}

/* Whether W has generation NUMBER now, or nothing is known about it. */
static bool sealing_describe_process(
	struct processes *processes, uint32_t number, struct window_processes *w)
{
	const struct process *p;
	struct process_facts facts;

	if (window_processes_find(w, number))
		return true;
	p = processes_find(processes, number);
	if (!p)
		return true;
	facts = sealing_facts_of(p, w->began_ns);
	return window_processes_add(w, &facts) == 0;
}

void sealing_describe(const struct profile *profile, struct processes *processes,
	struct metrics *metrics, struct window_processes *w)
{
	for (size_t i = 0; i < profile_sample_count(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);

		if (!sealing_describe_process(processes, sample->process, w))
			metrics_add(metrics, METRIC_SAMPLES_NOT_DESCRIBED, sample->count);
	}
}

void sealing_describe_latency(
	struct window_latency *latency, struct processes *processes, struct window_processes *w)
{
	for (size_t i = 0; i < latency->cell_count; i++)
		if (!sealing_describe_process(processes, latency->cells[i].process, w))
			latency->losses.not_described++;
}
