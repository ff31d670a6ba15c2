/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns one perf record into one call of the owner's handlers: linux/perf_event.h describes the
 * records. Says nothing of processes that the agent's pid namespace cannot name (pid 0 or −1).
 */
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/mapped_files.h"
#include "agent/sampler/collect/probe.h"

/* What a record of the output event carries besides itself; ring.c relies on the time's place. */
enum {
	EVENTS_SAMPLE_TYPE = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
	/* The other event's; the pid and tid before the time set its records apart. */
	EVENTS_FILE_SAMPLE_TYPE = PERF_SAMPLE_TIME | PERF_SAMPLE_TID,
};

struct events {
	struct collect_handlers handlers;
	const struct probe *const *probes; /* whose records come; ends with NULL */
	struct metrics *metrics;
	struct mapped_files *files; /* where mapping records come in two halves; else NULL */
};

void events_deliver(const struct events *e, uint64_t time_ns, const uint8_t *record, size_t size);
