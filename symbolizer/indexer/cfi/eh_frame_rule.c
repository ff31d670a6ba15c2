/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/cfi/eh_frame_rule.h"

#include <elf.h>
#include <string.h>

/* DW_OP_*, as far as they are recognised. */
enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_MUL = 0x1e,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
};

enum { DWARF_RBX = 3, DWARF_RDI = 5, DWARF_R12 = 12, WORD = 8 };

/* A rule under construction. */
struct parts {
	uint32_t cfa, fp, ra, extra;
	int32_t cfa_off, fp_off, ra_off;
};

static const struct parts unsupported = { .cfa = ABI_CFA_UNSUPPORTED };

/*
 * Written as two numbers: if fields are stored one by one and then compared as a whole, the loads
 * stall on the stores, which took a third of the time of a build.
 */
static struct abi_unwind_rule eh_frame_rule_pack(const struct parts *p)
{
	uint32_t kinds = p->cfa | p->fp << 8 | p->ra << 16 | p->extra << 24;
	uint64_t head = kinds | (uint64_t)(uint32_t)p->cfa_off << 32;
	uint32_t tail = (uint16_t)p->fp_off | (uint32_t)p->ra_off << 16;
	struct abi_unwind_rule rule;

	memcpy(&rule, &head, sizeof(head));
	memcpy((uint8_t *)&rule + sizeof(head), &tail, sizeof(tail));
	return rule;
}

struct cfi_machine cfi_machine(const struct cfi_section *s)
{
	struct cfi_machine machine = { .fp = 6, .sp = 7, .ra = 16, .held = DWARF_RDI };

	if (s->machine == EM_AARCH64)
		return (struct cfi_machine){ .fp = 29, .sp = 31, .ra = 30, .link = true };
	if (s->kept)
		machine.kept = s->kept - 1 == ABI_KEPT_RBX ? DWARF_RBX : DWARF_R12;
	return machine;
}

static bool fits_short(int64_t value)
{
	return value >= INT16_MIN && value <= INT16_MAX;
}

