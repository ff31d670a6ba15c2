/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/bare_state.h"

enum {
	/* System V ABI, 3.2.1: rbx, rbp, r12 to r15 belong to the caller. */
	BARE_KEPT = 1 << CODE_RBX | 1 << CODE_RBP | 0xf000,
	/* System V ABI, figure 3.36. */
	DWARF_RBX = 3,
	DWARF_R12 = 12,
	BARE_MAX_OFFSET = 1 << 28,
};

struct bare_state bare_state_at_entry(void)
{
	return (struct bare_state){ .sp = -BARE_WORD, .has_callers_fp = true };
}

/* Sets *RET_SUM; false if it is no offset in a stack, so that sums of two never overflow. */
static bool bare_add(int32_t off, int32_t value, int32_t *ret_sum)
{
	return !__builtin_add_overflow(off, value, ret_sum) && *ret_sum >= -BARE_MAX_OFFSET &&
	       *ret_sum <= BARE_MAX_OFFSET;
}

static void bare_forget(struct bare_state *s, uint16_t registers)
{
	s->known &= (uint16_t)~registers;
	if (registers & 1 << CODE_RBP)
		s->has_callers_fp = false;
	if (registers & 1 << CODE_RSP) {
		s->is_realigned = true;
		s->sp = 0;
		s->has_slot = false;
	}
}

/* Whether REGISTER has an address of the frame; sets it. */
static bool bare_address(const struct bare_state *s, uint8_t number, int32_t *ret_off)
{
	if (number == CODE_RSP) {
		*ret_off = s->sp;
		return !s->is_realigned;
	}
	if (number >= CODE_REGISTERS || !(s->known >> number & 1))
		return false;
	*ret_off = s->registers[number];
	return true;
}

/* REGISTER gets the address OFF of the frame. */
static void bare_set(struct bare_state *s, uint8_t number, int32_t off)
{
	if (number == CODE_RSP) {
		s->is_realigned = false;
		s->sp = off;
		s->has_slot = false;
		return;
	}
	bare_forget(s, (uint16_t)(1 << number));
	s->known |= (uint16_t)(1 << number);
	s->registers[number] = off;
}

static bool bare_overlap(int32_t one, int32_t other)
{
	return one > other - BARE_WORD && one < other + BARE_WORD;
}

/* FROM is written to OFF. */
static void bare_save(struct bare_state *s, int32_t off, uint8_t from)
{
	if (s->fp_saved && bare_overlap(off, s->fp_saved))
		s->fp_saved = 0;
	if (from == CODE_RBP && s->has_callers_fp && !s->fp_saved && off < -BARE_WORD)
		s->fp_saved = off;
}

static void bare_copy(struct bare_state *s, const struct code_effect *e)
{
	int32_t off;

	if (bare_address(s, e->from, &off) && bare_add(off, e->value, &off))
		bare_set(s, e->to, off);
	else if (e->to == CODE_RSP && e->from == CODE_RSP && s->is_realigned &&
		 bare_add(s->sp, e->value, &off))
		s->sp = off;
	else
		bare_forget(s, (uint16_t)(1 << e->to));
}

static void bare_store(struct bare_state *s, const struct code_effect *e)
{
	int32_t off, value;

	if (bare_address(s, e->to, &off) && bare_add(off, e->value, &off)) {
		bare_save(s, off, e->from);
		return;
	}
	if (e->to != CODE_RSP || !s->is_realigned || !bare_add(s->sp, e->value, &off))
		return;
	if (s->has_slot && bare_overlap(off, s->slot))
		s->has_slot = false;
	if (!s->has_slot && bare_address(s, e->from, &value)) {
		s->has_slot = true;
		s->slot = off;
		s->slot_value = value;
	}
}

static void bare_load(struct bare_state *s, const struct code_effect *e)
{
	int32_t off;

	if (bare_address(s, e->from, &off) && bare_add(off, e->value, &off)) {
		bare_forget(s, (uint16_t)(1 << e->to));
		s->has_callers_fp |= e->to == CODE_RBP && s->fp_saved && off == s->fp_saved;
		return;
	}
	if (e->from == CODE_RSP && s->is_realigned && s->has_slot &&
		bare_add(s->sp, e->value, &off) && off == s->slot)
		bare_set(s, e->to, s->slot_value);
	else
		bare_forget(s, (uint16_t)(1 << e->to));
}

/* Moves the stack pointer by VALUE. */
static void bare_move(struct bare_state *s, int32_t value)
{
	if (!bare_add(s->sp, value, &s->sp))
		bare_forget(s, 1 << CODE_RSP);
}

static void bare_push(struct bare_state *s, const struct code_effect *e)
{
	bare_move(s, -e->value);
	if (!s->is_realigned)
		bare_save(s, s->sp, e->from);
	if (s->is_realigned && s->has_slot && bare_overlap(s->sp, s->slot))
		s->has_slot = false;
}

