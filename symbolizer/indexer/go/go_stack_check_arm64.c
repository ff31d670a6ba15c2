/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of g is in x28. A small function compares sp itself, a larger one sp - N, and a huge
 * one guards against an underflow. Encodings: Arm Architecture Reference Manual, C6.2.
 */
#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/go/go_stack_check.h"

enum {
	LOAD_GUARD = 0xf9400b80, /* ldr xT, [x28, #16] */
	REGISTER_MASK = 0x1f,
};

/* The words of a prologue. */
struct arm64_words {
	struct cursor c;
	uint32_t word; /* the one at hand */
};

static void arm64_next(struct arm64_words *w)
{
	w->word = cursor_u32(&w->c);
}

/* Whether the word is CODE but for the bits of MASK; then takes the next one. */
static bool arm64_take(struct arm64_words *w, uint32_t code, uint32_t mask)
{
	if (w->c.bad || (w->word & ~mask) != code)
		return false;
	arm64_next(w);
	return true;
}

/* movz, and movk with other halves, of register NUMBER. False: a constant made otherwise. */
static bool arm64_constant(struct arm64_words *w, uint32_t number, uint32_t *ret_value)
{
	const uint32_t immediate = 0xffff << 5, half = 1 << 21;
	uint32_t word = w->word, value;

	if (!arm64_take(w, 0xd2800000 | number, immediate | half))
		return false;
	value = (word >> 5 & 0xffff) << (word & half ? 16 : 0);
	word = w->word;
	if (arm64_take(w, 0xf2800000 | number, immediate | half))
		value |= (word >> 5 & 0xffff) << (word & half ? 16 : 0);
	*ret_value = value;
	return true;
}

/* cmp xS, xGUARD */
static bool arm64_compare(struct arm64_words *w, uint32_t guard)
{
	return arm64_take(w, 0xeb00001f | guard << 16, REGISTER_MASK << 5);
}

/* sub xS, sp, #N, of 12 bits that may be shifted by 12 */
static bool arm64_subtract(struct arm64_words *w, uint32_t guard, uint32_t *ret_bytes)
{
	const uint32_t immediate = 0xfff << 10, shift = 1 << 22;
	uint32_t word = w->word;

	if (!arm64_take(w, 0xd10003e0, immediate | shift | REGISTER_MASK))
		return false;
	*ret_bytes = (word >> 10 & 0xfff) << (word & shift ? 12 : 0);
	return arm64_compare(w, guard);
}

/* mov x27, #N; subs xS, sp, x27; b.lo; cmp xS, xGUARD */
static bool arm64_subtract_large(struct arm64_words *w, uint32_t guard, uint32_t *ret_bytes)
{
	return arm64_constant(w, 27, ret_bytes) && arm64_take(w, 0xeb3b63e0, REGISTER_MASK) &&
	       arm64_take(w, 0x54000003, 0x7ffff << 5) && arm64_compare(w, guard);
}

/*
 * Until 1.16: mov x27, #stackPreempt; cmp xGUARD, x27; b.eq; add x2, sp, #SLACK; sub x2, x2,
 * xGUARD; mov x3, #(N + SLACK); cmp x2, x3
 */
static bool arm64_huge(struct arm64_words *w, uint32_t guard, uint32_t *ret_bytes)
{
	uint32_t slack, sum;

	if (!arm64_take(w, 0x9280a43b, 0) || !arm64_take(w, 0xeb1b001f | guard << 5, 0) ||
		!arm64_take(w, 0x54000000, 0x7ffff << 5))
		return false;
	slack = w->word >> 10 & 0xfff;
	if (!arm64_take(w, 0x910003e2, 0xfff << 10) ||
		!arm64_take(w, 0xcb000042 | guard << 16, 0) || !arm64_constant(w, 3, &sum) ||
		!arm64_take(w, 0xeb03005f, 0))
		return false;
	*ret_bytes = sum - slack;
	return true;
}

/* cmp sp, xGUARD or, until 1.16, mov x2, sp; cmp x2, xGUARD */
static bool arm64_small(struct arm64_words *w, uint32_t guard)
{
	if (arm64_take(w, 0xeb2063ff | guard << 16, 0))
		return true;
	return arm64_take(w, 0x910003e2, 0) && arm64_compare(w, guard);
}

uint32_t go_stack_check_arm64(struct cursor prologue)
{
	struct arm64_words start = { .c = prologue }, w;
	uint32_t guard, bytes = 0;

	arm64_next(&start);
	guard = start.word & REGISTER_MASK;
	if (!arm64_take(&start, LOAD_GUARD, REGISTER_MASK))
		return INDEX_NO_STACK_CHECK;
	w = start;
	if (arm64_small(&w, guard))
		return 0;
	w = start;
	if (arm64_subtract(&w, guard, &bytes))
		return bytes;
	w = start;
	if (arm64_subtract_large(&w, guard, &bytes))
		return bytes;
	w = start;
	return arm64_huge(&w, guard, &bytes) ? bytes : INDEX_NO_STACK_CHECK;
}
