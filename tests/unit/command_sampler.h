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
#include "agent/sampler/sampler_trace.h"
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
	struct kernel_functions *kernel_functions; /* likewise; NULL = none were wanted */
	int add_error; /* 0 = none */
	struct trace_counts trace_counts;
	const char *hint, *hint_library;
	int hint_error;
	size_t unanswered; /* so often do files not answer */
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

size_t sampler_latency_read_again(struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

size_t sampler_latency_open_again(struct sampler *sampler)
{
	if (sampler->unanswered)
		fputs("[open again]\n", stderr);
	return sampler->unanswered ? sampler->unanswered-- : 0;
}

int sampler_latency_add_path(struct sampler *sampler, const char *path, bool program)
{
	fprintf(stderr, "[add %s%s]\n", path, program ? ", the program" : "");
	if (sampler->add_error != -EAGAIN)
		return sampler->add_error;
	return sampler_latency_open_again(sampler) ? -EAGAIN : 0;
}

int sampler_latency_hint(const struct sampler *sampler, const struct function_patterns *patterns,
	size_t pattern, char **ret_name, char **ret_library)
{
	(void)patterns;
	if (sampler->hint_error)
		return sampler->hint_error;
	*ret_name = !pattern && sampler->hint ? strdup(sampler->hint) : NULL;
	*ret_library = !pattern && sampler->hint_library ? strdup(sampler->hint_library) : NULL;
	return 0;
}

struct sampler_place sampler_trace_place(
	struct sampler *sampler, uint32_t pid, uint64_t return_address)
{
	(void)sampler;
	(void)pid;
	return (struct sampler_place){
		.kind = return_address ? SAMPLER_PLACE_LINE : SAMPLER_PLACE_UNKNOWN,
		.file = "/src/caller.c",
		.line = (uint32_t)return_address,
	};
}

struct sampler_place sampler_trace_kernel_place(struct sampler *sampler, uint64_t kaddr)
{
	(void)sampler;
	return (struct sampler_place){
		.kind = kaddr ? SAMPLER_PLACE_KERNEL : SAMPLER_PLACE_UNKNOWN,
		.module = kaddr & 1 ? "ext4" : "",
		.symbol = "caller",
		.address = kaddr,
	};
}

int sampler_trace_fetch(struct sampler *sampler, uint32_t number, const struct argument_plan *entry,
	const struct argument_plan *results)
{
	(void)sampler, (void)number, (void)entry, (void)results;
	return 0;
}

/* There is no index cache. */
struct cache *sampler_trace_cache(struct sampler *sampler)
{
	(void)sampler;
	return NULL;
}

void sampler_trace_counts(const struct sampler *sampler, struct trace_counts *ret_counts)
{
	*ret_counts = sampler->trace_counts;
}

void sampler_latency_want_libraries(struct sampler *sampler)
{
	(void)sampler;
	fputs("[want libraries]\n", stderr);
}

const struct probed_files *sampler_probed_files(const struct sampler *sampler)
{
	return sampler->probed_files;
}

const struct kernel_functions *sampler_kernel_functions(const struct sampler *sampler)
{
	return sampler->kernel_functions;
}

/* Nothing is measured: the kernel is not there. */
const struct latency *sampler_latency(const struct sampler *sampler)
{
	(void)sampler;
	return NULL;
}

uint64_t sampler_latency_stacks(const struct sampler *sampler)
{
	(void)sampler;
	return 0;
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

int daemon_check(const struct config *config, char **ret_message)
{
	(void)config;
	(void)ret_message;
	return 0;
}

int daemon_run(struct config *config, int argc, char **argv)
{
	const char *node = config_text(config, SETTING_node);

	fprintf(stderr, "[agent %s, %d arguments of %s]\n", node ? node : "unnamed", argc, argv[0]);
	return fake.start_error;
}
