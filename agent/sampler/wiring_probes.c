/* SPDX-License-Identifier: Apache-2.0 */
/* Wires named probes on functions to processes, files and windows. Nothing is decided here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/sealing.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* While files are being attached or detached. */
static const uint64_t TEND_NS = 50000000;
/* What a trap costs on hardware, about: where it cannot be measured. */
static const uint64_t TRAP_NS = 2000;

/* ---- what the probes need ------------------------------------------------------------------- */

static int on_load(void *context, const struct latency_options *options,
	struct latency **ret_latency, const char **ret_step)
{
	struct sampler *sampler = context;
	struct bpf_object *object;
	int err = collect_add_latency(sampler->collect, options, ret_step);

	if (err)
		return err;
	object = collect_probe_object(sampler->collect, "latency");
	err = latency_create(object, options, &sampler->latency_of_probes, ret_step);
	if (err) {
		collect_remove_latency(sampler->collect);
		return err;
	}
	*ret_latency = sampler->latency_of_probes;
	memory_guard_release(&sampler->memory_guard);
	return 0;
}

static int on_load_kernel(void *context, struct kernel_latency **ret_kernel, const char **ret_step)
{
	static const struct latency_options options = { .by_sets = true, .kernel = true };
	struct sampler *sampler = context;
	struct bpf_object *object;
	int err = collect_add_kernel_latency(sampler->collect, &options, ret_step);

	if (err)
		return err;
	*ret_step = "prepare the probes of kernel functions";
	object = collect_probe_object(sampler->collect, kernel_latency_probe_name(false));
	err = kernel_latency_create(object, false, &sampler->kernel_latency_of_probes);
	if (err) {
		collect_remove_kernel_latency(sampler->collect);
		return err;
	}
	*ret_kernel = sampler->kernel_latency_of_probes;
	memory_guard_release(&sampler->memory_guard);
	return 0;
}

static void on_unload(void *context)
{
	struct sampler *sampler = context;

	if (sampler->kernel_latency_of_probes) {
		kernel_latency_destroy(take(sampler->kernel_latency_of_probes));
		collect_remove_kernel_latency(sampler->collect);
	}
	latency_destroy(take(sampler->latency_of_probes));
	collect_remove_latency(sampler->collect);
}

/* ---- time ----------------------------------------------------------------------------------- */

static void probes_schedule(struct sampler *sampler);

static void on_tend(void *context)
{
	struct sampler *sampler = context;

	loop_step(sampler->loop, "function probes");
	latency_probes_tend(sampler->latency_probes);
	probes_schedule(sampler);
}

/* Looks often only while something is being attached or detached. */
static void probes_schedule(struct sampler *sampler)
{
	bool busy = latency_probes_are_busy(sampler->latency_probes);

	if (busy && sampler->probes_timer < 0) {
		(void)loop_timer(
			sampler->loop, TEND_NS, TEND_NS, on_tend, sampler, &sampler->probes_timer);
	} else if (!busy && sampler->probes_timer >= 0) {
		loop_cancel(sampler->loop, sampler->probes_timer);
		sampler->probes_timer = -1;
	}
}

void sampler_probes_upkeep(struct sampler *sampler)
{
	latency_probes_tick(sampler->latency_probes, clock_monotonic_ns());
	probes_schedule(sampler);
}

/* ---- life ----------------------------------------------------------------------------------- */

int sampler_probes_create(struct sampler *sampler)
{
	return latency_probes_create(
		&(struct latency_probes_options){
			.processes = sampler->processes,
			.load = on_load,
			.load_kernel = on_load_kernel,
			.unload = on_unload,
			.open = sampler_open_probed,
			.want = sampler_want_functions,
			.check_file = sampler_check_probed,
			.fibers = sampler_fibers_of,
			.trap_ns = TRAP_NS,
			.context = sampler,
		},
		&sampler->latency_probes);
}

void sampler_probes_destroy(struct sampler *sampler)
{
	if (sampler->loop && sampler->probes_timer >= 0)
		loop_cancel(sampler->loop, sampler->probes_timer);
	sampler->probes_timer = -1;
	latency_probes_destroy(take(sampler->latency_probes));
}

/* ---- windows -------------------------------------------------------------------------------- */

void sampler_probes_seal(struct sampler *sampler, struct sealed_window *window)
{
	struct window_latency *latency = &sampler->sealed_latency;

	if (!latency_probes_seal(sampler->latency_probes, clock_monotonic_ns(), latency))
		return;
	sealing_describe_latency(latency, sampler->processes, &sampler->sealed_processes);
	window->latency = latency;
}

void sampler_probes_forget_sealed(struct sampler *sampler)
{
	latency_probes_free(&sampler->sealed_latency);
}

/* ---- what the owner calls ------------------------------------------------------------------- */

int sampler_latency_set_probes(struct sampler *sampler, const struct latency_probe *probes,
	size_t count, struct latency_probes_problem *ret_problem)
{
	int err = latency_probes_check(probes, count, ret_problem);

	if (!err)
		err = latency_probes_set(sampler->latency_probes, probes, count, ret_problem);
	probes_schedule(sampler);
	return err;
}

struct sampler_latency_cost sampler_latency_cost(const struct sampler *sampler)
{
	return latency_probes_cost(sampler->latency_probes);
}

void sampler_latency_allow(struct sampler *sampler, double share)
{
	latency_probes_allow(sampler->latency_probes, share);
}
