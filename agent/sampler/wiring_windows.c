/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the windows to the rooms that they call. Nothing is decided here. */
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/recording/notes.h"
#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/sealing.h"
#include "base/clock.h"

static void on_drain(void *context)
{
	struct sampler *sampler = context;

	(void)collect_drain(sampler->collect, 0);
}

static uint32_t on_next_number(void *context)
{
	struct sampler *sampler = context;

	return collect_next_window(sampler->collect);
}

static bool on_is_building(void *context)
{
	const struct sampler *sampler = context;

	return builds_pending(sampler->builds) > 0;
}

static void on_completed(void *context)
{
	const struct sampler *sampler = context;

	module_indexes_identify(sampler->module_indexes);
}

static void sampler_sift(struct sampler *sampler, struct profile *profile)
{
	sifting_run(&sampler->sifting, profile, clock_monotonic_ns());
}

static void on_sealing(void *context, uint32_t number)
{
	struct sampler *sampler = context;

	pending_walks_flush(&sampler->walks, number);
	waits_move(sampler->waits, number);
	sampler_sift(sampler, windows_profile(sampler->windows, number));
}

static void sampler_forget_sealed(struct sampler *sampler)
{
	window_processes_deinit(&sampler->sealed_processes);
	window_processes_init(&sampler->sealed_processes);
	sampler_probes_forget_sealed(sampler);
	symbolize_begin(sampler->symbolize, NULL);
}

/* WINDOW with what it says about its processes, until the next one is made. */
static struct sealed_window sampler_describe(
	struct sampler *sampler, const struct sealed_window *window)
{
	struct sealed_window described = *window;

	sampler_forget_sealed(sampler);
	sampler->sealed_processes.began_ns = window->began_ns;
	sealing_describe(
		window->profile, sampler->processes, &sampler->metrics, &sampler->sealed_processes);
	described.processes = &sampler->sealed_processes;
	described.anon_module = processes_anon_module(sampler->processes);
	return described;
}

static void on_sealed(void *context, const struct sealed_window *window)
{
	struct sampler *sampler = context;
	struct sealed_window described;

	if (!sampler->sealed)
		return;
	described = sampler_describe(sampler, window);
	sampler_probes_seal(sampler, &described);
	sampler->sealed(sampler->sealed_context, &described);
	sampler_forget_sealed(sampler);
}

static void on_released(void *context)
{
	struct sampler *sampler = context;

	memory_guard_release(&sampler->memory_guard);
}

static void on_settled(void *context, uint64_t open_ns)
{
	struct sampler *sampler = context;

	processes_sweep(sampler->processes, open_ns);
	module_sweeper_idle(&sampler->module_sweeper, open_ns, clock_monotonic_ns());
	kernel_symbols_forget(sampler->kernel_symbols, open_ns);
}

static uint64_t windows_period_of(const struct collect_options *collect)
{
	return collect->frequency_hz ? UINT64_C(1000000000) / collect->frequency_hz
				     : collect->period;
}

int sampler_windows_create(struct sampler *sampler, const struct sampler_options *options)
{
	struct sample_types types;

	probes_sample_types(&options->collect, &types);
	return windows_create(
		&(struct windows_options){
			.loop = sampler->loop,
			.limit_bytes = options->profile_limit_bytes,
			.period = windows_period_of(&options->collect),
			.types = types,
			.handlers = {
				.drain = on_drain,
				.next_number = on_next_number,
				.is_building = on_is_building,
				.completed = on_completed,
				.sealing = on_sealing,
				.sealed = on_sealed,
				.released = on_released,
				.settled = on_settled,
				.context = sampler,
			},
		},
		&sampler->windows);
}

int sampler_rotate_window(struct sampler *sampler)
{
	note_call(SAMPLER_CALL_TURN_WINDOW, 0);
	return windows_rotate(sampler->windows);
}

struct sealed_window sampler_last_window(struct sampler *sampler)
{
	struct sealed_window window;

	note_call(SAMPLER_CALL_LAST_WINDOW, 0);
	pending_walks_flush(&sampler->walks, 0);
	window = windows_current(sampler->windows);
	sampler_sift(sampler, windows_profile(sampler->windows, window.number));
	return sampler_describe(sampler, &window);
}

int sampler_tap_open(struct sampler *sampler, uint32_t pid, struct windows_tap **ret_tap)
{
	note_call(SAMPLER_CALL_TAP_OPEN, pid);
	return windows_tap_open(sampler->windows, pid, ret_tap);
}

struct sealed_window sampler_tap_read(struct sampler *sampler, const struct windows_tap *tap)
{
	struct sealed_window window;

	note_call(SAMPLER_CALL_TAP_PROFILE, windows_tap_number(sampler->windows, tap));
	window = windows_tap_read(sampler->windows, tap);
	sampler_sift(sampler, windows_tap_profile(tap));
	return sampler_describe(sampler, &window);
}

void sampler_tap_close(struct sampler *sampler, struct windows_tap *tap)
{
	note_call(SAMPLER_CALL_TAP_CLOSE, windows_tap_number(sampler->windows, tap));
	windows_tap_close(tap);
}
