/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_line.h"

#include <dwarf.h>
#include <errno.h>

#include "base/cleanup.h"

struct row {
	uint64_t address;
	uint64_t file;
	uint32_t line, column;
};

/*
 * The line number state machine, without registers that we do not need. A row is held until the
 * address changes, because the last row at an address wins; it is dropped if it repeats file, line
 * and column of the row before.
 */
struct machine {
	struct dwarf_lines *l;
	const struct dwarf *d;
	struct index_writer *w;
	uint32_t unit;
	struct row now;
	struct row held;
	struct row written;
	bool in_sequence; /* true from the first row on */
	bool dead; /* the sequence starts outside all code: a discarded function */
	bool any_written; /* `written` belongs to this sequence */
};

static void reset_registers(struct machine *m)
{
	m->now = (struct row){ .file = 1, .line = 1 };
	m->in_sequence = m->dead = m->any_written = false;
}

/* Writes the held row, which is valid up to END. */
static int write_held(struct machine *m, uint64_t end)
{
	const struct row *held = &m->held;
	uint32_t file;
	int err;

	if (!writer_is_asked(m->w, held->address, end))
		return 0;
	if (m->any_written && held->line == m->written.line && held->file == m->written.file &&
		held->column == m->written.column)
		return 0;
	err = dwarf_lines_path(m->l, m->w, held->file, &file);
	if (!err)
		err = writer_row(m->w, held->address, file, held->line, held->column);
	m->written = *held;
	m->any_written = true;
	return err;
}

static int begin_sequence(struct machine *m)
{
	m->in_sequence = true;
	m->any_written = false;
	m->dead = !dwarf_is_code(m->d, m->now.address);
	m->held = m->now;
	return m->dead ? 0 : writer_sequence_begin(m->w, m->unit);
}

/* Ends the sequence at END. The held row is written only if it is not empty. */
static int end_sequence(struct machine *m, uint64_t end)
{
	int err = 0;

	if (!m->in_sequence || m->dead)
		return 0;
	if (end > m->held.address)
		err = write_held(m, end);
	return err ? err : writer_sequence_end(m->w, MAX(end, m->held.address));
}

static int dwarf_line_add_row(struct machine *m)
{
	int err = 0;

	if (!m->in_sequence)
		return begin_sequence(m);
	if (m->dead)
		return 0;
	if (m->now.address < m->held.address) { /* out of order: start another sequence */
		err = end_sequence(m, m->held.address);
		return err ? err : begin_sequence(m);
	}
	if (m->now.address > m->held.address)
		err = write_held(m, m->now.address);
	m->held = m->now;
	return err;
}

static void dwarf_line_advance(struct machine *m, uint64_t operations)
{
	m->now.address += operations * m->l->min_instruction_size;
}

static int special_opcode(struct machine *m, uint8_t opcode)
{
	uint8_t adjusted = (uint8_t)(opcode - m->l->opcode_base);

	dwarf_line_advance(m, adjusted / m->l->line_range);
	m->now.line += (uint32_t)(m->l->line_base + adjusted % m->l->line_range);
	return dwarf_line_add_row(m);
}

static int define_file(struct machine *m, struct cursor *c)
{
	const char *name = cursor_string(c);
	uint64_t directory = dwarf_uleb(c);

	m->l->is_open = false; /* only this unit has the file */
	return c->bad ? -EBADMSG : dwarf_lines_add_file(m->l, name, directory);
}

static int extended_opcode(struct machine *m, struct cursor *c)
{
	uint64_t length = dwarf_uleb(c);
	struct cursor operands = *c;
	int err = 0;

	if (!cursor_skip(c, length) || !length)
		return -EBADMSG;
	operands.end = c->at;
	switch (cursor_u8(&operands)) {
	case DW_LNE_end_sequence:
		err = end_sequence(m, m->now.address);
		reset_registers(m);
		break;
	case DW_LNE_set_address:
		m->now.address = cursor_unsigned(&operands, (unsigned int)MIN(length - 1, 9));
		break;
	case DW_LNE_define_file:
		err = define_file(m, &operands);
		break;
	}
	if (operands.bad)
		return -EBADMSG;
	return err;
}

static void skip_operands(struct machine *m, struct cursor *c, uint8_t opcode)
{
	for (unsigned int i = 0; i < m->l->operand_counts[opcode]; i++)
		dwarf_uleb(c);
}

static uint32_t column_of(uint64_t number)
{
	return number > UINT32_MAX ? 0 : (uint32_t)number;
}

static int standard_opcode(struct machine *m, struct cursor *c, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return dwarf_line_add_row(m);
	case DW_LNS_advance_pc:
		dwarf_line_advance(m, dwarf_uleb(c));
		break;
	case DW_LNS_advance_line:
		m->now.line += (uint32_t)cursor_sleb128(c);
		break;
	case DW_LNS_set_file:
		m->now.file = dwarf_uleb(c);
		break;
	case DW_LNS_set_column:
		m->now.column = column_of(dwarf_uleb(c));
		break;
	case DW_LNS_const_add_pc:
		dwarf_line_advance(m, (uint8_t)(255 - m->l->opcode_base) / m->l->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->now.address += cursor_u16(c);
		break;
	default: /* is_stmt, basic_block, prologue_end, isa and what is unknown */
		skip_operands(m, c, opcode);
	}
	return 0;
}

static int dwarf_line_step(struct machine *m, struct cursor *c)
{
	uint8_t opcode = cursor_u8(c);

	if (opcode >= m->l->opcode_base)
		return special_opcode(m, opcode);
	return opcode ? standard_opcode(m, c, opcode) : extended_opcode(m, c);
}

int dwarf_lines_run(
	struct dwarf_lines *l, const struct dwarf *d, uint32_t unit, struct index_writer *w)
{
	struct machine m = { .l = l, .d = d, .w = w, .unit = unit };
	struct cursor c = l->program;
	int err = 0, end_err;

	/* The programs of several units may overlap. */
	if (!work_spend(d->work, cursor_left(&c)))
		return -EBADMSG;
	reset_registers(&m);
	while (!err && cursor_left(&c))
		err = dwarf_line_step(&m, &c);
	if (!err && c.bad)
		err = -EBADMSG;
	if (err && err != -EBADMSG)
		return err;
	/* If the program was truncated in a sequence, the extent of the last row is unknown. */
	end_err = end_sequence(&m, m.held.address);
	return end_err ? end_err : err;
}
