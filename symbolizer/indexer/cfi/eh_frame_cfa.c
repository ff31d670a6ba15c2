/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame instructions are a small machine. It has a current row (the rule of the canonical
 * frame address, and where each register of the caller is); some instructions change the row,
 * others advance the location, which completes a row. Only two registers are followed, frame
 * pointer and return address: a walk needs no others, except one more in a few files. Rows become
 * rules when the location advances, so rows without code cost nothing.
 */
#include "symbolizer/indexer/cfi/eh_frame_cfa.h"

#include <elf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/cfi/eh_frame_rule.h"

enum {
	MAX_REMEMBERED = 32, /* compilers need one or two */
	ROWS = 64, /* per call of the sink */
	PLAIN_BYTES = 3, /* length of a plain instruction at most */
	MORE_BYTES = 0x80, /* more bytes of a LEB128 follow */
	WORD_BYTES = 8,
	PUSHED_BYTES = 2 * WORD_BYTES, /* stp x16, x30, [sp, #-16]! */
};

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
	struct cursor code;
	struct cfi_state state;
	struct cfi_state remembered[MAX_REMEMBERED];
	size_t depth;
	bool is_initial; /* running the CIE's instructions, which have no locations */
	bool is_behind_push; /* see behind_push() */
	uint64_t start, location, end;
	cfi_row_sink *sink;
	void *context;
	size_t row_count;
	struct unwind_row rows[ROWS]; /* complete, not passed to the sink yet */
};

/*
 * The aarch64 dynamic linker's code for lazy binding says that its return address is above the CFA:
 * the header of the caller's stubs has pushed it, with another register, and the entry counts from
 * there. A walk that believed it would continue below the caller's frame, and take whatever is
 * there for the next return address. The real CFA is above what was pushed, from the first
 * instruction on; to be called before any row is passed on.
 */
static void behind_push(const struct run *r, struct abi_unwind_rule *rule)
{
	if (!r->is_behind_push || rule->cfa != ABI_CFA_SP)
		return;
	rule->cfa_off = (int)((unsigned int)rule->cfa_off + PUSHED_BYTES);
	if (rule->ra == ABI_REG_AT_CFA)
		rule->ra_off = (short)(rule->ra_off - PUSHED_BYTES);
	if (rule->fp == ABI_REG_AT_CFA)
		rule->fp_off = (short)(rule->fp_off - PUSHED_BYTES);
}

static void give_rows(struct run *r)
{
	for (size_t i = 0; i < r->row_count && r->is_behind_push; i++)
		behind_push(r, &r->rows[i].rule);
	if (r->row_count)
		r->sink(r->context, r->rows, r->row_count, MIN(r->location, r->end));
	r->row_count = 0;
}

static void make_rule(struct run *r)
{
	struct cfi_state *state = &r->state;

	state->rule = cfi_rule(&r->cie->machine, r->cie->signal, state);
	state->rule_offset = state->rule.cfa_off;
	state->has_rule = true;
}

static inline void eh_frame_cfa_add_row(struct run *r)
{
	struct unwind_row *row;

	if (!r->state.has_rule)
		make_rule(r);
	if (r->row_count == ROWS)
		give_rows(r);
	row = &r->rows[r->row_count++];
	row->low = r->location;
	cfi_rule_move(&r->state.rule, r->state.rule_offset, &row->rule);
}

/* Completes the current row, which ends at LOCATION. Rows after the function's end are dropped. */
static inline bool advance_to(struct run *r, uint64_t location)
{
	if (r->is_initial || location < r->location)
		return false;
	if (location > r->location && r->location < r->end)
		eh_frame_cfa_add_row(r);
	r->location = location;
	return true;
}

/* Returns false, without any change, if the instruction is malformed. */
static inline bool eh_frame_cfa_advance(struct run *r, uint64_t delta)
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

/* Returns the register in STATE, or NULL if we do not follow it. */
static struct cfi_register *followed(struct run *r, struct cfi_state *state, uint64_t number)
{
	if (number == r->cie->machine.fp)
		return &state->fp;
	if (number == r->cie->machine.ra && !r->cie->ra_elsewhere)
		return &state->ra;
	if (number == r->cie->machine.kept && number)
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
	r->is_behind_push |= r->cie->machine.link && reg == &r->state.ra && where == CFI_AT_CFA &&
			     offset == PUSHED_BYTES - WORD_BYTES;
}

/* Unsigned, so that it wraps instead of overflowing; absurd offsets do not fit a rule anyway. */
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

/* The value is in another register. */
static void place_in_register(struct run *r, uint64_t number)
{
	const struct cfi_machine *m = &r->cie->machine;
	uint64_t other = cfi_uleb(&r->code);

	place(r, number, number == m->ra && other == m->held ? CFI_HELD : CFI_ELSEWHERE, 0);
}

