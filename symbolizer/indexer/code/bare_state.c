/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/bare_state.h"

#include <elf.h>

enum {
	/* System V ABI, figure 3.36. */
	DWARF_RBX = 3,
	DWARF_R12 = 12,
	BARE_MAX_OFFSET = 1 << 28,
	BARE_STACK_ALIGN = 16, /* at calls, on both machines */
};

/* System V ABI for AMD64, 3.2.1: rbx, rbp, r12 to r15 belong to the caller. */
static const struct bare_machine bare_x86_64 = {
	.sp = CODE_RSP,
	.fp = CODE_RBP,
	.link = CODE_NO_REGISTER,
	.entry = -BARE_WORD,
	.kept = 1 << CODE_RBX | 1 << CODE_RBP | 0xf000,
	.count = 16,
	.step = 16,
	.align = 16,
};

/* Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1: x19 to x29, likewise. */
static const struct bare_machine bare_aarch64 = {
	.sp = CODE_SP,
	.fp = CODE_X29,
	.link = CODE_X30,
	.kept = 0x3ff80000,
	.count = 31,
	.instruction_bytes = 4,
	.step = 4,
	.align = 4,
};

const struct bare_machine *bare_machine(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return &bare_x86_64;
	case EM_AARCH64:
		return &bare_aarch64;
	default:
		return NULL;
	}
}

static bool bare_has_link(const struct bare_state *s)
{
	return s->machine->link != CODE_NO_REGISTER;
}

struct bare_state bare_state_at_entry(const struct bare_machine *machine)
{
	const bool has_link = machine->link != CODE_NO_REGISTER;

	return (struct bare_state){
		.machine = machine,
		.sp = machine->entry,
		.has_callers_fp = true,
		.has_ra = has_link,
		.ra_saved = has_link ? 0 : machine->entry,
	};
}

/* Sets *RET_SUM; false if it is no offset in a stack, so that sums of two never overflow. */
static bool bare_add(int32_t off, int32_t value, int32_t *ret_sum)
{
	return !__builtin_add_overflow(off, value, ret_sum) && *ret_sum >= -BARE_MAX_OFFSET &&
	       *ret_sum <= BARE_MAX_OFFSET;
}

static void bare_forget(struct bare_state *s, uint32_t registers)
{
	s->known &= ~registers;
	s->numbers &= ~registers;
	if (registers & bare_bit(s->machine->fp))
		s->has_callers_fp = false;
	if (registers & bare_bit(s->machine->link))
		s->has_ra = false;
	if (registers & bare_bit(s->machine->sp)) {
		s->is_realigned = true;
		s->sp = 0;
		s->has_slot = false;
	}
}

