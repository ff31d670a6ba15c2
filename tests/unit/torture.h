/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes each allocation and each system call of an operation fail, one after the other, and looks
 * at what is left then: an error that says what failed, no memory, mapping or descriptor more than
 * before, and what the case itself looks at (outputs that are as they were, an object that can
 * still be used, files that are whole or not there).
 *
 * Only calls of our own code are counted, and only those of the thread that runs the operation: the
 * linker leads them to the wrappers of torture.c in programs called test_torture_*.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct torture {
	/* Before each try: makes what the operation starts from. May be NULL. Nothing fails in it.
	 */
	void (*begin)(void *context);
	/* Returns 0 (or more) or a negative errno. */
	int (*operation)(void *context);
	/* After each try: looks at what is left and takes it down. May be NULL. Nothing fails in
	 * it. */
	void (*end)(void *context, int result);
	void *context;
	/* Calls of which a failure may pass as a success, "unlinkat madvise"; "*" = all. */
	const char *optional;
	/* An error need not be that of the call that failed. */
	bool other_errors;
};

/*
 * Tries until no call is left to fail. At most 160 calls unless FULL is set in the
 * environment: the first ones, the last ones and some between.
 */
void torture_run(const struct torture *t);
/* In end(): the call that failed, NULL = none did. */
const char *torture_failed(void);
int torture_errno(void); /* its error, positive; 0 = none failed */
/* For cmocka_unit_test_teardown(): says which call had failed in a case that did not pass. */
int torture_teardown(void **state);

#define torture_test(function) cmocka_unit_test_teardown(function, torture_teardown)