/* The expression is the address at which the register is saved; only `fp + offset` is supported. */
static void place_by_expression(struct run *r, uint64_t number)
{
	struct cursor block = read_block(r);
	enum cfi_place where = CFI_ELSEWHERE;
	uint64_t base;
	int64_t offset = 0;

	if (cfi_read_breg(&block, &base, &offset) && !cursor_left(&block) &&
		base == r->cie->machine.fp)
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
	case CFA_REGISTER:
		place_in_register(r, number);
		return true;
	case CFA_VAL_EXPRESSION:
		read_block(r);
		break;
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

static inline void set_cfa_offset(struct run *r, int64_t offset)
{
	struct cfi_state *s = &r->state;

	s->cfa_offset = offset;
	s->rule_offset = (int32_t)offset;
	s->has_rule = s->has_rule && cfi_rule_can_move(&s->rule, offset);
}

static inline void set_cfa_register(struct run *r, uint64_t number)
{
	struct cfi_state *s = &r->state;

	s->has_rule = false;
	s->expression = NULL;
	s->has_cfa = true;
	s->cfa_register = number;
}

static bool run_cfa(struct run *r, uint8_t op)
{
	if (op == CFA_DEF_CFA_EXPRESSION) {
		set_expression(r);
		return true;
	}
	if (op == CFA_DEF_CFA || op == CFA_DEF_CFA_SF || op == CFA_DEF_CFA_REGISTER)
		set_cfa_register(r, cfi_uleb(&r->code));
	if (op == CFA_DEF_CFA || op == CFA_DEF_CFA_OFFSET)
		set_cfa_offset(r, (int64_t)cfi_uleb(&r->code));
	else if (op != CFA_DEF_CFA_REGISTER)
		set_cfa_offset(r, scaled(r, (uint64_t)cursor_sleb128(&r->code)));
	return true;
}

static bool eh_frame_cfa_remember(struct run *r)
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
		return eh_frame_cfa_advance(r, cursor_u8(&r->code));
	case CFA_ADVANCE2:
		return eh_frame_cfa_advance(r, cursor_u16(&r->code));
	case CFA_ADVANCE4:
		return eh_frame_cfa_advance(r, cursor_u32(&r->code));
	case CFA_MIPS_ADVANCE8:
		return eh_frame_cfa_advance(r, cursor_u64(&r->code));
	case CFA_REMEMBER_STATE:
		return eh_frame_cfa_remember(r);
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
		/* Whether the return address is signed; walks mask the signature anyway. */
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
		return eh_frame_cfa_advance(r, operand);
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

/* run_plain() for the less frequent plain instructions. */
static size_t run_plain_other(struct run *r, const uint8_t code[PLAIN_BYTES])
{
	switch (code[0]) {
	case CFA_REMEMBER_STATE:
		return eh_frame_cfa_remember(r);
	case CFA_RESTORE_STATE:
		return restore_remembered(r);
	case CFA_DEF_CFA_REGISTER:
		if (code[1] & MORE_BYTES)
			return 0;
		set_cfa_register(r, code[1]);
		return 2;
	case CFA_DEF_CFA:
		if ((code[1] | code[2]) & MORE_BYTES)
			return 0;
		set_cfa_register(r, code[1]);
		set_cfa_offset(r, code[2]);
		return 3;
	default:
		return 0;
	}
}

/*
 * Fast path: runs one of the most frequent instructions, with operands of one byte each. Returns
 * its length in bytes; 0, without any change, if it is another instruction or malformed.
 */
static inline size_t run_plain(struct run *r, const uint8_t code[PLAIN_BYTES])
{
	const uint8_t op = code[0], operand = code[1];
	const uint8_t low_bits = op & ((1U << OPERAND_BITS) - 1);

	if (op >> OPERAND_BITS == CFA_ADVANCE)
		return eh_frame_cfa_advance(r, low_bits);
	if (op == CFA_ADVANCE1)
		return eh_frame_cfa_advance(r, operand) ? 2 : 0;
	if (op == CFA_DEF_CFA_OFFSET && !(operand & MORE_BYTES)) {
		set_cfa_offset(r, operand);
		return 2;
	}
	if (op >> OPERAND_BITS == CFA_OFFSET && !(operand & MORE_BYTES)) {
		place(r, low_bits, CFI_AT_CFA, scaled(r, operand));
		return 2;
	}
	return run_plain_other(r, code);
}

/*
 * Runs plain instructions, then skips padding, which nearly always reaches the end of the entry.
 * The local copy of the cursor can stay in registers.
 */
static void run_plain_ones(struct run *r)
{
	struct cursor code = r->code;
	size_t size = 1;

	while (size && cursor_left(&code) >= PLAIN_BYTES) {
		size = run_plain(r, code.at);
		cursor_skip(&code, size);
	}
	while (cursor_left(&code) && *code.at == CFA_NOP)
		cursor_skip(&code, 1);
	r->code = code;
}

/* A truncated operand sets the cursor's `bad` before any row is made from it. */
static bool run_all(struct run *r)
{
	while (cursor_left(&r->code)) {
		run_plain_ones(r);
		if (cursor_left(&r->code) && (!run_one(r) || r->code.bad))
			return false;
	}
	return !r->code.bad;
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
		.code = code_of(s, cie->code, cie->code_size),
		.is_initial = true,
		.state.ra.place = cie->ra_elsewhere ? CFI_ELSEWHERE : CFI_SAME,
	};

	if (cie->broken)
		return;
	cie->machine = cfi_machine(s);
	cie->broken = !run_all(&r);
	make_rule(&r);
	cie->initial = r.state;
}

int cfi_run(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfi_fde *fde,
	cfi_row_sink *sink, void *context)
{
	struct run r;
	bool good;

	if (cie->broken || fde->low > UINT64_MAX - fde->size)
		return -EBADMSG;
	r.section = s;
	r.cie = cie;
	r.code = code_of(s, fde->code, fde->code_size);
	r.state = cie->initial;
	r.depth = 0;
	r.is_initial = false;
	r.is_behind_push = false;
	r.start = fde->low;
	r.location = fde->low;
	r.end = fde->low + fde->size;
	r.sink = sink;
	r.context = context;
	r.row_count = 0;
	good = run_all(&r);
	if (good && r.location < r.end)
		advance_to(&r, r.end);
	give_rows(&r);
	return good ? 0 : -EBADMSG;
}
