/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Histograms over the life of an agent, one for each set of labels. Counts only grow; a histogram
 * that is dropped begins anew, which whoever reads counters takes for a restart. Plain data: knows
 * no process, and nothing of what labels mean.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/latency/latency_figures.h"
#include "base/buffer.h"
#include "base/map.h"

/* The process that called last; whoever drops histograms asks whether it is still there. */
struct latency_caller {
	uint32_t pid; /* 0 = not known */
	uint64_t start_ticks; /* as in /proc/PID/stat; 0 = not known */
};

struct latency_series {
	char *labels; /* as latency_exposition_label() writes them, with commas between */
	size_t labels_size;
	uint64_t group; /* what whoever made it tells series apart by when it drops them */
	struct latency_rows rows;
	uint64_t total_ns;
	uint64_t called_ns; /* CLOCK_MONOTONIC of the window with the last call */
	struct latency_caller caller;
};

struct latency_series_set {
	struct latency_series *items;
	size_t count, capacity;
	size_t limit;
	size_t labels_bytes; /* of all */
	struct map by_labels; /* private: hash of the labels → place */
};

enum { LATENCY_SERIES_LABEL_BYTES = 512 };

void latency_series_init(struct latency_series_set *set, size_t limit);
void latency_series_deinit(struct latency_series_set *set);
/*
 * LIMIT series, and for each of them LATENCY_SERIES_LABEL_BYTES on average: the text of a
 * histogram repeats its labels in every line. A lower limit than there are series removes none.
 */
void latency_series_set_limit(struct latency_series_set *set, size_t limit);
/*
 * Finds or adds the series with LABELS; *RET_PLACE is its place in `items` until the next
 * latency_series_drop(). Returns -E2BIG over the limit, or -ENOMEM.
 */
int latency_series_find(struct latency_series_set *set, const void *labels, size_t labels_size,
	uint64_t group, size_t *ret_place);
/* BUCKET as abi_latency_bucket() counts. */
void latency_series_add(
	struct latency_series *series, uint32_t bucket, uint64_t calls, uint64_t total_ns);
/* Removes the series for which IS_GONE says so; returns how many. */
size_t latency_series_drop(struct latency_series_set *set,
	bool (*is_gone)(void *context, struct latency_series *series), void *context);
/* Appends all histograms, with the head of their family; nothing if there are none. */
void latency_series_write(const struct latency_series_set *set, struct buffer *out);
