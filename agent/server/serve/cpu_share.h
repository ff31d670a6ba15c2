/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much CPU time clients may cost: a token bucket that fills with a share of the time that
 * passes, up to a limit. Spending may overdraw it, because a request's cost is known afterwards;
 * the next ones wait until the debt is paid. Times are CLOCK_MONOTONIC.
 */
#include <stdint.h>

struct cpu_share {
	uint64_t share_permille; /* CPU time per time that passes */
	uint64_t limit_ns; /* what can be saved up for a burst */
	int64_t left_ns; /* negative = a debt */
	uint64_t since_ns; /* when LEFT_NS was right */
};

/* Starts with a full bucket. SHARE_PERMILLE is at least 1. */
void cpu_share_init(
	struct cpu_share *share, uint64_t share_permille, uint64_t limit_ns, uint64_t now_ns);
void cpu_share_spend(struct cpu_share *share, uint64_t cost_ns, uint64_t now_ns);
/* How long the next one has to wait; 0 = it may go on. */
uint64_t cpu_share_wait_ns(struct cpu_share *share, uint64_t now_ns);
