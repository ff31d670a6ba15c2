/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * agent/sampler/sampler.h without a kernel, for tests of agent/daemon: it notes what it is told,
 * fails as it is told, and its windows are what the test makes of tests/unit/report_fixture.h.
 * Included by one file of a test program, it takes the place of the composition.
 */
#include <errno.h>

#include "agent/sampler/sampler.h"
#include "tests/unit/report_fixture.h"

struct agent {
	struct fixture *world;
	struct metrics metrics;
	struct agent_sizes sizes;
	const struct selection *selection;
	unsigned int turns, pauses, selects, offers; /* calls */
	uint64_t hz; /* of the last agent_set_frequency() */
	bool paused;
	bool turned_unpaused, retimed_unpaused; /* while it was sampled */
	int turn_error, hz_error;
};

int agent_create(const struct agent_options *options, struct agent **ret_agent,
	struct agent_failure *ret_failure)
{
	(void)options;
	(void)ret_agent;
	(void)ret_failure;
	return -ENOSYS;
}

void agent_destroy(struct agent *agent)
{
	(void)agent;
}

int agent_start(struct agent *agent)
{
	(void)agent;
	return 0;
}

int agent_stop(struct agent *agent)
{
	(void)agent;
	return 0;
}

unsigned int agent_pending_builds(const struct agent *agent)
{
	(void)agent;
	return 3;
}

int agent_turn_window(struct agent *agent)
{
	agent->turns++;
	agent->turned_unpaused |= !agent->paused;
	return agent->turn_error;
}

int agent_tap_open(struct agent *agent, uint32_t pid, struct agent_tap **ret_tap)
{
	(void)agent;
	(void)pid;
	(void)ret_tap;
	return -EAGAIN;
}

const struct profile *agent_tap_profile(struct agent *agent, const struct agent_tap *tap)
{
	(void)tap;
	return agent->world->profile;
}

void agent_tap_close(struct agent *agent, struct agent_tap *tap)
{
	(void)agent;
	(void)tap;
}

void agent_sources(
	struct agent *agent, const struct profile *profile, struct report_sources *ret_sources)
{
	*ret_sources = agent->world->sources;
	ret_sources->metrics = &agent->metrics;
	if (profile)
		ret_sources->profile = profile;
}

const struct metrics *agent_metrics(const struct agent *agent)
{
	return &agent->metrics;
}

struct metrics *agent_metrics_to_add(struct agent *agent)
{
	return &agent->metrics;
}

void agent_select(struct agent *agent, const struct selection *selection)
{
	agent->selects++;
	agent->selection = selection;
}

int agent_pause(struct agent *agent, bool pause)
{
	agent->pauses += pause;
	agent->paused = pause;
	return 0;
}

int agent_set_frequency(struct agent *agent, uint64_t hz)
{
	agent->retimed_unpaused |= !agent->paused;
	agent->hz = hz;
	return agent->hz_error;
}

void agent_offer_files_again(struct agent *agent)
{
	agent->offers++;
}

struct agent_sizes agent_sizes(const struct agent *agent)
{
	return agent->sizes;
}

uint64_t agent_samples(const struct agent *agent)
{
	(void)agent;
	return 12345;
}

uint64_t agent_builds_cpu_ns(const struct agent *agent)
{
	(void)agent;
	return 2500000000;
}

bool agent_bpf_time(const struct agent *agent, uint64_t *ret_ns, uint64_t *ret_runs)
{
	(void)agent;
	*ret_ns = 1500000000;
	*ret_runs = 10;
	return true;
}
