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

struct sampler {
	struct fixture *world;
	struct metrics metrics;
	struct sampler_sizes sizes;
	const struct selection *selection;
	unsigned int turns, pauses, selects, offers; /* calls */
	uint64_t hz; /* of the last agent_set_frequency() */
	bool paused;
	bool turned_unpaused, retimed_unpaused; /* while it was sampled */
	int turn_error, hz_error;
};

int sampler_create(const struct sampler_options *options, struct sampler **ret_sampler,
	struct sampler_failure *ret_failure)
{
	(void)options;
	(void)ret_sampler;
	(void)ret_failure;
	return -ENOSYS;
}

void sampler_destroy(struct sampler *sampler)
{
	(void)sampler;
}

int sampler_start(struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

int sampler_stop(struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

unsigned int sampler_pending_builds(const struct sampler *sampler)
{
	(void)sampler;
	return 3;
}

int sampler_turn_window(struct sampler *sampler)
{
	sampler->turns++;
	sampler->turned_unpaused |= !sampler->paused;
	return sampler->turn_error;
}

int sampler_tap_open(struct sampler *sampler, uint32_t pid, struct sampler_tap **ret_tap)
{
	(void)sampler;
	(void)pid;
	(void)ret_tap;
	return -EAGAIN;
}

const struct profile *sampler_tap_profile(struct sampler *sampler, const struct sampler_tap *tap)
{
	(void)tap;
	return sampler->world->profile;
}

void sampler_tap_close(struct sampler *sampler, struct sampler_tap *tap)
{
	(void)sampler;
	(void)tap;
}

void sampler_sources(
	struct sampler *sampler, const struct profile *profile, struct report_sources *ret_sources)
{
	*ret_sources = sampler->world->sources;
	ret_sources->metrics = &sampler->metrics;
	if (profile)
		ret_sources->profile = profile;
}

const struct metrics *sampler_metrics(const struct sampler *sampler)
{
	return &sampler->metrics;
}

struct metrics *sampler_metrics_to_add(struct sampler *sampler)
{
	return &sampler->metrics;
}

void sampler_select(struct sampler *sampler, const struct selection *selection)
{
	sampler->selects++;
	sampler->selection = selection;
}

int sampler_pause(struct sampler *sampler, bool pause)
{
	sampler->pauses += pause;
	sampler->paused = pause;
	return 0;
}

int sampler_set_frequency(struct sampler *sampler, uint64_t hz)
{
	sampler->retimed_unpaused |= !sampler->paused;
	sampler->hz = hz;
	return sampler->hz_error;
}

void sampler_offer_files_again(struct sampler *sampler)
{
	sampler->offers++;
}

struct sampler_sizes sampler_sizes(const struct sampler *sampler)
{
	return sampler->sizes;
}

uint64_t sampler_samples(const struct sampler *sampler)
{
	(void)sampler;
	return 12345;
}

uint64_t sampler_builds_cpu_ns(const struct sampler *sampler)
{
	(void)sampler;
	return 2500000000;
}

bool sampler_bpf_time(const struct sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs)
{
	(void)sampler;
	*ret_ns = 1500000000;
	*ret_runs = 10;
	return true;
}
