/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/samples/sifting.h"

#include "base/map.h"

enum { PROCESSES_LIMIT = 1 << 20 };

/* How often the log repeats the message; the counter counts each time. */
static const uint64_t LOG_INTERVAL_NS = UINT64_C(60) * 1000 * 1000 * 1000;

struct sifting_run {
	const struct sifting *s;
	uint64_t now_ns;
	struct map answers; /* generation → whether its samples stay */
};

static bool sifting_keeps(void *context, const struct profile_sample *sample)
{
	struct sifting_run *run = context;
	const struct process *p;
	uint64_t keeps;

	if (map_get(&run->answers, sample->process, &keeps))
		return keeps;
	p = processes_find(run->s->processes, sample->process);
	keeps = p && choosing_keeps(run->s->choosing, p, p->ended ? p->ended_ns : run->now_ns);
	/* Without memory it is asked again. */
	(void)map_set(&run->answers, sample->process, keeps);
	return keeps;
}

void sifting_run(struct sifting *s, struct profile *profile, uint64_t now_ns)
{
	struct sifting_run run = { .s = s, .now_ns = now_ns };
	uint64_t removed;

	if (!s->choosing->choices)
		return;
	map_init(&run.answers, PROCESSES_LIMIT);
	removed = profile_keep(profile, sifting_keeps, &run);
	map_deinit(&run.answers);
	if (!removed)
		return;
	metrics_add(s->metrics, METRIC_SAMPLES_UNDECIDED, removed);
	if (log_rate_allows_every(&s->log, LOG_INTERVAL_NS))
		log_info("samples of containers were left out: their pods are not known, or not "
			 "wanted any more",
			"count=%llu", (unsigned long long)removed);
}