static bool fits_int(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

/*
 * `breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus`: a PLT entry has 16 bytes and has
 * pushed a word from its Nth byte on.
 */
static bool is_plt(struct cursor c, uint8_t *ret_bytes)
{
	static const uint8_t before[] = { OP_BREG0 + 7, 8, OP_BREG0 + 16, 0, OP_LIT0 + 15, OP_AND };
	static const uint8_t after[] = { OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS };
	const void *head = cursor_bytes(&c, sizeof(before)), *tail;
	uint8_t literal = cursor_u8(&c);

	tail = cursor_bytes(&c, sizeof(after));
	if (!tail || cursor_left(&c) || memcmp(head, before, sizeof(before)) ||
		memcmp(tail, after, sizeof(after)) || literal < OP_LIT0 || literal > OP_LIT0 + 15)
		return false;
	*ret_bytes = literal - OP_LIT0;
	return true;
}

bool cfi_read_breg(struct cursor *c, uint64_t *ret_register, int64_t *ret_offset)
{
	uint8_t op = cursor_u8(c);
	int64_t offset = cursor_sleb128(c);

	if (c->bad || op < OP_BREG0 || op > OP_BREG31)
		return false;
	*ret_register = op - OP_BREG0;
	*ret_offset = offset;
	return true;
}

/*
 * `breg6 0; deref; lit16; plus`: SBCL's call_into_lisp(), at the call. This holds for the rbp that
 * the Lisp function is given as its frame, which points to a copy of our own rbp. A walk through
 * Lisp code goes by such frames, and has our own when it arrives here.
 */
static bool is_lisp_call(struct cursor c)
{
	static const uint8_t code[] = { OP_BREG0 + 6, 0, OP_DEREF, OP_LIT0 + 16, OP_PLUS };

	return cursor_left(&c) == sizeof(code) && !memcmp(c.at, code, sizeof(code));
}

/*
 * `breg7 offset; breg9 0; lit8; mul; plus; deref; plus_uconst 8`: OpenSSL's bn_mul_mont() keeps its
 * caller's stack pointer behind an array of r9 words. Reads up to the `deref`.
 */
static bool read_index(const struct cfi_machine *m, struct cursor *c, struct parts *rule)
{
	static const uint8_t after[] = { OP_LIT0 + WORD, OP_MUL, OP_PLUS };
	uint64_t sp, index;
	int64_t offset, zero;
	const void *tail;

	if (!cfi_read_breg(c, &sp, &offset) || !cfi_read_breg(c, &index, &zero))
		return false;
	tail = cursor_bytes(c, sizeof(after));
	if (!tail || memcmp(tail, after, sizeof(after)) || sp != m->sp || zero || !fits_int(offset))
		return false;
	rule->cfa = ABI_CFA_REG;
	rule->extra = ABI_CFA_REG_INDEX | (uint32_t)index;
	rule->cfa_off = (int32_t)offset;
	return true;
}

/* `breg offset`: of functions that realign their stack. */
static bool read_place(const struct cfi_machine *m, struct cursor *c, struct parts *rule)
{
	uint64_t reg;
	int64_t offset;

	if (!cfi_read_breg(c, &reg, &offset) || !fits_int(offset) || (reg != m->sp && reg != m->fp))
		return false;
	rule->cfa = reg == m->sp ? ABI_CFA_DEREF_SP : ABI_CFA_DEREF_FP;
	rule->cfa_off = (int32_t)offset;
	return true;
}

/* One of these, `deref`, and optionally `plus_uconst`. */
static struct parts deref_rule(const struct cfi_machine *m, struct cursor c)
{
	struct cursor index = c;
	struct parts rule = { 0 };
	uint64_t plus = 0;

	if (read_index(m, &index, &rule))
		c = index;
	else if (!read_place(m, &c, &rule))
		return unsupported;
	if (cursor_u8(&c) != OP_DEREF)
		return unsupported;
	if (cursor_left(&c)) {
		if (cursor_u8(&c) != OP_PLUS_UCONST)
			return unsupported;
		plus = cursor_uleb128(&c);
	}
	if (c.bad || cursor_left(&c) || plus > INT16_MAX)
		return unsupported;
	rule.ra_off = (int32_t)plus;
	return rule;
}

static struct parts expression_rule(const struct cfi_machine *m, const struct cfi_state *s)
{
	struct cursor c = cursor_over(s->expression, s->expression_size);
	struct parts rule = { 0 };
	uint8_t bytes;

	/* These rules use ra_off for something else: the return address must not move. */
	if (m->link)
		return unsupported;
	if (is_lisp_call(c))
		return (struct parts){ .cfa = ABI_CFA_FP, .cfa_off = 2 * WORD };
	if (!is_plt(c, &bytes))
		return deref_rule(m, c);
	rule.cfa = ABI_CFA_PLT;
	rule.cfa_off = bytes;
	return rule;
}

static struct parts cfa_rule(const struct cfi_machine *m, const struct cfi_state *s)
{
	struct parts rule = { 0 };

	if (s->expression)
		return expression_rule(m, s);
	if (!s->has_cfa || !fits_int(s->cfa_offset) || s->cfa_register >= ABI_CFA_REG_INDEX)
		return unsupported;
	rule.cfa_off = (int32_t)s->cfa_offset;
	if (s->cfa_register == m->sp) {
		rule.cfa = ABI_CFA_SP;
	} else if (s->cfa_register == m->fp) {
		rule.cfa = ABI_CFA_FP;
	} else {
		rule.cfa = ABI_CFA_REG;
		rule.extra = (uint32_t)s->cfa_register;
	}
	return rule;
}

static void set_fp(struct parts *rule, const struct cfi_register *fp)
{
	if (fp->place == CFI_UNDEFINED) {
		rule->fp = ABI_REG_UNDEFINED;
	} else if (fp->place == CFI_SAME) {
		rule->fp = ABI_REG_SAME;
	} else if (fp->place == CFI_ELSEWHERE || !fits_short(fp->offset)) {
		rule->fp = ABI_REG_UNSUPPORTED;
	} else {
		rule->fp = fp->place == CFI_AT_FP ? ABI_REG_AT_FP : ABI_REG_AT_CFA;
		rule->fp_off = (int32_t)fp->offset;
	}
}

/* Whether the CFA is read from memory: `ra_off` is added to it. */
static bool is_deref(const struct parts *rule)
{
	return rule->cfa == ABI_CFA_DEREF_SP || rule->cfa == ABI_CFA_DEREF_FP ||
	       (rule->cfa == ABI_CFA_REG && rule->extra & ABI_CFA_REG_INDEX);
}

/*
 * On x86_64 the call pushes the return address. Only vfork() pops it, since its child would write
 * another one there; no other place is known to occur.
 */
static void set_pushed_ra(struct parts *rule, const struct cfi_register *ra)
{
	if (ra->place == CFI_HELD && rule->cfa == ABI_CFA_SP) {
		rule->ra = ABI_REG_SAME;
		return;
	}
	if (ra->place != CFI_AT_CFA || ra->offset != -8) {
		*rule = unsupported;
		return;
	}
	rule->ra = ABI_REG_AT_CFA;
	if (!is_deref(rule))
		rule->ra_off = -8;
}

static void set_linked_ra(struct parts *rule, const struct cfi_register *ra)
{
	if (ra->place == CFI_SAME) {
		rule->ra = ABI_REG_SAME;
	} else if (ra->place != CFI_AT_CFA || !fits_short(ra->offset)) {
		rule->ra = ABI_REG_UNSUPPORTED;
	} else {
		rule->ra = ABI_REG_AT_CFA;
		rule->ra_off = (int32_t)ra->offset;
	}
}

/* Only a register that is unchanged or saved close below the CFA fits a rule. */
static void set_kept(
	const struct cfi_machine *m, struct parts *rule, const struct cfi_register *kept)
{
	int64_t words = kept->place == CFI_SAME ? ABI_UNWIND_UNCHANGED : 0;

	if (!m->kept || rule->cfa == ABI_CFA_REG || rule->cfa == ABI_CFA_PLT)
		return;
	if (kept->place == CFI_AT_CFA && kept->offset % WORD == 0)
		words = -(kept->offset / WORD);
	if (words < ABI_UNWIND_UNCHANGED || words > ABI_UNWIND_KEPT_WORDS ||
		(kept->place == CFI_AT_CFA && words == ABI_UNWIND_UNCHANGED))
		return;
	rule->extra = (uint32_t)words << ABI_UNWIND_KEPT_SHIFT |
		      (m->kept == DWARF_RBX ? ABI_UNWIND_KEPT_RBX : 0);
}

struct abi_unwind_rule cfi_rule(
	const struct cfi_machine *m, bool signal, const struct cfi_state *state)
{
	struct parts rule;

	if (state->ra.place == CFI_UNDEFINED)
		return eh_frame_rule_pack(&(struct parts){ .cfa = ABI_CFA_END });
	if (signal)
		return eh_frame_rule_pack(&(struct parts){ .cfa = ABI_CFA_SIGNAL });
	rule = cfa_rule(m, state);
	if (rule.cfa == ABI_CFA_UNSUPPORTED)
		return eh_frame_rule_pack(&rule);
	set_fp(&rule, &state->fp);
	if (m->link)
		set_linked_ra(&rule, &state->ra);
	else
		set_pushed_ra(&rule, &state->ra);
	if (rule.cfa != ABI_CFA_UNSUPPORTED)
		set_kept(m, &rule, &state->kept);
	return eh_frame_rule_pack(&rule);
}

struct abi_unwind_rule cfi_entry_rule(const struct cfi_section *s)
{
	struct cfi_machine m = cfi_machine(s);
	struct cfi_state state = { .has_cfa = true, .cfa_register = m.sp };

	if (!m.link) {
		state.cfa_offset = 8;
		state.ra = (struct cfi_register){ .place = CFI_AT_CFA, .offset = -8 };
	}
	return cfi_rule(&m, false, &state);
}
