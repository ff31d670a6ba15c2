/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns one perf record (linux/perf_event.h) into one call of the owner's handlers. Ignores
 * processes that the agent's pid namespace cannot name (pid 0 or −1).
 */
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/mapped_files.h"
#include "agent/sampler/collect/probe.h"

/* The sample_id fields of the output event's records; ring.c relies on the position of the time. */
enum {
	EVENTS_SAMPLE_TYPE = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
	/* Of the event for mapped files: pid and tid before the time tell its records apart. */
	EVENTS_FILE_SAMPLE_TYPE = PERF_SAMPLE_TIME | PERF_SAMPLE_TID,
};

struct events {
	struct collect_handlers handlers;
	const struct probe *const *probes; /* those that write records; ends with NULL */
	struct metrics *metrics;
	struct mapped_files *files; /* NULL unless mapping records come in two halves */
};

void events_deliver(const struct events *e, uint64_t time_ns, const uint8_t *record, size_t size);
