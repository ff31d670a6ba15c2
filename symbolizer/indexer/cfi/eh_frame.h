/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Call frame information: the entries of .eh_frame (LSB 5, 10.6) and .debug_frame (DWARF 5, 6.4).
 * A CIE has what functions have in common, an FDE has one function's range and instructions. This
 * file finds the entries; eh_frame_cfa.h runs the instructions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/map.h"
#include "bpf/abi/unwind.h"

struct cfi_section {
	struct cursor bytes;
	uint64_t address; /* of the first byte; base of pcrel pointers */
	uint64_t text, data; /* bases of textrel and datarel pointers */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	bool eh; /* .eh_frame, not .debug_frame */
	uint8_t kept; /* enum abi_kept + 1: an additional register that rules follow; 0 = none */
	bool ends_at_zero; /* the section's size is unknown; a terminator ends it */
};

/* DWARF register numbers of a machine (its psABI). */
struct cfi_machine {
	uint64_t fp, sp, ra;
	uint64_t kept; /* an additional register to follow (x86_64: rbx or r12); 0 = none */
	uint64_t held; /* x86_64: rdi, in which vfork() holds its return address; 0 = none */
	bool link; /* calls put the return address into a register */
};

/* Where the caller's value of a register is. */
enum cfi_place {
	CFI_SAME, /* unchanged, or not specified */
	CFI_AT_CFA, /* *(cfa + offset) */
	CFI_AT_FP, /* *(frame pointer + offset): functions that realign their stack */
	CFI_UNDEFINED,
	CFI_HELD, /* the return address only: in cfi_machine.held */
	CFI_ELSEWHERE, /* another register, an expression */
};

struct cfi_register {
	enum cfi_place place;
	int64_t offset;
};

/* The part that we need of one row of the table that the instructions describe. */
struct cfi_state {
	const uint8_t *expression; /* of the CFA; NULL: register and offset */
	size_t expression_size;
	bool has_cfa; /* the CFA's register and offset are set */
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct cfi_register fp, ra, kept;
	bool has_rule;
	/* Cached rule for this state, if has_rule. Its CFA offset is rule_offset, not in `rule`. */
	struct abi_unwind_rule rule;
	int32_t rule_offset;
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of pointers, DW_EH_PE_* */
	bool sized; /* its FDEs have augmentation data */
	bool ra_elsewhere; /* the return address is in a register that we do not follow */
	bool signal; /* its functions are signal frames */
	bool broken;
	uint32_t code, code_size; /* initial instructions: offset in the section, bytes */
	/* Set by cfi_start(). */
	struct cfi_machine machine;
	struct cfi_state initial; /* after the initial instructions */
};

struct cfi_fde {
	uint64_t low, size;
	uint32_t cie; /* index into `cies` */
	uint32_t code, code_size; /* instructions: offset in the section, bytes */
};

struct cfi_entries {
	struct cfi_cie *cies;
	size_t cie_count, cie_capacity;
	struct map cie_numbers; /* offset in the section → index into `cies` */
	uint64_t last_offset; /* of the CIE that was last looked up */
	uint32_t last_number;
	uint32_t broken; /* count of malformed entries */
	uint64_t cie_bytes; /* of instructions of all CIEs, which may overlap */
};

void cfi_entries_init(struct cfi_entries *e);
void cfi_entries_deinit(struct cfi_entries *e);

/*
 * Reads all entries in the order of the section and passes each FDE to SINK. Skips malformed
 * entries; after a malformed length, the rest of the section. Returns the first error of the sink,
 * -ENOMEM, or -EBADMSG if the section has 4 GiB or more.
 */
typedef int cfi_fde_sink(void *context, const struct cfi_fde *fde);
int cfi_read(const struct cfi_section *s, struct cfi_entries *e, cfi_fde_sink *sink, void *context);

/*
 * Reads a pointer at C, a cursor in the section. FUNCTION is the base of funcrel pointers. False if
 * malformed or indirect.
 */
bool cfi_pointer(const struct cfi_section *s, struct cursor *c, uint8_t encoding, uint64_t function,
	uint64_t *ret_pointer);

/* Fast path: nearly all numbers in call frame information have one byte. */
static inline uint64_t cfi_uleb(struct cursor *c)
{
	if (c->bad || c->at == c->end || *c->at & 0x80)
		return cursor_uleb128(c);
	return cursor_u8(c);
}