static void bare_pop(struct bare_state *s, const struct code_effect *e)
{
	bool is_saved = !s->is_realigned && s->fp_saved && s->sp == s->fp_saved;

	bare_move(s, e->value);
	if (e->to < CODE_REGISTERS)
		bare_forget(s, (uint16_t)(1 << e->to));
	s->has_callers_fp |= e->to == CODE_RBP && is_saved;
}

static void bare_leave(struct bare_state *s, const struct code_effect *e)
{
	const struct code_effect move = {
		.kind = CODE_EFFECT_COPY, .to = CODE_RSP, .from = CODE_RBP
	};
	const struct code_effect pop = {
		.kind = CODE_EFFECT_POP, .to = CODE_RBP, .value = e->value
	};

	bare_copy(s, &move);
	bare_pop(s, &pop);
}

void bare_state_run(struct bare_state *s, enum code_kind kind, const struct code_effect *e)
{
	switch (e->kind) {
	case CODE_EFFECT_COPY:
		bare_copy(s, e);
		break;
	case CODE_EFFECT_PUSH:
		bare_push(s, e);
		break;
	case CODE_EFFECT_POP:
		bare_pop(s, e);
		break;
	case CODE_EFFECT_STORE:
		bare_store(s, e);
		break;
	case CODE_EFFECT_LOAD:
		bare_load(s, e);
		break;
	case CODE_EFFECT_LEAVE:
		bare_leave(s, e);
		break;
	default:
		break;
	}
	if (kind == CODE_CALL)
		s->known &= BARE_KEPT;
	else if (kind != CODE_RETURN && e->writes)
		bare_forget(s, e->writes);
	/* What is below the stack pointer may be overwritten at any time. */
	if (!s->is_realigned && s->fp_saved && s->fp_saved < s->sp)
		s->fp_saved = 0;
}

bool bare_state_meet(struct bare_state *to, const struct bare_state *from)
{
	const struct bare_state before = *to;

	to->known &= from->known;
	for (int i = 0; i < CODE_REGISTERS; i++)
		if (to->registers[i] != from->registers[i])
			to->known &= (uint16_t) ~(1 << i);
	to->has_callers_fp &= from->has_callers_fp;
	if (to->fp_saved != from->fp_saved)
		to->fp_saved = 0;
	if (!from->has_slot || to->slot != from->slot || to->slot_value != from->slot_value)
		to->has_slot = false;
	return to->known != before.known || to->has_callers_fp != before.has_callers_fp ||
	       to->fp_saved != before.fp_saved || to->has_slot != before.has_slot;
}

void bare_state_lose_fp(struct bare_state *s)
{
	bare_forget(s, 1 << CODE_RBP);
}

bool bare_state_may_return(const struct bare_state *s)
{
	return !s->is_realigned && s->sp == -BARE_WORD;
}

bool bare_state_is_as_called(const struct bare_state *s)
{
	return bare_state_may_return(s) && s->has_callers_fp;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void bare_set_register(const struct bare_state *s, uint8_t number, uint8_t dwarf_number,
	struct abi_unwind_rule *rule)
{
	rule->cfa = ABI_CFA_REG;
	rule->extra = dwarf_number;
	rule->cfa_off = -s->registers[number];
}

/* How to compute the CFA, from registers that walks have; ABI_CFA_NONE if nothing leads to it. */
static void bare_set_cfa(const struct bare_state *s, struct abi_unwind_rule *rule)
{
	rule->ra = ABI_REG_AT_CFA;
	rule->ra_off = -BARE_WORD;
	if (!s->is_realigned) {
		rule->cfa = ABI_CFA_SP;
		rule->cfa_off = -s->sp;
	} else if (s->known >> CODE_RBP & 1) {
		rule->cfa = ABI_CFA_FP;
		rule->cfa_off = -s->registers[CODE_RBP];
	} else if (s->is_realigned && s->has_slot && -s->slot_value <= INT16_MAX) {
		rule->cfa = ABI_CFA_DEREF_SP;
		rule->cfa_off = s->slot - s->sp;
		rule->ra_off = (short)-s->slot_value;
	} else if (s->known >> CODE_RBX & 1) {
		bare_set_register(s, CODE_RBX, DWARF_RBX, rule);
	} else if (s->known >> CODE_R12 & 1) {
		bare_set_register(s, CODE_R12, DWARF_R12, rule);
	}
}

struct abi_unwind_rule bare_state_rule(const struct bare_state *s)
{
	struct abi_unwind_rule rule = { .cfa = ABI_CFA_NONE };

	bare_set_cfa(s, &rule);
	if (s->has_callers_fp) {
		rule.fp = ABI_REG_SAME;
	} else if (s->fp_saved && s->fp_saved >= INT16_MIN) {
		rule.fp = ABI_REG_AT_CFA;
		rule.fp_off = (short)s->fp_saved;
	} else {
		rule.fp = ABI_REG_UNDEFINED;
	}
	return rule;
}
