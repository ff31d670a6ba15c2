/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Counters, declared in metrics.def. Every kind of loss has one. Adding is thread-safe. */
#include <stdatomic.h>
#include <stdint.h>

enum metric {
#define METRIC(id, name, label, help) METRIC_##id,
#include "base/metrics.def"
#undef METRIC
	METRIC_COUNT
};

struct metric_text {
	const char *name; /* `fathom_…_total` */
	const char *label; /* `reason="…"`, or "" */
	const char *help;
};

struct metrics {
	_Atomic uint64_t values[METRIC_COUNT];
};

extern const struct metric_text metric_texts[METRIC_COUNT];

static inline void metrics_add(struct metrics *m, enum metric id, uint64_t amount)
{
	atomic_fetch_add_explicit(&m->values[id], amount, memory_order_relaxed);
}

static inline uint64_t metrics_get(const struct metrics *m, enum metric id)
{
	return atomic_load_explicit(&m->values[id], memory_order_relaxed);
}
