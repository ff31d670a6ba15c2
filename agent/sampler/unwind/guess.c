/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate is a word of the frame's stack that holds the address behind a call instruction, in
 * code that has a table. It is the return address if, first, the tables lead from it to the
 * thread's first function, and second, the calls agree.
 *
 * The danger is an address that an earlier call left in memory that the frame has reserved but not
 * written yet. Such a stale caller has its own frame below the true return address, and its table
 * leads to that: the walk arrives at the root, with frames inserted that do not run. What betrays
 * it is the call at the true return address, which led to the code without a table, and not to the
 * stale caller. So within GUESS_WORDS of sp, which a frame without a table is taken to fit in, each
 * caller must call the next frame's function directly. Then that one runs, and what it called
 * begins where its own frame ends, and so on down to the candidate.
 *
 * What the candidate itself calls is the function of the pc, by its name or start; or another one,
 * and then it is not the caller, though the callee may have jumped here; or it is an indirect call,
 * or a function without a name. That is believed only if no nearer candidate could be the caller.
 */
#include "agent/sampler/unwind/guess.h"

#include <string.h>

#include "agent/sampler/unwind/unwind_internal.h"

enum {
	GUESS_WORDS = 128, /* see above */
	GUESS_CHAIN = GUESS_WORDS, /* frames that fit there */
	/* Of all walks together, which a program can make long: about 2 ms. */
	GUESS_STEPS = 2 * ABI_WALK_FRAMES,
	GUESS_CALL_STEPS = 8, /* what looking at a call costs instead */
};

/* What a call leads to. */
enum guess_callee {
	GUESS_OTHER, /* a function that is known not to contain the pc */
	GUESS_OPEN, /* it cannot be known */
	GUESS_SAME, /* the pc's function */
};

/* The frames from a candidate on. */
struct guess_chain {
	uint64_t pcs[GUESS_CHAIN], slots[GUESS_CHAIN]; /* return addresses, and where they are */
	uint32_t count;
	uint64_t outermost[3]; /* return addresses, the root's first */
};

struct guess_place {
	const struct module *module;
	const struct index *index;
	uint64_t elf_addr;
};

/* ---- functions ------------------------------------------------------------------------------ */

/* Returns false if PC is in no module with an index. */
static bool guess_locate(const struct guess *g, uint64_t pc, struct guess_place *ret_place)
{
	const struct unwind_options *options = &g->unwind->options;
	const struct mapping *mapping = mappings_find(g->mappings, pc);
	size_t segment;

	if (!mapping || mapping->module->kind != MODULE_FILE)
		return false;
	ret_place->module = mapping->module;
	return options->module(options->context, mapping->module, &ret_place->index) ==
		       UNWIND_MODULE_READY &&
	       index_address(ret_place->index, mapping_file_off(mapping, pc), &ret_place->elf_addr,
		       &segment);
}

/* The name of the function at PLACE, without what is inlined; NULL = none. */
static const char *guess_name(const struct guess_place *place)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	size_t count = index_lookup(place->index, place->elf_addr, frames, INDEX_MAX_FRAMES);

	return count ? frames[count - 1].linkage : NULL;
}

/* Whether NAME is `f@plt`, the stub by which other modules call FUNCTION. */
static bool guess_is_stub(const char *name, const char *function)
{
	size_t length = strlen(function);

	return !strncmp(name, function, length) && !strcmp(name + length, "@plt");
}

static enum guess_callee guess_by_name(const char *name, const char *inner)
{
	if (!name || !inner)
		return GUESS_OTHER;
	return !strcmp(name, inner) || guess_is_stub(name, inner) ? GUESS_SAME : GUESS_OTHER;
}

/* Whether a call of TARGET leads to the function with PC. */
static enum guess_callee guess_callee_of(const struct guess *g, uint64_t target, uint64_t pc)
{
	struct guess_place to, in;
	uint64_t to_start, in_start;
	const char *name, *inner;
	bool known;

	if (!guess_locate(g, target, &to) || !guess_locate(g, pc, &in))
		return GUESS_OPEN;
	name = guess_name(&to);
	inner = guess_name(&in);
	if (name || inner)
		return guess_by_name(name, inner);
	if (to.module != in.module)
		return GUESS_OPEN;
	known = index_nameless(to.index, to.elf_addr, &to_start);
	if (known != index_nameless(in.index, in.elf_addr, &in_start))
		return GUESS_OTHER;
	if (known)
		return to_start == in_start ? GUESS_SAME : GUESS_OTHER;
	return to.elf_addr <= in.elf_addr ? GUESS_OPEN : GUESS_OTHER;
}

