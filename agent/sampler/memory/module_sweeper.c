/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/memory/module_sweeper.h"

#include <assert.h>

#include "base/cleanup.h"

enum { UNUSED_MODULES = 2048 }; /* more are not kept for programs that may run again */

static const uint64_t IDLE_NS = UINT64_C(300000000000);
static const uint64_t INTERVAL_NS = UINT64_C(30000000000);
/* A late record counts in a window that began after its time. */
static const uint64_t LATE_NS = UINT64_C(1000000000);

struct sweep_call {
	const struct module_sweeper_options *options;
	uint64_t before_ns; /* modules last used before this are freed */
};

void module_sweeper_init(
	struct module_sweeper *sweeper, const struct module_sweeper_options *options)
{
	assert(options->keep && options->forget);
	*sweeper = (struct module_sweeper){ .options = *options };
}

static bool sweeper_forget_unused(void *context, struct module *module)
{
	const struct sweep_call *call = context;

	if (module->used_ns >= call->before_ns)
		return false;
	call->options->forget(call->options->context, module);
	return true;
}

static void sweeper_sweep(struct module_sweeper *sweeper, uint64_t before_ns, uint64_t now_ns)
{
	const struct module_sweeper_options *options = &sweeper->options;
	struct sweep_call call = { options, before_ns - MIN(before_ns, LATE_NS) };

	sweeper->swept_ns = now_ns;
	options->keep(options->context);
	(void)processes_sweep_modules(options->processes, sweeper_forget_unused, &call);
}

void module_sweeper_all(struct module_sweeper *sweeper, uint64_t open_ns, uint64_t now_ns)
{
	sweeper_sweep(sweeper, MIN(open_ns, now_ns), now_ns);
}

static bool sweeper_is_full(const struct module_sweeper *sweeper)
{
	return modules_count(sweeper->options.modules) > sweeper->kept + UNUSED_MODULES;
}

void module_sweeper_idle(struct module_sweeper *sweeper, uint64_t open_ns, uint64_t now_ns)
{
	uint64_t idle_since_ns = now_ns - MIN(now_ns, IDLE_NS);

	if (!sweeper_is_full(sweeper) && now_ns - sweeper->swept_ns < INTERVAL_NS)
		return;
	sweeper_sweep(sweeper, MIN(idle_since_ns, open_ns), now_ns);
	if (!sweeper_is_full(sweeper))
		return;
	module_sweeper_all(sweeper, open_ns, now_ns);
	sweeper->kept = modules_count(sweeper->options.modules);
}
