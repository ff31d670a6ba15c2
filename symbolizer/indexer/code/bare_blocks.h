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
	BARE_ALIGN = 16, /* of functions */
	BARE_MAX_BLOCKS = 1 << 18,
	BARE_INSTRUCTION_STEPS = 16, /* of work */
};

struct bare_instruction {
	uint32_t off; /* in the gap */
	/* Of jumps and calls: number of an instruction, or one of the two below. */
	uint32_t target;
	uint32_t place; /* likewise, whose address it computes */
	uint32_t block;
	struct code_effect effect;
	uint8_t kind; /* enum code_kind */
	bool is_code; /* false: bytes that are none */
	bool is_loop; /* a conditional jump behind it leads here */
	bool never_returns; /* a call of a function that does not */
	bool is_unsure; /* a call of a function in the gap that is not known to return */
	bool is_doubtful; /* a call that may not return, with another function behind it */
	bool is_halt; /* hlt, behind which compilers may go on: musl ends programs by it */
	uint8_t known; /* enum abi_cfa of code that is known by its instructions, else 0 */
	bool starts_early; /* its rule is that of the last byte before it, too */
};

static const uint32_t BARE_OUTSIDE = UINT32_MAX; /* another target, or none */
static const uint32_t BARE_MIDDLE = UINT32_MAX - 1; /* of an instruction */

struct bare_block {
	uint32_t first, end; /* instructions */
	uint32_t parent; /* of the union of connected blocks; its root has what follows up to
			    is_called */
	bool is_refused, returns, is_doubtful;
	bool leaves; /* jumps to code that is not known, with its frame gone */
	bool has_other_entry; /* that no direct call leads to */
	bool has_unshown_entry; /* that neither a direct call nor an address shows to be one */
	bool has_bad_entry; /* that is neither called directly nor aligned, or is the second one */
	bool has_entry, has_switch;
	bool has_ready_call, has_other_call; /* by bare_state_may_call() */
	bool loses_fp; /* returns with another frame pointer than at its entry */
	bool may_leave; /* returns, or goes on elsewhere, as far as it was followed */
	bool is_called; /* by a direct call */
	bool is_pointed_to; /* code computes its address */
	bool is_stored; /* data has its address, which may be that of a label in a function */
	bool is_fallen_into, is_jumped_to;
	bool is_padding; /* nothing but nops, and nothing leads there */
	bool may_be_case; /* nothing leads there, but a jump through a table, or a hlt, is near */
	bool is_case;
	bool is_searched; /* for cases of its switch */
	bool has_state, waits;
	bool is_proved; /* it leads out of the function, or to where another way leads, too */
	struct bare_state state; /* at its beginning */
};

struct bare {
	struct elf_image *image;
	const struct bare_machine *machine;
	struct work *work;
	struct code_effects *effects;
	uint64_t bytes_left;
	uint64_t *pointers; /* addresses of code that the file's data has, ascending */
	size_t pointer_count, pointer_capacity;
	bool has_pointers; /* they were looked for */

	/* Of the gap being read. */
	uint64_t low, high;
	uint8_t align; /* of its functions */
	struct bare_instruction *instructions;
	size_t instruction_count, instruction_capacity;
	struct bare_block *blocks;
	size_t block_count, block_capacity;
	uint32_t *waiting; /* blocks whose state has changed */
	size_t waiting_count, waiting_capacity;
	uint32_t *switches; /* blocks whose cases are not looked for yet */
	size_t switch_count, switch_capacity;
	bool has_news; /* a helper was found to lose the frame pointer: its callers are to be
			  followed again */
	bool has_last_calls; /* calls were found not to return: all is to be followed again */
	bool is_last_pass;
};

/* -ENODATA: the gap is not in the file, or the work is spent. */
int bare_decode(struct bare *b);
int bare_make_blocks(struct bare *b);
void bare_connect(const struct bare *b);
/* Where the rule of instruction NUMBER begins; as bare_off() but for those that start early. */
uint64_t bare_rule_off(const struct bare *b, uint32_t number);
/* The offset of instruction NUMBER, or of the gap's end. */
uint64_t bare_off(const struct bare *b, uint32_t number);
/* Whether the compiler or assembler could have put a function at instruction NUMBER. */
bool bare_is_aligned(const struct bare *b, uint32_t number);
/* The first instruction from NUMBER up to END that is no padding, or END. */
uint32_t bare_skip_padding(const struct bare *b, uint32_t number, uint32_t end);
/* The number of the instruction at ADDRESS of the gap, or BARE_MIDDLE. */
uint32_t bare_number_at(const struct bare *b, uint64_t address);
/* Whether a block begins with instruction NUMBER, or with padding before it. */
bool bare_is_beginning(const struct bare *b, uint32_t number);
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
/* Whether the stack pointer is above what it was at the entry. */
bool bare_is_above(const struct bare_state *s);
/* Whether the next function may begin with instruction NUMBER. */
bool bare_may_be_next(const struct bare *b, uint32_t number);
/* Notes which calls may not return and have the next function behind them. */
void bare_note_doubtful_calls(struct bare *b);
