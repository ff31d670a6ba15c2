/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame instructions are a small machine: a current row (the rule of the canonical frame
 * address, and where each register of the caller is), instructions that change it, and others that
 * advance the location, which completes a row. Of the registers only two are followed: the frame
 * pointer and the return address; a walk needs no others, but for one more in a few files. Rows are
 * turned into rules when the location advances, so what is never valid anywhere costs nothing.
 */
#include "symbolizer/index/eh_frame_cfa.h"

#include <elf.h>
#include <errno.h>

#include "symbolizer/index/eh_frame_rule.h"

enum { MAX_REMEMBERED = 32 }; /* compilers need one or two */

/* DW_CFA_*: three have their operand in the low six bits. */
enum {
	CFA_ADVANCE = 1,
	CFA_OFFSET = 2,
	CFA_RESTORE = 3,
	OPERAND_BITS = 6,
};
enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d, /* GNU_window_save elsewhere */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct run {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct cfi_machine machine;
	struct cursor code;
	struct cfi_state state;
	struct cfi_state remembered[MAX_REMEMBERED];
	size_t depth;
	bool is_initial; /* the CIE's instructions: no locations yet */
	uint64_t start, location, end;
	cfi_row_sink *sink;
	void *context;
};

/* The row ends at LOCATION: it is complete. What lies beyond the function is nobody's. */
static bool advance_to(struct run *r, uint64_t location)
{
	struct cfi_state *state = &r->state;
	uint64_t high = location < r->end ? location : r->end;

	if (r->is_initial || location < r->location)
		return false;
	if (high > r->location) {
		if (!state->has_rule)
			state->rule = cfi_rule(&r->machine, r->cie->signal, state);
		state->has_rule = true;
		r->sink(r->context, r->location, high, &state->rule);
	}
	r->location = location;
	return true;
}

static bool advance(struct run *r, uint64_t delta)
{
	uint64_t bytes, location;

	if (__builtin_mul_overflow(delta, r->cie->code_align, &bytes) ||
		__builtin_add_overflow(r->location, bytes, &location))
		return false;
	return advance_to(r, location);
}

static bool set_location(struct run *r)
{
	uint64_t location;

	return cfi_pointer(r->section, &r->code, r->cie->encoding, r->start, &location) &&
	       location <= r->end && advance_to(r, location);
}

/* Where a register's place is kept, or NULL for those that nobody needs. */
static struct cfi_register *followed(struct run *r, struct cfi_state *state, uint64_t number)
{
	if (number == r->machine.fp)
		return &state->fp;
	if (number == r->machine.ra && !r->cie->ra_elsewhere)
		return &state->ra;
	if (number == r->machine.kept && number)
		return &state->kept;
	return NULL;
}

static void place(struct run *r, uint64_t number, enum cfi_place where, int64_t offset)
{
	struct cfi_register *reg = followed(r, &r->state, number);

	if (!reg)
		return;
	*reg = (struct cfi_register){ .place = where, .offset = offset };
	r->state.has_rule = false;
}

/* Wraps instead of overflowing; what is absurd does not fit a rule. */
static int64_t scaled(const struct run *r, uint64_t factored)
{
	return (int64_t)(factored * (uint64_t)r->cie->data_align);
}

static void restore_register(struct run *r, uint64_t number)
{
	struct cfi_register *reg = followed(r, &r->state, number);
	struct cfi_state initial;

	if (!reg)
		return;
	initial = r->is_initial ? (struct cfi_state){ 0 } : r->cie->initial;
	*reg = *followed(r, &initial, number);
	r->state.has_rule = false;
}

static struct cursor read_block(struct run *r)
{
	uint64_t size = cfi_uleb(&r->code);
	struct cursor block = r->code;

	if (!cursor_skip(&r->code, size))
		return (struct cursor){ .bad = true };
	block.end = r->code.at;
	return block;
}

