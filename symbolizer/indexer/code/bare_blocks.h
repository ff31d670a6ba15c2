/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The instructions of a gap between functions, and the blocks that jumps and their targets cut it
 * into. What is wrong with a block is noted at the root of all blocks that jumps connect with it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/indexer/code/bare_state.h"
#include "symbolizer/indexer/code/effect.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/work.h"

enum {
	BARE_ALIGN = 16, /* of functions, where decoding goes on behind bytes that are no code */
	BARE_MAX_BLOCKS = 1 << 18,
	BARE_INSTRUCTION_STEPS = 16, /* of work */
};

struct bare_instruction {
	uint32_t off; /* in the gap */
	/* Of jumps and calls: number of an instruction, or one of the two below. */
	uint32_t target;
	uint32_t block;
	struct code_effect effect;
	uint8_t kind; /* enum code_kind */
	bool is_code; /* false: bytes that are none */
	bool is_loop; /* a conditional jump behind it leads here */
	bool never_returns; /* a call of a function in the gap that does not */
	bool is_halt; /* hlt, behind which compilers may go on: musl ends programs by it */
	uint8_t known; /* enum abi_cfa of code that is known by its instructions, else 0 */
};

static const uint32_t BARE_OUTSIDE = UINT32_MAX; /* another target, or none */
static const uint32_t BARE_MIDDLE = UINT32_MAX - 1; /* of an instruction */

struct bare_block {
	uint32_t first, end; /* instructions */
	uint32_t parent; /* of the union of connected blocks; its root has what follows up to
			    is_called */
	bool is_refused, returns, is_doubtful;
	bool has_other_entry; /* that no direct call leads to */
	bool has_bad_entry; /* that is neither called directly nor aligned, or is the second one */
	bool has_entry, may_be_two;
	bool has_aligned_call, has_other_call;
	bool loses_fp; /* returns with another value in rbp than at its entry */
	bool may_leave; /* returns, or goes on elsewhere, as far as it was followed */
	bool is_called; /* by a direct call */
	bool is_fallen_into, is_jumped_to;
	bool is_padding; /* nothing but nops, and nothing leads there */
	bool may_be_case; /* nothing leads there, but a jump through a table, or a hlt, is before */
	bool is_case;
	bool has_state, waits;
	struct bare_state state; /* at its beginning */
};

struct bare {
	const struct elf_image *image;
	struct work *work;
	struct code_effects *effects;
	uint64_t bytes_left;

	/* Of the gap being read. */
	uint64_t low, high;
	struct bare_instruction *instructions;
	size_t instruction_count, instruction_capacity;
	struct bare_block *blocks;
	size_t block_count, block_capacity;
	uint32_t *waiting; /* blocks whose state has changed */
	size_t waiting_count, waiting_capacity;
	bool has_news; /* a helper was found to lose rbp: its callers are to be followed again */
};

/* -ENODATA: the gap is not in the file, or the work is spent. */
int bare_decode(struct bare *b);
int bare_make_blocks(struct bare *b);
void bare_connect(const struct bare *b);
/* The offset of instruction NUMBER, or of the gap's end. */
uint64_t bare_off(const struct bare *b, uint32_t number);
/* Whether the compiler or assembler could have put a function at instruction NUMBER. */
bool bare_is_aligned(const struct bare *b, uint32_t number);
/* The first instruction from NUMBER up to END that is no padding, or END. */
uint32_t bare_skip_padding(const struct bare *b, uint32_t number, uint32_t end);
bool bare_calls_outside(const struct bare_instruction *i);
/* The block that I, a jump or call to an instruction, leads to: it begins there. */
struct bare_block *bare_block_of_target(const struct bare *b, const struct bare_instruction *i);
struct bare_block *bare_root(const struct bare *b, struct bare_block *block);
void bare_join(const struct bare *b, struct bare_block *one, struct bare_block *other);
void bare_refuse(const struct bare *b, struct bare_block *block);
const struct bare_instruction *bare_last(const struct bare *b, const struct bare_block *block);
/* The block that BLOCK runs on into, or NULL. */
struct bare_block *bare_next(const struct bare *b, struct bare_block *block);
bool bare_is_entry(const struct bare_block *block);

/* What instruction I makes of S. */
void bare_run(const struct bare *b, struct bare_state *s, const struct bare_instruction *i);
/* As far as it is known: code that realigns the stack does so for its calls. */
bool bare_stack_is_aligned(const struct bare_state *s);
/* Whether the stack pointer is above the return address. */
bool bare_is_above(const struct bare_state *s);
/* Whether they have the same stack pointer. */
bool bare_same_place(const struct bare_state *one, const struct bare_state *other);
/* Whether the next function may begin with instruction NUMBER. */
bool bare_may_be_next(const struct bare *b, uint32_t number);
