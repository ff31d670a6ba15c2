/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/schedule/upkeep.h"

#include <stdint.h>

#include "agent/loop/loop.h"

static const uint64_t UPKEEP_NS = 1000000000;

static bool upkeep_is_due(const struct upkeep *u, const struct upkeep_job *job)
{
	switch (job->when) {
	case UPKEEP_SAMPLING:
		return u->sampling;
	case UPKEEP_ONCE:
		return u->sampling && !u->once_done;
	default:
		return true;
	}
}

static void upkeep_run(void *context)
{
	struct upkeep *u = context;

	for (size_t i = 0; i < u->options.count; i++) {
		const struct upkeep_job *job = &u->options.jobs[i];

		if (!upkeep_is_due(u, job))
			continue;
		loop_step(u->options.loop, job->step);
		job->run(u->options.context);
	}
	u->once_done |= u->sampling;
}

int upkeep_init(struct upkeep *u, const struct upkeep_options *options)
{
	*u = (struct upkeep){ .options = *options, .timer = -1 };
	return loop_timer(options->loop, LOOP_NEXT_MULTIPLE, UPKEEP_NS, upkeep_run, u, &u->timer);
}

void upkeep_deinit(struct upkeep *u)
{
	if (u->options.loop)
		loop_cancel(u->options.loop, u->timer);
	*u = (struct upkeep){ .timer = -1 };
}

void upkeep_set_sampling(struct upkeep *u, bool sampling)
{
	u->sampling = sampling;
}