/* Whether REGISTER has an address of the frame; sets it. */
static bool bare_address(const struct bare_state *s, uint8_t number, int32_t *ret_off)
{
	if (number == s->machine->sp) {
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
	if (number == s->machine->sp) {
		s->is_realigned = false;
		s->sp = off;
		s->has_slot = false;
		return;
	}
	bare_forget(s, bare_bit(number));
	s->known |= bare_bit(number);
	s->registers[number] = off;
}

/* Whether SIZE bytes at OFF are in the word at PLACE. */
static bool bare_overlaps(int32_t off, int32_t size, int32_t place)
{
	return off < place + BARE_WORD && off + size > place;
}

/* SIZE bytes are written to OFF: register FROM, or something else. */
static void bare_save(struct bare_state *s, int32_t off, int32_t size, uint8_t from)
{
	const bool is_free = off < s->machine->entry;

	if (s->fp_saved && bare_overlaps(off, size, s->fp_saved))
		s->fp_saved = 0;
	if (from == s->machine->fp && s->has_callers_fp && !s->fp_saved && is_free)
		s->fp_saved = off;
	if (!bare_has_link(s))
		return;
	if (s->ra_saved && bare_overlaps(off, size, s->ra_saved))
		s->ra_saved = 0;
	if (from == s->machine->link && s->has_ra && !s->ra_saved && is_free)
		s->ra_saved = off;
}

static void bare_copy(struct bare_state *s, const struct code_effect *e)
{
	int32_t off;

	if (bare_address(s, e->from, &off) && bare_add(off, e->value, &off))
		bare_set(s, e->to, off);
	else if (e->to == s->machine->sp && e->from == e->to && s->is_realigned &&
		 bare_add(s->sp, e->value, &off))
		s->sp = off;
	else
		bare_forget(s, bare_bit(e->to));
}

static void bare_set_number(struct bare_state *s, const struct code_effect *e)
{
	bare_forget(s, bare_bit(e->to));
	s->numbers |= bare_bit(e->to);
	s->registers[e->to] = e->value;
}

/* Adds a number that a register has, or subtracts it. */
static void bare_sum(struct bare_state *s, const struct code_effect *e)
{
	struct code_effect copy = { .kind = CODE_EFFECT_COPY, .to = e->to, .from = e->from };

	if (!(s->numbers & bare_bit(e->second))) {
		bare_forget(s, bare_bit(e->to));
		return;
	}
	copy.value = s->registers[e->second];
	if (e->kind == CODE_EFFECT_SUBTRACT)
		copy.value = -copy.value;
	bare_copy(s, &copy);
}

static void bare_store(struct bare_state *s, const struct code_effect *e)
{
	int32_t off, value;

	if (bare_address(s, e->base, &off) && bare_add(off, e->value, &off)) {
		bare_save(s, off, e->size, e->from);
		if (e->second != CODE_NO_REGISTER)
			bare_save(s, off + BARE_WORD, BARE_WORD, e->second);
		return;
	}
	if (e->base != s->machine->sp || !s->is_realigned || !bare_add(s->sp, e->value, &off))
		return;
	if (s->has_slot && bare_overlaps(off, e->size, s->slot))
		s->has_slot = false;
	if (!s->has_slot && bare_address(s, e->from, &value)) {
		s->has_slot = true;
		s->slot = off;
		s->slot_value = value;
	}
}

/* Register TO gets what is at OFF. */
static void bare_restore(struct bare_state *s, int32_t off, uint8_t to)
{
	bare_forget(s, bare_bit(to));
	s->has_callers_fp |= to == s->machine->fp && s->fp_saved && off == s->fp_saved;
	s->has_ra |= to == s->machine->link && s->ra_saved && off == s->ra_saved;
}

static void bare_load(struct bare_state *s, const struct code_effect *e)
{
	int32_t off;

	if (bare_address(s, e->base, &off) && bare_add(off, e->value, &off)) {
		bare_restore(s, off, e->to);
		bare_restore(s, off + BARE_WORD, e->second);
	} else if (e->base == s->machine->sp && s->is_realigned && s->has_slot &&
		   bare_add(s->sp, e->value, &off) && off == s->slot && e->to < CODE_REGISTERS) {
		bare_set(s, e->to, s->slot_value);
		bare_forget(s, bare_bit(e->second));
	} else {
		bare_forget(s, bare_bit(e->to) | bare_bit(e->second));
	}
}

/* Moves the stack pointer by VALUE. */
static void bare_move(struct bare_state *s, int32_t value)
{
	if (!bare_add(s->sp, value, &s->sp))
		bare_forget(s, bare_bit(s->machine->sp));
}

/* Moves the base register of a load or store. */
static void bare_step(struct bare_state *s, const struct code_effect *e)
{
	int32_t off;

	if (!e->step)
		return;
	if (e->base == s->machine->sp)
		bare_move(s, e->step);
	else if (bare_address(s, e->base, &off) && bare_add(off, e->step, &off))
		bare_set(s, e->base, off);
	else
		bare_forget(s, bare_bit(e->base));
}

static void bare_push(struct bare_state *s, const struct code_effect *e)
{
	bare_move(s, -e->value);
	if (!s->is_realigned)
		bare_save(s, s->sp, e->value, e->from);
	if (s->is_realigned && s->has_slot && bare_overlaps(s->sp, e->value, s->slot))
		s->has_slot = false;
}

static void bare_pop(struct bare_state *s, const struct code_effect *e)
{
	bool is_saved = !s->is_realigned && s->fp_saved && s->sp == s->fp_saved;

	bare_move(s, e->value);
	bare_forget(s, bare_bit(e->to));
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

/* What is below the stack pointer may be overwritten at any time. */
static void bare_forget_below(struct bare_state *s)
{
	if (s->is_realigned)
		return;
	if (s->fp_saved < s->sp)
		s->fp_saved = 0;
	if (bare_has_link(s) && s->ra_saved < s->sp)
		s->ra_saved = 0;
}

void bare_state_run(struct bare_state *s, enum code_kind kind, const struct code_effect *e)
{
	switch (e->kind) {
	case CODE_EFFECT_COPY:
		bare_copy(s, e);
		break;
	case CODE_EFFECT_NUMBER:
		bare_set_number(s, e);
		break;
	case CODE_EFFECT_ADD:
	case CODE_EFFECT_SUBTRACT:
		bare_sum(s, e);
		break;
	case CODE_EFFECT_POINT:
		bare_forget(s, bare_bit(e->to));
		break;
	case CODE_EFFECT_PUSH:
		bare_push(s, e);
		break;
	case CODE_EFFECT_POP:
		bare_pop(s, e);
		break;
	case CODE_EFFECT_STORE:
		bare_store(s, e);
		bare_step(s, e);
		break;
	case CODE_EFFECT_LOAD:
		bare_load(s, e);
		bare_step(s, e);
		break;
	case CODE_EFFECT_LEAVE:
		bare_leave(s, e);
		break;
	default:
		break;
	}
	if (kind == CODE_CALL) {
		s->known &= s->machine->kept;
		s->numbers &= s->machine->kept;
		s->has_ra = false;
	} else if (kind != CODE_RETURN && e->writes) {
		bare_forget(s, e->writes);
	}
	bare_forget_below(s);
}

bool bare_state_begins(const struct bare_state *s, const struct code_effect *e)
{
	const uint8_t link = s->machine->link;

	return bare_has_link(s) && !s->has_ra && e->kind == CODE_EFFECT_STORE &&
	       e->base == s->machine->sp && (e->step < 0 || e->from == s->machine->fp) &&
	       (e->from == link || e->second == link);
}

static bool bare_same_place(const struct bare_state *one, const struct bare_state *other)
{
	return one->is_realigned == other->is_realigned && one->sp == other->sp;
}

bool bare_state_agrees(const struct bare_state *one, const struct bare_state *other)
{
	const uint8_t fp = one->machine->fp;

	return bare_same_place(one, other) || (one->known & other->known & bare_bit(fp) &&
						      one->registers[fp] == other->registers[fp]);
}

bool bare_state_meet(struct bare_state *to, const struct bare_state *from)
{
	const struct bare_state before = *to;

	if (!bare_same_place(to, from))
		bare_forget(to, bare_bit(to->machine->sp));
	to->known &= from->known;
	to->numbers &= from->numbers;
	for (uint8_t i = 0; i < to->machine->count; i++) {
		if (to->registers[i] == from->registers[i])
			continue;
		to->known &= ~bare_bit(i);
		to->numbers &= ~bare_bit(i);
	}
	to->has_callers_fp &= from->has_callers_fp;
	to->has_ra &= from->has_ra;
	if (to->fp_saved != from->fp_saved)
		to->fp_saved = 0;
	if (to->ra_saved != from->ra_saved)
		to->ra_saved = 0;
	if (to->doubt > from->doubt)
		to->doubt = from->doubt;
	if (!from->has_slot || to->slot != from->slot || to->slot_value != from->slot_value)
		to->has_slot = false;
	return !bare_same_place(to, &before) || to->known != before.known ||
	       to->numbers != before.numbers || to->has_callers_fp != before.has_callers_fp ||
	       to->has_ra != before.has_ra || to->fp_saved != before.fp_saved ||
	       to->ra_saved != before.ra_saved || to->has_slot != before.has_slot ||
	       to->doubt != before.doubt;
}

void bare_state_lose_fp(struct bare_state *s)
{
	bare_forget(s, bare_bit(s->machine->fp));
}

bool bare_state_may_return(const struct bare_state *s)
{
	return !s->is_realigned && s->sp == s->machine->entry && (!bare_has_link(s) || s->has_ra);
}

bool bare_state_may_call(const struct bare_state *s)
{
	return s->ra_saved && (s->is_realigned || !(s->sp % BARE_STACK_ALIGN));
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

/* After the stack was realigned. Of x86_64, walks know rbx and r12. */
static void bare_set_cfa_of_x86(const struct bare_state *s, struct abi_unwind_rule *rule)
{
	if (s->has_slot && -s->slot_value <= INT16_MAX) {
		rule->cfa = ABI_CFA_DEREF_SP;
		rule->cfa_off = s->slot - s->sp;
		rule->ra_off = (short)-s->slot_value;
	} else if (s->known >> CODE_RBX & 1) {
		bare_set_register(s, CODE_RBX, DWARF_RBX, rule);
	} else if (s->known >> CODE_R12 & 1) {
		bare_set_register(s, CODE_R12, DWARF_R12, rule);
	}
}

/* How to compute the CFA, from registers that walks have; ABI_CFA_NONE if nothing leads to it. */
static void bare_set_cfa(const struct bare_state *s, struct abi_unwind_rule *rule)
{
	if (!s->is_realigned) {
		rule->cfa = ABI_CFA_SP;
		rule->cfa_off = -s->sp;
	} else if (s->known & bare_bit(s->machine->fp)) {
		rule->cfa = ABI_CFA_FP;
		rule->cfa_off = -s->registers[s->machine->fp];
	} else if (!bare_has_link(s)) {
		bare_set_cfa_of_x86(s, rule);
	}
}

struct abi_unwind_rule bare_state_rule(const struct bare_state *s)
{
	struct abi_unwind_rule rule = { .cfa = ABI_CFA_NONE };

	if (s->ra_saved >= INT16_MIN && s->ra_saved) {
		rule.ra = ABI_REG_AT_CFA;
		rule.ra_off = (short)s->ra_saved;
	} else if (!s->has_ra) {
		return rule;
	}
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
