/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes .eh_frame and .debug_frame for the tests, byte by byte, and reads them as an index would.
 *
 *	cfi_writer_init(&w, EM_X86_64);
 *	cie = cfi_writer_cie(&w, "zR", CFI(DEF_CFA(7, 8), OFFSET(16, 1)));
 *	cfi_writer_fde(&w, cie, CFI_TEXT, 16, CFI(ADVANCE(1), DEF_CFA_OFFSET(16)));
 *	index = cfi_writer_index(&w);
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "symbolizer/index/unwind.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "tests/unit/elf_writer.h"

enum {
	CFI_TEXT = 0x401000, /* start of the code, CFI_TEXT_SIZE bytes */
	CFI_TEXT_SIZE = 0x80000,
	CFI_ADDRESS = 0x700000, /* address of the section */
};

/* Instructions; LEB128 operands must be below 0x40. */
#define CFI(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define ADVANCE(delta) (0x40 | (delta))
#define OFFSET(reg, factored) (0x80 | (reg)), (factored)
#define RESTORE(reg) (0xc0 | (reg))
#define ADVANCE4(delta) 0x04, (delta)&0xff, (delta) >> 8 & 0xff, (delta) >> 16 & 0xff, (delta) >> 24
#define REMEMBER 0x0a
#define RESTORE_STATE 0x0b
#define DEF_CFA(reg, offset) 0x0c, (reg), (offset)
#define DEF_CFA_REGISTER(reg) 0x0d, (reg)
#define DEF_CFA_OFFSET(offset) 0x0e, (offset)
#define UNDEFINED(reg) 0x07, (reg)
#define NO_CODE (const uint8_t[]){ 0 }, 0

struct cfi_writer {
	struct buffer bytes;
	uint16_t machine;
	bool debug; /* .debug_frame: absolute addresses, no terminator */
	bool wide; /* 64-bit format from the next entry on */
	uint8_t kept; /* see struct cfi_section */
	uint8_t ra; /* return address register of the next CIE */
};

void cfi_writer_init(struct cfi_writer *w, uint16_t machine);
void cfi_writer_deinit(struct cfi_writer *w);
/* A CIE whose pointers are pcrel sdata4 (absolute without "R"); returns its offset. */
uint64_t cfi_writer_cie(
	struct cfi_writer *w, const char *augmentation, const uint8_t *code, size_t size);
/* The CIE that compilers emit for x86_64 or aarch64. */
uint64_t cfi_writer_usual_cie(struct cfi_writer *w);
/* An FDE for [low, low + range). */
void cfi_writer_fde(struct cfi_writer *w, uint64_t cie, uint64_t low, uint64_t range,
	const uint8_t *code, size_t size);
/* An entry of arbitrary bytes; adds the length. */
void cfi_writer_raw(struct cfi_writer *w, const void *bytes, size_t size);

struct cfi_section cfi_writer_section(const struct cfi_writer *w);
/* The index of the file ELF with the entries CFI; both are deinitialized. */
struct index *cfi_index_of(struct elf_writer *elf, struct cfi_writer *cfi);
/*
 * The index of a file with a function at CFI_TEXT, and SECTION, of which the first DESCRIBED bytes
 * have an entry for unwinding, too. ENTRY: the file's entry point; 0 = none.
 */
struct index *cfi_index_beside(uint16_t machine, const struct elf_section_spec *section,
	uint64_t described, uint64_t entry);
/* The index of a module with this section, and OTHER unless it is NULL. */
struct index *cfi_writer_index(const struct cfi_writer *w, const struct cfi_writer *other);
/* The rule at ADDRESS as `sp+16 fp=[cfa-16] ra=[cfa-8]`, `none`, …; valid until the next call. */
const char *cfi_rule_at(const struct index *index, uint64_t address);
/* The only rule of a function that has this CFI after the usual CIE. */
const char *cfi_rule_of(uint16_t machine, const uint8_t *code, size_t size);