/* What the call before ADDRESS, whose last bytes are CODE, leads to. */
static enum guess_callee guess_called(
	const struct guess *g, uint64_t code, uint64_t address, uint64_t pc)
{
	uint64_t target = unwind_call_target(code, address);

	if (unwind_is_direct_call(code) && mappings_find(g->mappings, target))
		return guess_callee_of(g, target, pc);
	return unwind_is_indirect_call(code) ? GUESS_OPEN : GUESS_OTHER;
}

/* ---- candidates ----------------------------------------------------------------------------- */

enum guess_kind {
	GUESS_JUNK, /* no return address of a frame with a table */
	GUESS_UNKNOWN, /* code without a table: it may be the caller, and cannot be proved */
	GUESS_PROVED, /* the tables lead to the root */
};

/* The slot that a return address was in when STATE became its frame. */
static uint64_t guess_slot(const struct unwind_state *state)
{
	return state->sp - 8;
}

/*
 * Whether STATE, in code without a table, has a frame of the usual form: libraries have such
 * functions, which align the stack and call back.
 */
static bool guess_is_framed(const struct unwind_state *state, enum unwind_place place)
{
	return place == UNWIND_PLACE_GAP && unwind_is_frame_pointer(state);
}

/* Returns false when STEPS are too many. */
static bool guess_spend(struct guess *g, uint32_t steps)
{
	g->steps += steps;
	return g->steps <= GUESS_STEPS;
}

/* Walks from STATE, by tables but for framed functions. */
static enum guess_kind guess_walk(
	struct guess *g, struct unwind_state state, struct guess_chain *chain)
{
	chain->count = 0;
	memset(chain->outermost, 0, sizeof(chain->outermost));
	for (uint32_t i = 0; guess_spend(g, 1); i++) {
		const struct mapping *waits = NULL;
		struct abi_unwind_rule rule = { 0 };
		enum unwind_place place = unwind_place_of(
			g->unwind, g->mappings, state.pc - state.is_return, &rule, &waits);
		int end;

		if (waits)
			g->waits = waits;
		if (i == 0 && place != UNWIND_PLACE_TABLE)
			return mappings_find(g->mappings, state.pc - 1) ? GUESS_UNKNOWN
									: GUESS_JUNK;
		if (place != UNWIND_PLACE_TABLE && !guess_is_framed(&state, place))
			return GUESS_JUNK;
		if (rule.cfa >= ABI_CFA_RUNTIME || rule.cfa == ABI_CFA_SIGNAL)
			return GUESS_JUNK;
		memmove(chain->outermost + 1, chain->outermost, 2 * sizeof(chain->outermost[0]));
		chain->outermost[0] = state.pc;
		if (chain->count < GUESS_CHAIN) {
			chain->pcs[chain->count] = state.pc;
			chain->slots[chain->count++] = guess_slot(&state);
		}
		end = unwind_step_from(&state, place, &rule);
		/* Not where a return address is 0: a word of any memory may be. */
		if (end == ABI_UNWIND_ROOT)
			return rule.cfa == ABI_CFA_END || rule.ra == ABI_REG_UNDEFINED
				       ? GUESS_PROVED
				       : GUESS_JUNK;
		if (end != ABI_UNWIND_GOES_ON)
			return GUESS_JUNK;
	}
	return GUESS_JUNK;
}

/* The caller if candidate NUMBER is the return address of LEAF. Returns false if it is unreadable.
 */
static bool guess_candidate(const struct guess *g, const struct unwind_state *leaf, uint32_t number,
	struct unwind_state *ret_state)
{
	uint64_t slot = leaf->sp + g->returns->of[number].word * 8;
	struct unwind_state state = *leaf;
	__u64 pc = 0;

	if (unwind_word(&state, slot, &pc))
		return false;
	/* Only a frame of the usual form changes the caller's frame pointer in a way that is known.
	 */
	if (leaf->fp == slot - 8 && unwind_word(&state, slot - 8, &state.fp))
		return false;
	if (unwind_to(&state, pc, slot + 8, state.fp) != ABI_UNWIND_GOES_ON)
		return false;
	*ret_state = state;
	return true;
}

/* ---- judgement ------------------------------------------------------------------------------ */

/* The code before the return address in SLOT; 0 = not known. */
static uint64_t guess_code_at(const struct guess *g, uint64_t slot)
{
	uint64_t word = (slot - g->returns->sp) / 8;

	for (uint32_t i = 0; i < g->returns->count; i++) {
		if (g->returns->of[i].word == word)
			return g->returns->of[i].code;
	}
	return 0;
}

