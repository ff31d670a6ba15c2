/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unfinished walks of a process of tests/unit/process_fixture.h: interrupted in the program, called
 * by libc, whose caller is in no mapping. The frame pointers are in the copied piece of stack. The
 * test decides which modules have an index; requests and results are recorded.
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
	WALK_FRAME_WORD = 8, /* word that the frame pointer points to */
	WALK_PROGRAM_PC = 0x400010,
	WALK_PID = CHILD,
	WALK_ADDED = 32, /* recorded samples */
};

#define WALK_LIBC_PC UINT64_C(0x7f0000000010)

/* With the tables of walks_give_tables(): return addresses, and the pc of code without a table. */
enum { WALK_UNTABLED_PC = 0x400c10, WALK_IN_INNER = 0x400108, WALK_IN_OUTER = 0x400208 };
#define WALK_IN_ROOT UINT64_C(0x7f0000000808)

struct added_sample {
	struct process *process;
	struct abi_tick record;
	bool walked;
	struct unwind_stack stack; /* valid if `walked` */
	const struct mappings *mappings;
	const struct module *first_module; /* module of the innermost frame in `mappings` */
};

struct walks_fixture {
	struct fixture *f;
	struct unwind *unwind;
	struct pending_walks walks;
	struct process *process;
	struct abi_unwind_slot *slots;
	struct abi_unwind_process written; /* the last process written to the kernel */
	unsigned int writes, learned; /* number of processes and files written */
	bool full; /* last set_full(): the kernel leaves no walks to user space */
	/*
	 * Modules in state UNWIND_MODULE_WAITING; all others are UNWIND_MODULE_NONE, or
	 * UNWIND_MODULE_READY if there is an index.
	 */
	const struct module *waiting[2];
	struct index *index; /* NULL until walks_give_tables() */
	bool refused; /* requests fail: the file cannot be opened */
	bool comes_at_once; /* a request is answered at once */
	/* Requests and results. */
	unsigned int requests, wants, lookups, lost; /* number of calls */
	const struct module *last_request, *last_want;
	struct abi_sample last_lost;
	struct added_sample added[WALK_ADDED];
	size_t added_count;
};

int walks_set_up(void **state);
int walks_tear_down(void **state);
#define WALKS_CASE(name) cmocka_unit_test_setup_teardown(name, walks_set_up, walks_tear_down)

/* Replaces the fixture's unwind by one whose kernel finds mappings itself and is given files. */
void walks_unwind_by_file(struct walks_fixture *w);
/* Recreates the pending walks with a limit of LIMIT_BYTES; UNWIND may be NULL. */
void walks_begin(struct walks_fixture *w, struct unwind *unwind, size_t limit_bytes);
const struct module *walk_program(const struct walks_fixture *w);
const struct module *walk_libc(const struct walks_fixture *w);
/* Answers all waiting modules and notifies the walks, like the owner. */
void walk_modules_come(struct walks_fixture *w);
/* Makes a walk of WINDOW that the kernel left after its first frame; TID identifies the sample. */
struct abi_unfinished *walk_unfinished(uint32_t window, uint32_t tid);
/* Finish a walk with the frame that the kernel found: the given one, or a new one. */
void walk_finish_made(struct walks_fixture *w, const struct abi_unfinished *unfinished);
void walk_finish(struct walks_fixture *w, uint32_t window, uint32_t tid);
/* Gives the program and libc an index with tables, once they do not wait. */
void walks_give_tables(struct walks_fixture *w);
/*
 * A walk that the kernel left in code without a table, called by inner(), called by outer(), called
 * from libc by a pointer; and the record of its return addresses, which precedes it.
 */
struct abi_unfinished *walk_untabled(uint32_t window, uint32_t tid);
void walk_give_returns(struct walks_fixture *w, uint32_t tid);
/* Asserts that ADDED has all three callers, the first found by a search. */
void assert_guessed(const struct added_sample *added);
/* Asserts that COUNT samples were added, the last one being TID's with both frames and END. */
void assert_walked(
	const struct walks_fixture *w, size_t count, uint32_t tid, enum abi_unwind_end end);
