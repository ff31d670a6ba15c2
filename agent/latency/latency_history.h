/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was measured in the windows of the recent past, by probe and function, for pictures over
 * time. Bounded in windows, in functions for each window and in bytes; what is left out is counted.
 * Plain data. Names are foreign bytes; the output makes them safe.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/latency/latency_report.h"
#include "base/json.h"

struct latency_history_limits {
	size_t windows;
	size_t functions; /* of a window: those with the longest total times */
	size_t bytes; /* of all windows; the oldest are removed first */
};

struct latency_history_name {
	const char *probe, *function, *binary;
};

/* Calls of one window whose times are in one bucket; several may be of the same one. */
struct latency_history_cell {
	uint32_t function; /* index of its name */
	uint32_t bucket; /* abi_latency_bucket_start() */
	uint64_t calls, total_ns, max_ns;
};

struct latency_history_measured {
	int64_t time_ms, duration_ms; /* the window; time since 1970 */
	const struct latency_history_name *names;
	size_t name_count;
	struct latency_history_cell *cells; /* will be sorted */
	size_t cell_count;
};

struct latency_history;

int latency_history_create(
	const struct latency_history_limits *limits, struct latency_history **ret_history);
void latency_history_destroy(struct latency_history *h);
/*
 * Adds a window. Names that are equal are one function. Returns -EINVAL if a cell has no name or
 * bucket, -E2BIG if the window alone has more bytes than allowed, -ENOMEM; it is then not added.
 */
int latency_history_add(struct latency_history *h, const struct latency_history_measured *measured);
size_t latency_history_bytes(const struct latency_history *h);
/*
 * Writes, into an object that is open, the windows that overlap [FROM_MS, TO_MS), and the functions
 * that have calls in them. docs/latency.md describes it. Returns -ENOMEM before anything is
 * written.
 */
int latency_history_write(
	const struct latency_history *h, int64_t from_ms, int64_t to_ms, struct json *j);
