/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * System calls that this kernel has and another one has not: what a function does there is seen by
 * calling it on a thread of its own, in which the call fails.
 */
#include <stdint.h>

struct refused_call {
	int number; /* SYS_* */
	int error; /* what it fails with */
	int first; /* only where its first argument is this; 0: whatever that is */
};

/* What FN(CONTEXT) returns. It must not assert: cmocka's asserts belong to the test's thread. */
int with_refused_call(const struct refused_call *call, int (*fn)(void *context), void *context);
