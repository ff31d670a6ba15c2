/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Walks that the kernel did not finish, of a process of tests/unit/process_fixture.h: interrupted
 * in the program, called by libc, whose caller is nowhere. The frame pointers lie on the piece of
 * stack that came along. Which module's index is known the test decides; what the walks ask for and
 * what becomes of them is noted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/samples/pending_walks.h"
#include "tests/unit/process_fixture.h"

enum {
	WALK_WINDOW = 3,
	WALK_STACK = 0x7ffd0000, /* address of the piece of stack */
	WALK_STACK_WORDS = 16,
	WALK_FRAME_WORD = 8, /* where the frame pointer points to */
	WALK_PROGRAM_PC = 0x400010,
	WALK_PID = CHILD,
	WALK_ADDED = 32, /* samples that are kept for the test */
};

#define WALK_LIBC_PC UINT64_C(0x7f0000000010)

struct added_sample {
	struct process *process;
	struct abi_tick record;
	bool walked;
	struct unwind_stack stack; /* if it was walked */
	const struct mappings *mappings;
	const struct module *first_module; /* of the innermost frame, by these */
};

struct walks_fixture {
	struct fixture *f;
	struct unwind *unwind;
	struct pending_walks walks;
	struct process *process;
	struct abi_unwind_slot *slots;
	struct abi_unwind_process written; /* the last one that the kernel was told, */
	unsigned int writes, learned; /* of so many, and files */
	bool full; /* likewise: it is to leave no walk to us */
	/* What is known of modules, by enum unwind_module; what is not listed is NONE. */
	const struct module *waiting[2];
	bool refused; /* files are not to be had */
	bool comes_at_once; /* an index is there as soon as it was asked for */
	/* What was asked for, and what became of it. */
	unsigned int requests, wants, lookups, lost; /* calls */
	const struct module *last_request, *last_want;
	struct abi_sample last_lost;
	struct added_sample added[WALK_ADDED];
	size_t added_count;
};

int walks_set_up(void **state);
int walks_tear_down(void **state);
#define WALKS_CASE(name) cmocka_unit_test_setup_teardown(name, walks_set_up, walks_tear_down)

/* In place of the fixture's: one whose kernel finds mappings by itself, and is told of files. */
void walks_unwind_by_file(struct walks_fixture *w);
/* Makes the pending walks anew: LIMIT_BYTES may wait, and UNWIND may be NULL. */
void walks_begin(struct walks_fixture *w, struct unwind *unwind, size_t limit_bytes);
const struct module *walk_program(const struct walks_fixture *w);
const struct module *walk_libc(const struct walks_fixture *w);
/* From now on nothing is waited for; as the owner does, it is told to the walks. */
void walk_modules_come(struct walks_fixture *w);
/* A walk of WINDOW that the kernel left after its first frame; TID tells samples apart. */
struct abi_unfinished *walk_unfinished(uint32_t window, uint32_t tid);
/* Hands UNFINISHED in, with the frame that the kernel found; the other makes it, too. */
void walk_finish_made(struct walks_fixture *w, const struct abi_unfinished *unfinished);
void walk_finish(struct walks_fixture *w, uint32_t window, uint32_t tid);
/* That COUNT samples were added, and that the last one is TID's with both frames and END. */
void assert_walked(
	const struct walks_fixture *w, size_t count, uint32_t tid, enum abi_unwind_end end);