static bool guess_is_in(const struct guess_chain *chain, uint64_t slot)
{
	for (uint32_t i = 0; i < chain->count; i++) {
		if (chain->slots[i] == slot)
			return true;
	}
	return false;
}

/*
 * Whether the frame with return address PC is the C library's code that calls main() or a thread's
 * function, by a pointer: a function that calls nothing else which leaves a frame where that one
 * begins. Below it are clone() in the same file, or __libc_start_main() and the program's _start().
 */
static bool guess_starts_thread(const struct guess *g, const struct guess_chain *chain, uint64_t pc)
{
	struct guess_place of[3];

	if (pc == chain->outermost[0])
		return true;
	for (int i = 0; i < 3; i++) {
		if (!chain->outermost[i] || !guess_locate(g, chain->outermost[i] - 1, &of[i]))
			return false;
		if (i == 1 && pc == chain->outermost[1])
			return of[0].module == of[1].module;
	}
	return pc == chain->outermost[2] && of[2].module == of[1].module &&
	       of[1].module != of[0].module;
}

/*
 * Whether each frame near sp is what its caller calls. Sets *RET_CONFIRMED if that is known of the
 * candidate's own frame.
 */
static bool guess_calls_agree(struct guess *g, const struct guess_chain *chain, bool *ret_confirmed)
{
	*ret_confirmed = false;
	for (uint32_t i = 1; i < chain->count; i++) {
		uint64_t distance = (chain->slots[i] - g->returns->sp) / 8;
		uint64_t code = guess_code_at(g, chain->slots[i]);
		enum guess_callee callee;

		if (!code && (distance >= GUESS_WORDS || distance >= g->returns->words))
			return true;
		if (!guess_spend(g, GUESS_CALL_STEPS))
			return false;
		callee = guess_called(g, code, chain->pcs[i], chain->pcs[i - 1] - 1);
		if (callee == GUESS_OPEN && guess_starts_thread(g, chain, chain->pcs[i]))
			callee = GUESS_SAME;
		if (callee == GUESS_OTHER || (callee == GUESS_OPEN && distance < GUESS_WORDS))
			return false;
		*ret_confirmed |= i == 1 && callee == GUESS_SAME;
	}
	return true;
}

/* Whether a candidate behind number FIRST, which has CHAIN, could be the caller instead. */
static bool guess_has_rival(struct guess *g, const struct unwind_state *leaf, uint32_t first,
	const struct guess_chain *chain)
{
	struct guess_chain other;
	struct unwind_state state;
	bool confirmed;

	for (uint32_t i = first + 1; i < g->returns->count; i++) {
		uint64_t slot = leaf->sp + g->returns->of[i].word * 8;
		enum guess_kind kind;

		if (g->returns->of[i].word >= GUESS_WORDS)
			break;
		if (guess_is_in(chain, slot) || !guess_candidate(g, leaf, i, &state))
			continue;
		kind = guess_walk(g, state, &other);
		if (kind == GUESS_UNKNOWN ||
			(kind == GUESS_PROVED && guess_calls_agree(g, &other, &confirmed)))
			return true;
	}
	return false;
}

/* Whether candidate NUMBER, which has CHAIN, is the caller that everything else agrees with. */
static bool guess_is_sure(struct guess *g, const struct unwind_state *leaf, uint32_t number,
	const struct guess_chain *chain)
{
	bool confirmed;

	return guess_calls_agree(g, chain, &confirmed) &&
	       (confirmed || !guess_has_rival(g, leaf, number, chain)) && !g->waits &&
	       guess_spend(g, 0);
}

bool guess_caller(struct guess *g, struct unwind_state *leaf)
{
	bool doubtful = false; /* a nearer one may be the caller */
	struct guess_chain chain;
	struct unwind_state state;

	/* More candidates than were shipped. */
	if (g->returns->count >= ABI_RETURNS && g->returns->words < GUESS_WORDS)
		return false;
	for (uint32_t i = 0; i < g->returns->count; i++) {
		const struct abi_return *at = &g->returns->of[i];
		enum guess_callee callee;
		enum guess_kind kind;

		if (at->word >= GUESS_WORDS)
			break;
		if (!guess_candidate(g, leaf, i, &state))
			continue;
		kind = guess_walk(g, state, &chain);
		if (kind == GUESS_JUNK)
			continue;
		callee = guess_called(g, at->code, state.pc, leaf->pc - leaf->is_return);
		if (kind == GUESS_PROVED &&
			(callee == GUESS_SAME || (callee == GUESS_OPEN && !doubtful)) &&
			guess_is_sure(g, leaf, i, &chain)) {
			*leaf = state;
			return true;
		}
		doubtful = true;
	}
	return false;
}
