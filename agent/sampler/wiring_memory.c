/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the memory guard and the module sweeper to what they shrink. Nothing is decided here. */
#include <fcntl.h>

#include "agent/sampler/recording/notes.h"
#include "agent/sampler/sampler_internal.h"
#include "base/clock.h"
#include "base/host.h"

static void on_shrink_caches(void *context)
{
	struct sampler *sampler = context;

	module_sweeper_all(&sampler->module_sweeper, windows_oldest_open_ns(sampler->windows),
		clock_monotonic_ns());
	jit_maps_shrink(sampler->jit_maps);
	symbolize_shrink(sampler->symbolize);
}

static void on_forget_index_pages(void *context)
{
	const struct sampler *sampler = context;

	module_indexes_forget_pages(sampler->module_indexes);
}

static uint64_t on_window_bytes(void *context)
{
	const struct sampler *sampler = context;

	return profile_bytes(windows_profile(sampler->windows, 0));
}

static bool on_end_window(void *context)
{
	const struct sampler *sampler = context;

	if (!sampler->full || windows_are_busy(sampler->windows))
		return false;
	note_call(SAMPLER_CALL_FULL, 0);
	sampler->full(sampler->sealed_context);
	return true;
}

void sampler_memory_guard_init(struct sampler *sampler, const struct sampler_options *options)
{
	sampler->statm_fd = host_openat(AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC);
	memory_guard_init(
		&sampler->memory_guard, &(struct memory_guard_options){
						.statm_fd = sampler->statm_fd,
						.limit_bytes = options->memory_limit_bytes,
						.window_limit_bytes = options->profile_limit_bytes,
						.metrics = &sampler->metrics,
						.shrink_caches = on_shrink_caches,
						.forget_index_pages = on_forget_index_pages,
						.window_bytes = on_window_bytes,
						.end_window = on_end_window,
						.context = sampler,
					});
}

static void on_keep_modules(void *context)
{
	const struct sampler *sampler = context;

	pending_walks_mark_modules(&sampler->walks, intake_newest_sample_ns(&sampler->intake));
	sampler_latency_keep(sampler);
}

static void on_forget_module(void *context, struct module *module)
{
	struct sampler *sampler = context;

	sampler_latency_forget(sampler, module);
	if (sampler->unwind)
		unwind_forget_module(sampler->unwind, module);
	module_indexes_forget(sampler->module_indexes, module);
}

void sampler_module_sweeper_init(struct sampler *sampler)
{
	module_sweeper_init(&sampler->module_sweeper, &(struct module_sweeper_options){
							      .modules = sampler->modules,
							      .processes = sampler->processes,
							      .keep = on_keep_modules,
							      .forget = on_forget_module,
							      .context = sampler,
						      });
}
