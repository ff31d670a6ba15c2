/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Simulates a kernel that lacks a system call: runs a function on a thread of its own, where the
 * call fails.
 */
#include <stdint.h>

struct refused_call {
	int number; /* SYS_* */
	int error; /* its error */
	int first; /* fail only with this first argument; 0 = any */
};

/*
 * Returns what FN(CONTEXT) returns. FN must not assert: cmocka's asserts work only on the test's
 * thread.
 */
int with_refused_call(const struct refused_call *call, int (*fn)(void *context), void *context);