/* The register is stored where an expression says: `fp + offset` is understood. */
static void place_by_expression(struct run *r, uint64_t number)
{
	struct cursor block = read_block(r);
	enum cfi_place where = CFI_ELSEWHERE;
	uint64_t base;
	int64_t offset = 0;

	if (cfi_read_breg(&block, &base, &offset) && !cursor_left(&block) && base == r->machine.fp)
		where = CFI_AT_FP;
	place(r, number, where, offset);
}

static bool run_register(struct run *r, uint8_t op)
{
	uint64_t number = cfi_uleb(&r->code);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		place(r, number, CFI_AT_CFA, scaled(r, cfi_uleb(&r->code)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		place(r, number, CFI_AT_CFA, scaled(r, (uint64_t)cursor_sleb128(&r->code)));
		return true;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		place(r, number, CFI_AT_CFA, scaled(r, -cfi_uleb(&r->code)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore_register(r, number);
		return true;
	case CFA_UNDEFINED:
		place(r, number, CFI_UNDEFINED, 0);
		return true;
	case CFA_SAME_VALUE:
		place(r, number, CFI_SAME, 0);
		return true;
	case CFA_EXPRESSION:
		place_by_expression(r, number);
		return true;
	case CFA_VAL_EXPRESSION:
		read_block(r);
		break;
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
		cfi_uleb(&r->code);
		break;
	case CFA_VAL_OFFSET_SF:
		cursor_sleb128(&r->code);
		break;
	default:
		return false;
	}
	place(r, number, CFI_ELSEWHERE, 0);
	return true;
}

static void set_expression(struct run *r)
{
	struct cursor block = read_block(r);

	r->state.has_rule = false;
	r->state.expression = block.bad ? NULL : block.at;
	r->state.expression_size = cursor_left(&block);
}

static void set_cfa_offset(struct run *r, int64_t offset)
{
	struct cfi_state *s = &r->state;

	s->cfa_offset = offset;
	s->has_rule = s->has_rule && cfi_rule_move(&s->rule, offset);
}

static bool run_cfa(struct run *r, uint8_t op)
{
	struct cfi_state *s = &r->state;

	if (op == CFA_DEF_CFA_EXPRESSION) {
		set_expression(r);
		return true;
	}
	if (op == CFA_DEF_CFA || op == CFA_DEF_CFA_SF || op == CFA_DEF_CFA_REGISTER) {
		s->has_rule = false;
		s->expression = NULL;
		s->has_cfa = true;
		s->cfa_register = cfi_uleb(&r->code);
	}
	if (op == CFA_DEF_CFA || op == CFA_DEF_CFA_OFFSET)
		set_cfa_offset(r, (int64_t)cfi_uleb(&r->code));
	else if (op != CFA_DEF_CFA_REGISTER)
		set_cfa_offset(r, scaled(r, (uint64_t)cursor_sleb128(&r->code)));
	return true;
}

static bool remember(struct run *r)
{
	if (r->depth == MAX_REMEMBERED)
		return false;
	r->remembered[r->depth++] = r->state;
	return true;
}

static bool restore_remembered(struct run *r)
{
	if (!r->depth)
		return false;
	r->state = r->remembered[--r->depth];
	return true;
}

static bool run_other(struct run *r, uint8_t op)
{
	switch (op) {
	case CFA_NOP:
		return true;
	case CFA_SET_LOC:
		return set_location(r);
	case CFA_ADVANCE1:
		return advance(r, cursor_u8(&r->code));
	case CFA_ADVANCE2:
		return advance(r, cursor_u16(&r->code));
	case CFA_ADVANCE4:
		return advance(r, cursor_u32(&r->code));
	case CFA_MIPS_ADVANCE8:
		return advance(r, cursor_u64(&r->code));
	case CFA_REMEMBER_STATE:
		return remember(r);
	case CFA_RESTORE_STATE:
		return restore_remembered(r);
	case CFA_DEF_CFA:
	case CFA_DEF_CFA_REGISTER:
	case CFA_DEF_CFA_OFFSET:
	case CFA_DEF_CFA_EXPRESSION:
	case CFA_DEF_CFA_SF:
	case CFA_DEF_CFA_OFFSET_SF:
		return run_cfa(r, op);
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
	case CFA_AARCH64_NEGATE_RA_STATE:
		/* Whether the return address is signed: its reader masks the signature anyway. */
		return r->section->machine == EM_AARCH64;
	case CFA_GNU_ARGS_SIZE:
		cfi_uleb(&r->code);
		return true;
	default:
		return run_register(r, op);
	}
}

static bool run_one(struct run *r)
{
	uint8_t op = cursor_u8(&r->code);
	uint8_t operand = op & ((1U << OPERAND_BITS) - 1);

	switch (op >> OPERAND_BITS) {
	case CFA_ADVANCE:
		return advance(r, operand);
	case CFA_OFFSET:
		place(r, operand, CFI_AT_CFA, scaled(r, cfi_uleb(&r->code)));
		return true;
	case CFA_RESTORE:
		restore_register(r, operand);
		return true;
	default:
		return run_other(r, op);
	}
}

/*
 * The instructions that most code is made of, as long as their operands are one byte. False: it is
 * another one, and CODE stays where it is.
 */
static inline bool run_short(struct run *r, struct cursor *code, bool *ret_good)
{
	uint8_t op = code->at[0], operand;
	bool is_offset = op >> OPERAND_BITS == CFA_OFFSET;

	if (op == CFA_NOP || op >> OPERAND_BITS == CFA_ADVANCE) {
		cursor_u8(code);
		*ret_good = op == CFA_NOP || advance(r, op & ((1U << OPERAND_BITS) - 1));
		return true;
	}
	if (!is_offset && op != CFA_DEF_CFA_OFFSET && op != CFA_ADVANCE1)
		return false;
	if (cursor_left(code) < 2 || (code->at[1] & 0x80 && op != CFA_ADVANCE1))
		return false;
	cursor_u8(code);
	operand = cursor_u8(code);
	*ret_good = true;
	if (is_offset)
		place(r, op & ((1U << OPERAND_BITS) - 1), CFI_AT_CFA, scaled(r, operand));
	else if (op == CFA_DEF_CFA_OFFSET)
		set_cfa_offset(r, operand);
	else
		*ret_good = advance(r, operand);
	return true;
}

/*
 * An operand that is cut off leaves the cursor bad, before any row was made of it. The copy of the
 * cursor is nobody else's: it stays in registers.
 */
static bool run_all(struct run *r)
{
	struct cursor code = r->code;

	while (cursor_left(&code)) {
		bool good = true;

		if (run_short(r, &code, &good)) {
			if (!good)
				return false;
			continue;
		}
		r->code = code;
		if (!run_one(r) || r->code.bad)
			return false;
		code = r->code;
	}
	return !code.bad;
}

static struct cursor code_of(const struct cfi_section *s, uint32_t offset, uint32_t size)
{
	struct cursor code = s->bytes;

	code.bad = false;
	if (cursor_seek(&code, offset) && cursor_left(&code) >= size)
		code.end = code.at + size;
	else
		code.bad = true;
	return code;
}

void cfi_start(const struct cfi_section *s, struct cfi_cie *cie)
{
	struct run r = {
		.section = s,
		.cie = cie,
		.machine = cfi_machine(s),
		.code = code_of(s, cie->code, cie->code_size),
		.is_initial = true,
		.state.ra.place = cie->ra_elsewhere ? CFI_ELSEWHERE : CFI_SAME,
	};

	if (cie->broken)
		return;
	cie->broken = !run_all(&r);
	cie->initial = r.state;
}

int cfi_run(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfi_fde *fde,
	cfi_row_sink *sink, void *context)
{
	struct run r;

	if (cie->broken || fde->low > UINT64_MAX - fde->size)
		return -EBADMSG;
	r.section = s;
	r.cie = cie;
	r.machine = cfi_machine(s);
	r.code = code_of(s, fde->code, fde->code_size);
	r.state = cie->initial;
	r.depth = 0;
	r.is_initial = false;
	r.start = fde->low;
	r.location = fde->low;
	r.end = fde->low + fde->size;
	r.sink = sink;
	r.context = context;
	if (!run_all(&r))
		return -EBADMSG;
	if (r.location < r.end)
		advance_to(&r, r.end);
	return 0;
}
