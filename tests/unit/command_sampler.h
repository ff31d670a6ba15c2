/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A fake of agent/sampler/sampler.h for tests of the commands that sample: each call is written to
 * standard error as `[name …]`, fails as the test says, and the window holds what the test puts
 * into tests/unit/report_fixture.h. Include in one file of a test program, in place of the sampler
 * and the daemon.
 */
#include <errno.h>
#include <stdio.h>

#include "agent/daemon/daemon.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/sampler_latency.h"
#include "tests/unit/report_fixture.h"

static struct sampler {
	struct sampler_options options;
	struct fixture *world;
	struct sealed_window window;
	int create_error, prepare_error, start_error, stop_error, rotate_error; /* 0 = none */
	unsigned int pending, pending_after; /* builds before and after sampler_finish_debug() */
	struct builds_improving improving; /* debug files that are still missing then */
	uint64_t bpf_ns, bpf_runs, builds_cpu_ns;
	struct probed_files *probed_files; /* what a measuring of functions found */
	int add_error; /* 0 = none */
	void (*on_create)(void), (*on_prepare)(void), (*on_start)(void), (*on_finish)(void);
} fake;

int sampler_create(const struct sampler_options *options, struct sampler **ret_sampler,
	struct sampler_failure *ret_failure)
{
	fprintf(stderr, "[create%s]\n", options->follow ? " follow" : "");
	fake.options = *options;
	if (fake.create_error) {
		*ret_failure = (struct sampler_failure){ "load BPF", "cpu" };
		return fake.create_error;
	}
	if (fake.on_create)
		fake.on_create();
	*ret_sampler = &fake;
	return 0;
}

void sampler_destroy(struct sampler *sampler)
{
	if (sampler)
		fputs("[destroy]\n", stderr);
}

int sampler_prepare(struct sampler *sampler, uint64_t wait_ns)
{
	fprintf(stderr, "[prepare %llu ms]\n", (unsigned long long)wait_ns / 1000000);
	if (sampler->on_prepare)
		sampler->on_prepare();
	return sampler->prepare_error;
}

int sampler_start(struct sampler *sampler)
{
	fputs("[start]\n", stderr);
	if (!sampler->start_error && sampler->on_start)
		sampler->on_start();
	return sampler->start_error;
}

int sampler_stop(struct sampler *sampler)
{
	fputs("[stop]\n", stderr);
	return sampler->stop_error;
}

int sampler_finish_builds(struct sampler *sampler, uint64_t wait_ns)
{
	fprintf(stderr, "[finish builds %llu ms]\n", (unsigned long long)wait_ns / 1000000);
	if (sampler->on_prepare)
		sampler->on_prepare();
	return sampler->prepare_error;
}

int sampler_latency_add_path(struct sampler *sampler, const char *path, bool program)
{
	fprintf(stderr, "[add %s%s]\n", path, program ? ", the program" : "");
	return sampler->add_error;
}

const struct probed_files *sampler_probed_files(const struct sampler *sampler)
{
	return sampler->probed_files;
}

/* Nothing is measured: the kernel is not there. */
const struct latency *sampler_latency(const struct sampler *sampler)
{
	(void)sampler;
	return NULL;
}

void sampler_latency_comm(struct sampler *sampler, uint32_t pid, char *comm, size_t size)
{
	(void)sampler;
	snprintf(comm, size, "process-%u", pid);
}

void sampler_latency_detach(struct sampler *sampler)
{
	(void)sampler;
	fputs("[detach]\n", stderr);
}

int sampler_finish_debug(struct sampler *sampler, uint64_t wait_ns)
{
	fprintf(stderr, "[finish %llu ms]\n", (unsigned long long)wait_ns / 1000000);
	if (sampler->on_finish)
		sampler->on_finish();
	sampler->pending = sampler->pending_after;
	return 0;
}

unsigned int sampler_pending_builds(const struct sampler *sampler)
{
	return sampler->pending;
}

struct builds_improving sampler_pending_debug(const struct sampler *sampler)
{
	return sampler->improving;
}

/* The window is sealed at once. */
int sampler_rotate_window(struct sampler *sampler)
{
	if (sampler->rotate_error)
		return sampler->rotate_error;
	sampler->window.number++;
	sampler->window.profile = sampler->world->profile;
	sampler->window.processes = describe(sampler->world);
	sampler->window.anon_module = processes_anon_module(sampler->world->processes);
	sampler->options.sealed(sampler->options.sealed_context, &sampler->window);
	return 0;
}

struct sealed_window sampler_last_window(struct sampler *sampler)
{
	sampler->window.profile = sampler->world->profile;
	sampler->window.processes = describe(sampler->world);
	sampler->window.anon_module = processes_anon_module(sampler->world->processes);
	return sampler->window;
}

/* The fake's window describes the processes as they are when they are reported. */
struct symbolize *sampler_symbolize(struct sampler *sampler)
{
	return sealed_sources(sampler->world)->symbolize;
}

struct metrics *sampler_metrics_to_add(struct sampler *sampler)
{
	return &sampler->world->metrics;
}

const struct metrics *sampler_metrics(const struct sampler *sampler)
{
	return &sampler->world->metrics;
}

uint64_t sampler_samples(const struct sampler *sampler)
{
	(void)sampler;
	return 12345;
}

uint64_t sampler_file_helper_cpu_ns(const struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

uint64_t sampler_builds_cpu_ns(const struct sampler *sampler)
{
	return sampler->builds_cpu_ns;
}

bool sampler_bpf_time(const struct sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs)
{
	if (!sampler->bpf_runs)
		return false;
	*ret_ns = sampler->bpf_ns;
	*ret_runs = sampler->bpf_runs;
	return true;
}

int daemon_run(struct config *config, int argc, char **argv)
{
	const char *node = config_text(config, SETTING_node);

	fprintf(stderr, "[agent %s, %d arguments of %s]\n", node ? node : "unnamed", argc, argv[0]);
	return fake.start_error;
}
