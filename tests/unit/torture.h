/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes each allocation and each system call of an operation fail in turn and checks the outcome:
 * the error is that of the failed call, no memory, mapping or descriptor leaks, and the case's own
 * conditions hold (outputs unchanged, an object still usable, files complete or absent).
 *
 * Only calls of our own code on the thread that runs the operation count: in programs called
 * test_torture_* the linker redirects them to the wrappers of torture.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct torture {
	/* Prepares a try; nothing fails in it. May be NULL. */
	void (*begin)(void *context);
	/* Returns 0 or more, or a negative errno. */
	int (*operation)(void *context);
	/* Checks and cleans up after a try; nothing fails in it. May be NULL. */
	void (*end)(void *context, int result);
	void *context;
	/* Calls whose failure the operation may ignore, "unlinkat madvise"; "*" = all. */
	const char *optional;
	/* The operation's error may differ from that of the failed call. */
	bool other_errors;
	/* A library frees what our code allocates, as libbpf does: only descriptors are checked. */
	bool freed_elsewhere;
};

/*
 * Repeats the operation until every call has failed once. Unless FULL is set in the environment, at
 * most 160 calls fail: the first, the last and some in between.
 */
void torture_run(const struct torture *t);
/* For end(): the call that failed, NULL if none did. */
const char *torture_failed(void);
int torture_errno(void); /* its errno, positive; 0 = no call failed */
/* For cmocka_unit_test_teardown(): prints the failed call if the test did not pass. */
int torture_teardown(void **state);

#define torture_test(function) cmocka_unit_test_teardown(function, torture_teardown)
