/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A fake of agent/sampler/sampler.h without a kernel, for tests of agent/daemon: it records calls,
 * fails as configured, and its windows hold what the test puts into tests/unit/report_fixture.h.
 * Include in one file of a test program, in place of the sampler.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/sampler.h"
#include "agent/sampler/seam/container_choices.h"
#include "agent/sampler/seam/latency_probes.h"
#include "base/clock.h"
#include "tests/unit/report_fixture.h"

enum { FAKE_SAMPLER_PROBES = 8 };

struct sampler {
	struct fixture *world;
	struct metrics metrics;
	struct sampler_sizes sizes;
	struct sampler_trouble trouble;
	const struct selection *selection;
	struct container_choices *choices; /* of the last sampler_choose() */
	uint64_t containers_missed;
	struct sealed_window window, sealed; /* the current window and the previous one */
	unsigned int rotations, pauses, selects, offers; /* number of calls */
	uint64_t hz; /* of the last sampler_set_frequency() */
	struct sampler_latency_cost latency_cost;
	double latency_share; /* of the last sampler_latency_allow() */
	/* Of sampler_latency_set_probes(): the calls, and what the last one that succeeded set. */
	unsigned int probe_sets;
	size_t probe_count;
	char probes[FAKE_SAMPLER_PROBES][LATENCY_PROBE_NAME_BYTES + 1];
	char selectors[FAKE_SAMPLER_PROBES][128];
	int probes_error;
	double builds_share; /* of the last sampler_set_builds_share() */
	uint64_t builds_charged_ns;
	bool paused;
	bool rotated_unpaused, retimed_unpaused; /* called while sampling was not paused */
	int rotate_error, hz_error, pause_error, create_error, start_error, tap_error;
	struct sampler_options options; /* of sampler_create() */
	unsigned int destroyed, stopped, taps_open;
	uint32_t tapped_pid; /* of the last sampler_tap_open() */
	int sealed_fd; /* gets a byte for each window passed to options.sealed; 0 = none */
	bool stops_at_start; /* sampler_start() sends SIGTERM: the agent ends at once */
};

static struct sampler *fake_sampler_next; /* what sampler_create() gives out; NULL = -ENOSYS */

int sampler_create(const struct sampler_options *options, struct sampler **ret_sampler,
	struct sampler_failure *ret_failure)
{
	if (!fake_sampler_next)
		return -ENOSYS;
	fake_sampler_next->options = *options;
	*ret_failure = (struct sampler_failure){ .step = "the fake" };
	if (fake_sampler_next->create_error)
		return fake_sampler_next->create_error;
	*ret_sampler = fake_sampler_next;
	return 0;
}

void sampler_destroy(struct sampler *sampler)
{
	if (!sampler)
		return;
	sampler->destroyed++;
	container_choices_destroy(sampler->choices);
	sampler->choices = NULL;
}

/* The signal waits in the loop's descriptor until the loop runs. */
int sampler_start(struct sampler *sampler)
{
	if (!sampler->start_error && sampler->stops_at_start)
		assert_int_equal(kill(getpid(), SIGTERM), 0);
	return sampler->start_error;
}

int sampler_stop(struct sampler *sampler)
{
	sampler->stopped++;
	return 0;
}

unsigned int sampler_max_waiting_builds(const struct sampler *sampler)
{
	(void)sampler;
	return 7;
}

struct sampler_trouble sampler_trouble(const struct sampler *sampler)
{
	return sampler->trouble;
}

unsigned int sampler_pending_builds(const struct sampler *sampler)
{
	(void)sampler;
	return 3;
}

static void fake_sampler_seal(void *context)
{
	struct sampler *sampler = context;

	sampler->options.sealed(sampler->options.sealed_context, &sampler->sealed);
	if (sampler->sealed_fd)
		assert_int_equal(write(sampler->sealed_fd, "", 1), 1);
}

int sampler_rotate_window(struct sampler *sampler)
{
	int timer;

	sampler->rotations++;
	sampler->rotated_unpaused |= !sampler->paused;
	if (sampler->rotate_error)
		return sampler->rotate_error;
	sampler->sealed = sampler->window;
	sampler->sealed.ended_ns = clock_monotonic_ns();
	sampler->window.number++;
	sampler->window.began_ns = sampler->sealed.ended_ns;
	sampler->window.began_real_ns = clock_real_ns();
	if (!sampler->options.sealed)
		return 0;
	return loop_timer(sampler->options.loop, 0, 0, fake_sampler_seal, sampler, &timer);
}

struct sealed_window sampler_last_window(struct sampler *sampler)
{
	struct sealed_window window = sampler->window;

	window.ended_ns = clock_monotonic_ns();
	return window;
}

int sampler_tap_open(struct sampler *sampler, uint32_t pid, struct windows_tap **ret_tap)
{
	if (sampler->tap_error)
		return sampler->tap_error;
	sampler->taps_open++;
	sampler->tapped_pid = pid;
	*ret_tap = (struct windows_tap *)sampler;
	return 0;
}

struct sealed_window sampler_tap_read(struct sampler *sampler, const struct windows_tap *tap)
{
	assert_ptr_equal(tap, sampler);
	return sampler_last_window(sampler);
}

void sampler_tap_close(struct sampler *sampler, struct windows_tap *tap)
{
	assert_ptr_equal(tap, sampler);
	sampler->taps_open--;
}

/* The fake's windows describe the processes as they are when they are reported. */
struct symbolize *sampler_symbolize(struct sampler *sampler)
{
	return sealed_sources(sampler->world)->symbolize;
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

void sampler_choose(struct sampler *sampler, struct container_choices *choices)
{
	container_choices_destroy(sampler->choices);
	sampler->choices = choices;
}

uint64_t sampler_containers_missed(const struct sampler *sampler)
{
	return sampler->containers_missed;
}

int sampler_pause(struct sampler *sampler, bool pause)
{
	sampler->pauses += pause;
	sampler->paused = pause;
	return pause ? 0 : sampler->pause_error;
}

int sampler_set_frequency(struct sampler *sampler, uint64_t hz)
{
	sampler->retimed_unpaused |= !sampler->paused;
	sampler->hz = hz;
	return sampler->hz_error;
}

int sampler_latency_set_probes(struct sampler *sampler, const struct latency_probe *probes,
	size_t count, struct latency_probes_problem *ret_problem)
{
	sampler->probe_sets++;
	if (sampler->probes_error && count) {
		*ret_problem = (struct latency_probes_problem){ 0, "has a problem" };
		return sampler->probes_error;
	}
	assert_in_range(count, 0, FAKE_SAMPLER_PROBES);
	sampler->probe_count = count;
	for (size_t i = 0; i < count; i++) {
		snprintf(sampler->probes[i], sizeof(sampler->probes[i]), "%s", probes[i].name);
		snprintf(sampler->selectors[i], sizeof(sampler->selectors[i]), "%s",
			probes[i].processes);
	}
	return 0;
}

struct sampler_latency_cost sampler_latency_cost(const struct sampler *sampler)
{
	return sampler->latency_cost;
}

void sampler_latency_allow(struct sampler *sampler, double share)
{
	sampler->latency_share = share;
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

void sampler_set_builds_share(struct sampler *sampler, double share)
{
	sampler->builds_share = share;
}

uint64_t sampler_builds_charged_ns(const struct sampler *sampler)
{
	return sampler->builds_charged_ns;
}

uint64_t sampler_file_helper_cpu_ns(const struct sampler *sampler)
{
	(void)sampler;
	return 125000000;
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
