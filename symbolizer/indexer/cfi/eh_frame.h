/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Call frame information: the entries of .eh_frame (LSB 5, 10.6) and .debug_frame (DWARF 5, 6.4).
 * A CIE holds what functions have in common, an FDE one function's range and instructions. This
 * finds the entries; eh_frame_cfa.h runs the instructions. It does not know what a page is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/map.h"
#include "bpf/abi/unwind.h"

struct cfi_section {
	struct cursor bytes;
	uint64_t address; /* of the first byte: what pcrel pointers are relative to */
	uint64_t text, data; /* what textrel and datarel pointers are relative to */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	bool eh; /* .eh_frame, not .debug_frame */
	uint8_t kept; /* enum abi_kept + 1: its rules tell where that register is; 0 = none */
	bool ends_at_zero; /* its size is not known: the terminator ends it */
};

/* DWARF register numbers of a machine (its psABI). */
struct cfi_machine {
	uint64_t fp, sp, ra;
	uint64_t kept; /* another register to be followed (x86_64: rbx or r12); 0 = none */
	bool link; /* the return address may still be in a register */
};

/* Where the caller's value of a register is. */
enum cfi_place {
	CFI_SAME, /* nothing was said, or that it is unchanged */
	CFI_AT_CFA, /* *(cfa + offset) */
	CFI_AT_FP, /* *(frame pointer + offset): functions that realign their stack */
	CFI_UNDEFINED,
	CFI_ELSEWHERE, /* another register, an expression */
};

struct cfi_register {
	enum cfi_place place;
	int64_t offset;
};

/* One row of the table that the instructions describe, as far as we need it. */
struct cfi_state {
	const uint8_t *expression; /* of the CFA; NULL: register and offset */
	size_t expression_size;
	bool has_cfa; /* a register and an offset were given */
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct cfi_register fp, ra, kept;
	bool has_rule;
	/* What all this comes to, where somebody asked; but its CFA's offset is the one below. */
	struct abi_unwind_rule rule;
	int32_t rule_offset;
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of pointers, DW_EH_PE_* */
	bool sized; /* its FDEs have augmentation data */
	bool ra_elsewhere; /* its functions return by a register that nobody follows */
	bool signal; /* its functions are signal frames */
	bool broken;
	uint32_t code, code_size; /* initial instructions, in the section */
	/* Filled in by cfi_start(). */
	struct cfi_machine machine;
	struct cfi_state initial; /* after its instructions */
};

struct cfi_fde {
	uint64_t low, size;
	uint32_t cie; /* number */
	uint32_t code, code_size; /* instructions, in the section */
};

struct cfi_entries {
	struct cfi_cie *cies;
	size_t cie_count, cie_capacity;
	struct map cie_numbers; /* offset in the section → number */
	uint64_t last_offset; /* of the CIE asked for last */
	uint32_t last_number;
	uint32_t broken; /* entries given up */
};

void cfi_entries_init(struct cfi_entries *e);
void cfi_entries_deinit(struct cfi_entries *e);

/*
 * Reads all entries, in the order of the section, and gives each FDE to SINK. A broken one costs
 * itself; where even a length makes no sense, the rest. The sink's error ends it; -ENOMEM;
 * -EBADMSG for a section of 4 GiB.
 */
typedef int cfi_fde_sink(void *context, const struct cfi_fde *fde);
int cfi_read(const struct cfi_section *s, struct cfi_entries *e, cfi_fde_sink *sink, void *context);

/* A pointer at C, which runs inside the section. FUNCTION is what funcrel is relative to. */
bool cfi_pointer(const struct cfi_section *s, struct cursor *c, uint8_t encoding, uint64_t function,
	uint64_t *ret_pointer);

/* Nearly all numbers of call frame information are one byte long. */
static inline uint64_t cfi_uleb(struct cursor *c)
{
	if (c->bad || c->at == c->end || *c->at & 0x80)
		return cursor_uleb128(c);
	return cursor_u8(c);
}
