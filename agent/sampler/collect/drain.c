/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/drain.h"

#include "base/clock.h"

/*
 * While sampling runs, the most recent records are left to the next call: if an interrupt samples
 * in the middle of another record's output, its records become visible only after that output.
 */
static const uint64_t SETTLE_NS = 200 * 1000;

int drain_init(struct drain *d, const struct collect_options *options)
{
	*d = (struct drain){
		.events = { .handlers = options->handlers,
			.probes = options->probes,
			.metrics = options->metrics },
	};
	return merge_init(&d->merge);
}

void drain_deinit(struct drain *d)
{
	merge_deinit(&d->merge);
}

void drain_join_files(struct drain *d)
{
	d->events.files = &d->files;
}

void drain_set_sampling(struct drain *d, bool sampling)
{
	d->sampling = sampling;
}

uint64_t drain_limit_ns(const struct drain *d, uint64_t until_ns)
{
	uint64_t settled_ns = clock_monotonic_ns() - (d->sampling ? SETTLE_NS : 0);

	return !until_ns || until_ns > settled_ns ? settled_ns : until_ns;
}

static void drain_record(void *context, uint64_t time_ns, const uint8_t *record, size_t size)
{
	const struct drain *d = context;

	events_deliver(&d->events, time_ns, record, size);
}

static void drain_gap(void *context, uint64_t time_ns, uint64_t until_ns)
{
	const struct drain *d = context;
	const struct collect_handlers *owner = &d->events.handlers;

	metrics_add(d->events.metrics, METRIC_SIDEBAND_GAPS, 1);
	if (owner->lost)
		owner->lost(owner->context, time_ns, until_ns);
}

static void drain_bad(void *context, uint64_t time_ns, uint64_t bytes)
{
	const struct drain *d = context;

	(void)bytes;
	metrics_add(d->events.metrics, METRIC_LOST_BAD_RECORD, 1);
	drain_gap(context, time_ns, clock_monotonic_ns());
}

static bool rings_hold_much(struct ring *const *rings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ring_holds_much(rings[i]))
			return true;
	}
	return false;
}

int64_t drain_rings(struct drain *d, struct ring *const *rings, size_t count, uint64_t limit_ns)
{
	const struct merge_sink sink = {
		.record = drain_record, .bad = drain_bad, .gap = drain_gap, .context = d
	};
	int64_t delivered = merge_rings(&d->merge, rings, count, limit_ns, &sink);

	d->left_much = rings_hold_much(rings, count);
	return delivered;
}

void drain_report_gap(struct drain *d)
{
	drain_gap(d, d->merge.last_ns, clock_monotonic_ns());
}
