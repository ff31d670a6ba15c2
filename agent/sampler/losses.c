/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/losses.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { FIELDS_BYTES = 512 };

static const uint64_t LOG_EVERY_NS = UINT64_C(60000000000);

static const struct loss_kind {
	enum metric metric;
	const char *reason; /* as in the metric's label; NULL = records of the kernel */
} loss_kinds[] = {
	{ METRIC_LOST_RING_FULL, "ring_full" },
	{ METRIC_LOST_BPF_ERROR, "bpf_error" },
	{ METRIC_LOST_MEMORY_LIMIT, "memory_limit" },
	{ METRIC_LOST_WAITS_FULL, "waits_full" },
	{ METRIC_LOST_WAITS_UNENDED, "waits_unended" },
	{ METRIC_LOST_BAD_RECORD, "bad_record" },
	{ METRIC_LOST_SIDEBAND, NULL },
};

/* What was lost since the last look. */
static struct trouble_loss losses_since(struct losses *l, const struct metrics *metrics)
{
	struct trouble_loss loss = { 0 };
	uint64_t most = 0;

	for (size_t i = 0; i < ARRAY_SIZE(loss_kinds); i++) {
		const struct loss_kind *kind = &loss_kinds[i];
		uint64_t now = metrics_get(metrics, kind->metric);
		uint64_t since = now - l->noticed[kind->metric];

		l->noticed[kind->metric] = now;
		if (!kind->reason) {
			loss.records += since;
			continue;
		}
		loss.samples += since;
		if (since > most) {
			most = since;
			loss.reason = kind->reason;
		}
	}
	return loss;
}

/* Writes `ring_full=3 records=12`. Returns false if nothing was lost since the last log line. */
static bool losses_unlogged(const struct losses *l, char *fields, size_t size)
{
	size_t used = 0;

	*fields = 0;
	for (size_t i = 0; i < ARRAY_SIZE(loss_kinds); i++) {
		const struct loss_kind *kind = &loss_kinds[i];
		uint64_t since = l->noticed[kind->metric] - l->logged[kind->metric];

		if (since && used < size)
			used += (size_t)snprintf(fields + used, size - used, "%s%s=%llu",
				used ? " " : "", kind->reason ? kind->reason : "records",
				(unsigned long long)since);
	}
	return used > 0;
}

void losses_check(struct losses *l, const struct metrics *metrics)
{
	struct trouble_loss loss = losses_since(l, metrics);
	char fields[FIELDS_BYTES];

	if (loss.samples || loss.records) {
		loss.real_ns = clock_real_ns();
		l->last = loss;
	}
	if (!losses_unlogged(l, fields, sizeof(fields)) ||
		!log_rate_allows_every(&l->log, LOG_EVERY_NS))
		return;
	log_warn("samples or records of the kernel were lost", "%s", fields);
	memcpy(l->logged, l->noticed, sizeof(l->logged));
}
