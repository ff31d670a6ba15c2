/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A hand-written stack and a walk at its first word, for the tests of bpf/unwind/step.bpf.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/unwind/step.bpf.h"
#include "tests/unit/unwind_page_writer.h"

enum { STACK = 0x7ffd0000, STACK_WORDS = 256, CALLER = 0x401234, OTHER = 0x402468 };

struct fixture {
	uint64_t words[STACK_WORDS];
	struct unwind_memory memory;
	struct unwind_state state;
	struct page_writer page;
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->memory = (struct unwind_memory){ STACK, sizeof(f->words), (const void *)f->words };
	f->state = (struct unwind_state){
		.memory = &f->memory, .pc = 0x400100, .sp = STACK, .fp = 0xdead
	};
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	free(*state);
	return 0;
}

static inline int by_rule(struct fixture *f, struct abi_unwind_rule rule)
{
	return unwind_step_from(&f->state, UNWIND_PLACE_TABLE, &rule);
}

static inline void expect_at(const struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(f->state.pc, pc);
	assert_int_equal(f->state.sp, sp);
	assert_int_equal(f->state.fp, fp);
}

enum { GOROUTINE = 0xc000000, M = 0xd000000, WAITS = 160, GO_PC = 0x40aaaa };

/*
 * The fixture's stack is the thread's below word 128 and the goroutine's from there on. The
 * goroutine waits at word WAITS.
 */
struct go_fixture {
	struct unwind_memory head_memory;
	uint64_t head[ABI_FIBER_HEAD_WORDS];
};

static inline uint64_t word_at(size_t word)
{
	return STACK + 8 * word;
}

static inline void begin_go(struct fixture *f, struct go_fixture *go)
{
	*go = (struct go_fixture){ .head = {
					   [ABI_GO_STACK_LOW] = word_at(128),
					   [ABI_GO_STACK_HIGH] = word_at(STACK_WORDS),
					   [ABI_GO_M] = M,
					   [ABI_GO_SCHED_SP] = word_at(WAITS),
					   [ABI_GO_SCHED_PC] = GO_PC,
				   } };
	go->head_memory =
		(struct unwind_memory){ GOROUTINE, sizeof(go->head), (const void *)go->head, NULL };
	f->memory.next = &go->head_memory;
	f->state.runs = (struct abi_unwind_fiber){ .address = GOROUTINE, .thread = M };
	f->state.is_return = 1;
}

static inline struct abi_unwind_rule rule_go(int kind, int offset)
{
	struct abi_unwind_rule rule = rule_sp(offset);

	rule.cfa = (abi_u8)kind;
	rule.fp = ABI_REG_FRAME;
	rule.fp_off = -16;
	return rule;
}
