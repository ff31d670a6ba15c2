/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Made-up measurements for the tests of agent/latency. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_report.h"
#include "base/cleanup.h"

/* cmocka's setup and teardown; *STATE is a struct latency_report. */
static inline int report_of(void **state, enum abi_latency_by by)
{
	struct latency_report *report = calloc(1, sizeof(*report));

	assert_non_null(report);
	assert_int_equal(latency_report_init(report, by), 0);
	*state = report;
	return 0;
}

static inline int report_by_function(void **state)
{
	return report_of(state, ABI_LATENCY_BY_FUNCTION);
}

static inline int report_by_goid(void **state)
{
	return report_of(state, ABI_LATENCY_BY_FIBER);
}

static inline int report_by_pid(void **state)
{
	return report_of(state, ABI_LATENCY_BY_PROCESS);
}

static inline int free_report(void **state)
{
	latency_report_deinit(*state);
	free(*state);
	return 0;
}

static inline uint32_t function_at(
	struct latency_report *report, const char *name, const char *binary, uint64_t address)
{
	struct latency_identity identity = { .name = name,
		.linkage = name,
		.binary = binary,
		.build_id = "0badc0de",
		.address = address };
	uint32_t number;

	assert_int_equal(latency_report_function(report, &identity, &number), 0);
	return number;
}

static inline uint32_t function_named(struct latency_report *report, const char *name)
{
	return function_at(report, name, "/usr/bin/app", 0x1000);
}

/* CALLS calls that took NS each. */
static inline void took_by(
	struct latency_report *report, uint32_t function, uint64_t key, uint64_t calls, uint64_t ns)
{
	assert_int_equal(
		latency_report_add(report, &(struct latency_report_cell){ .function = function,
						   .bucket = abi_latency_bucket(ns),
						   .key = key,
						   .calls = calls,
						   .total_ns = calls * ns,
						   .max_ns = ns }),
		0);
}

static inline void took(
	struct latency_report *report, uint32_t function, uint64_t calls, uint64_t ns)
{
	took_by(report, function, 0, calls, ns);
}
