/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/off_cpu/waits.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/probes/off_cpu/wait_table.h"
#include "agent/sampler/probes/probes.h"

struct waits {
	struct waits_options options;
	struct wait_table table;
};

int waits_create(const struct waits_options *options, struct waits **ret_waits)
{
	struct waits *w = calloc(1, sizeof(*w));

	assert(options->share > 0 && options->share <= 1);
	if (!w)
		return -ENOMEM;
	w->options = *options;
	wait_table_init(&w->table, options->share);
	*ret_waits = w;
	return 0;
}

void waits_destroy(struct waits *w)
{
	if (!w)
		return;
	wait_table_deinit(&w->table);
	free(w);
}

static void waits_count_loss(struct waits *w)
{
	metrics_add(w->options.metrics, METRIC_LOST_MEMORY_LIMIT, 1);
}

static struct wait *waits_find(struct waits *w, const struct abi_switch_out *switch_out)
{
	return wait_table_find(&w->table, switch_out->sample.tid, switch_out->left_ns);
}

static struct profile *waits_profile(struct waits *w, uint32_t number, uint32_t *ret_number)
{
	return w->options.handlers.profile(w->options.handlers.context, number, ret_number);
}

void waits_left(struct waits *w, const struct abi_switch_out *switch_out)
{
	if (wait_table_begin(&w->table, switch_out->sample.tid, switch_out->left_ns))
		waits_count_loss(w);
}

bool waits_wants(struct waits *w, const struct abi_switch_out *switch_out)
{
	return waits_find(w, switch_out) != NULL;
}

void waits_lost(struct waits *w, const struct abi_switch_out *switch_out)
{
	struct wait *wait = waits_find(w, switch_out);

	if (wait)
		wait_table_forget(&w->table, wait);
}

void waits_thread_ended(struct waits *w, uint32_t tid)
{
	wait_table_forget_thread(&w->table, tid);
}

/* WAIT's sample as TO has it, which gets its stack and what is known of its fiber. */
static int waits_copy_sample(struct waits *w, const struct wait *wait, struct profile *to,
	struct profile_sample *ret_sample)
{
	const struct waits_handlers *owner = &w->options.handlers;
	struct profile_sample sample = wait->sample;
	uint32_t number;
	const struct profile *from = waits_profile(w, wait->window, &number);
	struct profile_stack stack;
	int err;

	assert(number == wait->window);
	if (from != to) {
		stack = profile_stack_at(from, wait->sample.stack);
		owner->stack_hit(owner->context, wait->sample.process, &stack);
	}
	err = profile_adopt(to, from, &sample);
	if (!err)
		*ret_sample = sample;
	return err;
}

static int waits_add_to(struct waits *w, const struct wait *wait, struct profile *to)
{
	struct profile_sample sample;
	int err = waits_copy_sample(w, wait, to, &sample);

	return err ? err : profile_add(to, &sample);
}

/* Adds WAIT, which has its stack and ended after WAIT_NS, to WINDOW and the taps. */
static void waits_count(struct waits *w, struct wait *wait, uint64_t wait_ns, uint32_t window)
{
	const struct waits_handlers *owner = &w->options.handlers;
	struct profile *tap;
	uint32_t number;
	size_t iterator = 0;

	wait_table_weigh(&w->table, wait_ns, &wait->sample.count, &wait->sample.weight);
	if (waits_add_to(w, wait, waits_profile(w, window, &number))) {
		waits_count_loss(w);
		return;
	}
	metrics_add(w->options.metrics, METRIC_SAMPLES_OFF_CPU, 1);
	/* What does not fit a profile on demand is still in the window's: it is not lost. */
	while ((tap = owner->next_tap(owner->context, wait->sample.pid, &iterator))) {
		if (waits_add_to(w, wait, tap))
			metrics_add(w->options.metrics, METRIC_ON_DEMAND_LEFT_OUT, 1);
	}
}

void waits_resolved(struct waits *w, const struct abi_switch_out *switch_out,
	const struct profile_sample *sample)
{
	struct wait *wait = waits_find(w, switch_out);

	if (!wait)
		return;
	assert(wait->state == WAIT_BEGUN || wait->state == WAIT_ENDED);
	wait->sample = *sample;
	wait->sample.type = PROBE_off_cpu;
	(void)waits_profile(w, switch_out->sample.window, &wait->window);
	if (wait->state == WAIT_BEGUN) {
		wait->state = WAIT_RESOLVED;
		return;
	}
	waits_count(w, wait, wait->wait_ns, wait->window);
	wait_table_forget(&w->table, wait);
}

void waits_woke(struct waits *w, const struct abi_wake *wake)
{
	struct wait *wait = wait_table_find(&w->table, wake->tid, wake->left_ns);

	/* Its process is not wanted, or its beginning was lost, which was counted. */
	if (!wait || wait->state == WAIT_ENDED)
		return;
	if (wait->state == WAIT_BEGUN) {
		wait->state = WAIT_ENDED;
		wait->wait_ns = wake->wait_ns;
		return;
	}
	waits_count(w, wait, wake->wait_ns, wake->window);
	wait_table_forget(&w->table, wait);
}

void waits_move(struct waits *w, uint32_t window)
{
	uint32_t number;
	struct profile *current = waits_profile(w, 0, &number);
	struct wait *wait;
	size_t i = 0;

	assert(number != window);
	while ((wait = wait_table_next(&w->table, &i))) {
		if (wait->state != WAIT_RESOLVED || wait->window != window)
			continue;
		if (waits_copy_sample(w, wait, current, &wait->sample)) {
			waits_count_loss(w);
			wait_table_forget(&w->table, wait);
			continue;
		}
		wait->window = number;
	}
}
