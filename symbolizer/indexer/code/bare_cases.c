/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/bare_cases.h"

#include "base/cleanup.h"

enum {
	CASE_BLOCKS =
		64, /* of one case; one that leads to more new blocks is not taken for a case */
	CASE_REACH = 4096, /* blocks behind a jump among which cases are looked for */
};

/*
 * Whether BLOCK is a jump behind another one that nothing leads to: compilers leave such behind
 * (Free Pascal does at each `exit`, and before loops, with padding). As an entry, it would
 * contradict the frame at its target.
 */
static bool bare_is_dead_jump(const struct bare *b, const struct bare_block *block)
{
	const uint32_t last = bare_skip_padding(b, block->first, block->end - 1);
	const struct bare_instruction *at = &b->instructions[last];

	return last + 1 == block->end && at->kind == CODE_JUMP &&
	       at->target < b->instruction_count && block->first &&
	       b->instructions[block->first - 1].kind == CODE_JUMP && bare_is_entry(block) &&
	       !block->is_called && !block->is_pointed_to && !bare_is_aligned(b, last);
}

void bare_note_candidates(const struct bare *b)
{
	bool is_behind_jump = false, is_behind_halt = false, is_before_jump = false;

	for (size_t i = 0; i < b->block_count; i++) {
		struct bare_block *block = &b->blocks[i];

		is_behind_jump &= !block->is_called;
		block->may_be_case = is_behind_jump || is_behind_halt;
		is_behind_jump |= bare_last(b, block)->kind == CODE_INDIRECT_JUMP;
		is_behind_halt = bare_last(b, block)->is_halt;
	}
	for (size_t i = b->block_count; i-- > 0;) {
		struct bare_block *block = &b->blocks[i];

		is_before_jump |= bare_last(b, block)->kind == CODE_INDIRECT_JUMP;
		block->may_be_case = (block->may_be_case || is_before_jump) &&
				     bare_is_entry(block) && !block->is_called &&
				     !b->instructions[block->first].known;
		block->is_padding |= !block->may_be_case && bare_is_dead_jump(b, block);
		is_before_jump &= !block->is_called;
	}
}

/*
 * Where to look for cases before BLOCK: behind the last function that is called, which may be
 * BLOCK's own.
 */
static struct bare_block *bare_first_before(const struct bare *b, struct bare_block *block)
{
	struct bare_block *at = block;

	while (at > b->blocks && block - at < CASE_REACH && !at->is_called &&
		work_spend(b->work, 1))
		at--;
	return at->is_called && at != block ? at + 1 : at;
}

/*
 * The next block behind AFTER that IS, among those that may be cases of BLOCK: first those behind
 * it, then those before it. One that is called begins a function: what is behind it belongs to
 * that.
 */
static struct bare_block *bare_next_that(const struct bare *b, struct bare_block *block,
	struct bare_block *after, bool (*is)(const struct bare_block *block))
{
	const bool is_halt = bare_last(b, block)->is_halt;
	const size_t end =
		MIN(b->block_count, (size_t)(block - b->blocks) + 1 + (is_halt ? 1 : CASE_REACH));
	struct bare_block *at = after + 1;

	if (after >= block) {
		for (; at < b->blocks + end && !at->is_called && work_spend(b->work, 1); at++)
			if (is(at))
				return at;
		if (is_halt)
			return NULL;
		at = bare_first_before(b, block);
	}
	for (; at < block && work_spend(b->work, 1); at++)
		if (is(at))
			return at;
	return NULL;
}

static bool bare_may_be_case(const struct bare_block *block)
{
	return block->may_be_case && !block->is_case;
}

struct bare_block *bare_next_candidate(
	const struct bare *b, struct bare_block *block, struct bare_block *after)
{
	return bare_next_that(b, block, after, bare_may_be_case);
}

static bool bare_is_known_case(const struct bare_block *block)
{
	return block->is_case;
}

struct bare_block *bare_next_case(
	const struct bare *b, struct bare_block *block, struct bare_block *after)
{
	while ((after = bare_next_that(b, block, after, bare_is_known_case)) != NULL)
		if (bare_root(b, after) == bare_root(b, block))
			return after;
	return NULL;
}

/* A candidate is followed in the state at the switch, through blocks that have no state yet. */
struct trial {
	const struct bare *b;
	const struct bare_block *root; /* of the switch */
	struct bare_block *blocks[CASE_BLOCKS];
	struct bare_state states[CASE_BLOCKS];
	uint32_t count;
	bool is_proved, is_refuted;
};

/* The function is left in STATE. */
static void trial_leave(struct trial *t, const struct bare_state *state)
{
	if (bare_state_is_as_called(state))
		t->is_proved = true;
	else
		t->is_refuted = true;
}

/* One way leads to BLOCK in STATE. */
static void trial_reach(struct trial *t, struct bare_block *block, const struct bare_state *state)
{
	if (block->is_called) {
		trial_leave(t, state);
		return;
	}
	if (block->has_state) {
		if (!bare_state_agrees(&block->state, state) || bare_root(t->b, block) != t->root)
			t->is_refuted = true;
		else
			t->is_proved = true;
		return;
	}
	for (uint32_t i = 0; i < t->count; i++) {
		if (t->blocks[i] != block)
			continue;
		t->is_refuted |= !bare_state_agrees(&t->states[i], state);
		return;
	}
	if (t->count == CASE_BLOCKS) {
		t->is_refuted = true;
		return;
	}
	t->blocks[t->count] = block;
	t->states[t->count++] = *state;
}

static void trial_jump(
	struct trial *t, const struct bare_instruction *last, const struct bare_state *state)
{
	if (last->target == BARE_OUTSIDE)
		trial_leave(t, state);
	else if (last->target == BARE_MIDDLE)
		t->is_refuted = true;
	else
		trial_reach(t, bare_block_of_target(t->b, last), state);
}

static void trial_end(struct trial *t, struct bare_block *block, const struct bare_state *state)
{
	const struct bare_instruction *last = bare_last(t->b, block);
	struct bare_block *next = bare_next(t->b, block);

	switch (last->kind) {
	case CODE_RETURN:
		trial_leave(t, state);
		break;
	case CODE_LEAVE:
	case CODE_JUMP:
	case CODE_BRANCH:
		trial_jump(t, last, state);
		break;
	default: /* nothing shows here whether the state is right */
		break;
	}
	if (next)
		trial_reach(t, next, state);
}

static void trial_run(struct trial *t, struct bare_block *block, struct bare_state state)
{
	for (uint32_t i = block->first; i < block->end && !t->is_refuted; i++) {
		const struct bare_instruction *at = &t->b->instructions[i];

		t->is_refuted |= !at->is_code || at->known ||
				 (bare_calls_outside(at) && !bare_state_may_call(&state));
		bare_run(t->b, &state, at);
		t->is_refuted |= bare_is_above(&state);
	}
	if (!t->is_refuted)
		trial_end(t, block, &state);
}

bool bare_is_case(const struct bare *b, struct bare_block *candidate, struct bare_block *block,
	const struct bare_state *state)
{
	struct trial t = { .b = b, .root = bare_root(b, block), .count = 1 };

	t.blocks[0] = candidate;
	t.states[0] = *state;
	for (uint32_t i = 0; i < t.count && !t.is_refuted; i++) {
		uint32_t instructions = t.blocks[i]->end - t.blocks[i]->first;

		if (!work_spend(b->work, BARE_INSTRUCTION_STEPS * instructions))
			return false;
		trial_run(&t, t.blocks[i], t.states[i]);
	}
	return t.is_proved && !t.is_refuted;
}
