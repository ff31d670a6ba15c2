/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The procedure linkage table as a source: its stubs have no symbols of their own. Each jumps to
 * the address in a slot of the global offset table, and a relocation names the function that the
 * dynamic linker puts there; the stub of `puts` is named `puts@plt`, as in objdump and perf.
 *
 * Stubs are recognized by their instructions, not by their position: linkers differ in headers, in
 * sizes, and in whether the called stubs are in .plt or, with branch tracking, in .plt.sec.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/demangle.h"
#include "symbolizer/indexer/cfi/cfi.h"

enum {
	MAX_SLOTS = 1 << 18,
	MAX_NAME_BYTES = 64 * 1024,
	RELA_BYTES = 24,
	STUB_BYTES = 16, /* at most, of those without a mark of their own end */
	SHORT_STUB_BYTES = 8,
	STUB_STEP_X86 = 8,
	LANDING_BYTES_X86 = 4, /* endbr64 */
	STUB_STEP_ARM64 = 4,
	MAX_STUB_ARM64 = 24, /* bti c, adrp, ldr, add, [autia1716,] br */
};

/* A slot of the global offset table, which the dynamic linker fills in. */
struct slot {
	uint64_t address;
	uint32_t name; /* offset in the string table */
};

struct plt {
	struct elf_image *image;
	struct index_writer *writer;
	struct slot *slots;
	size_t slot_count, slot_capacity;
	struct cursor names;
};

/* A stub. */
struct stub {
	size_t length; /* of its instructions as far as they are read */
	size_t size;
	uint64_t slot; /* address */
};

/* ---- the slots ------------------------------------------------------------------------------ */

static bool fills_a_slot(const struct elf_image *image, uint32_t type)
{
	if (elf_image_machine(image) == EM_AARCH64)
		return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

/* RELA are relocations that name symbols of the table SYMBOLS. */
static int read_slots(struct plt *plt, struct cursor rela, struct cursor symbols)
{
	while (cursor_left(&rela) >= RELA_BYTES) {
		uint64_t address = cursor_u64(&rela);
		uint64_t info = cursor_u64(&rela);
		struct cursor at = symbols;
		int err;

		(void)cursor_u64(&rela);
		if (!fills_a_slot(plt->image, ELF64_R_TYPE(info)))
			continue;
		if (plt->slot_count == MAX_SLOTS)
			return 0;
		err = array_reserve(plt->slots, plt->slot_capacity, plt->slot_count + 1, MAX_SLOTS);
		if (err)
			return err;
		cursor_seek(&at, ELF64_R_SYM(info) * sizeof(Elf64_Sym));
		plt->slots[plt->slot_count].address = address;
		plt->slots[plt->slot_count].name = cursor_u32(&at);
		if (!at.bad)
			plt->slot_count++;
	}
	return 0;
}

static int plt_by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int read_all_slots(struct plt *plt)
{
	struct elf_image *image = plt->image;
	int err = 0;

	for (size_t i = 0; i < elf_image_section_count(image) && !err; i++) {
		struct elf_section rela = elf_image_section(image, i);
		struct elf_section symbols = elf_image_section(image, rela.link);

		if (rela.type != SHT_RELA || !(rela.flags & SHF_ALLOC) ||
			symbols.type != SHT_DYNSYM)
			continue;
		plt->names = elf_image_section_bytes(image, symbols.link);
		err = read_slots(plt, elf_image_section_bytes(image, i),
			elf_image_section_bytes(image, rela.link));
	}
	if (plt->slot_count)
		qsort(plt->slots, plt->slot_count, sizeof(*plt->slots), plt_by_address);
	return err;
}

/* ---- the stubs ------------------------------------------------------------------------------ */

/* [endbr64] [bnd] jmp *slot(%rip); Intel SDM vol. 2, JMP FF /4 with a 32-bit displacement. */
static bool stub_x86(struct cursor code, uint64_t address, struct stub *ret_stub)
{
	static const uint8_t landing[LANDING_BYTES_X86] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct cursor at = code;
	const uint8_t *first = cursor_bytes(&at, LANDING_BYTES_X86);
	uint8_t opcode;

	if (!first)
		return false;
	if (memcmp(first, landing, sizeof(landing)))
		at = code;
	opcode = cursor_u8(&at);
	if (opcode == 0xf2)
		opcode = cursor_u8(&at);
	if (opcode != 0xff || cursor_u8(&at) != 0x25)
		return false;
	ret_stub->slot = (uint64_t)(int64_t)(int32_t)cursor_u32(&at);
	ret_stub->slot += address + (uint64_t)(at.at - code.at);
	ret_stub->length = (size_t)(at.at - code.at);
	ret_stub->size = STUB_BYTES;
	return !at.bad;
}

/* adrp x16, page; ldr x17, [x16, #offset]; ...; br x17. AAELF64, "Procedure Linkage Table". */
static bool stub_arm64(struct cursor code, uint64_t address, struct stub *ret_stub)
{
	struct cursor at = code;
	uint32_t word = cursor_u32(&at), next;
	uint64_t pc = address, page;

	if (word == 0xd503245f) { /* bti c */
		word = cursor_u32(&at);
		pc += 4;
	}
	next = cursor_u32(&at);
	if (at.bad || (word & 0x9f00001f) != 0x90000010 || (next & 0xffc003ff) != 0xf9400211)
		return false;
	page = (uint64_t)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);
	if (page & 1U << 20)
		page |= ~UINT64_C(0) << 21;
	ret_stub->slot = (pc & ~UINT64_C(0xfff)) + (page << 12) + (next >> 10 & 0xfff) * 8;
	for (size_t size = (size_t)(at.at - code.at) + 4; size <= MAX_STUB_ARM64; size += 4) {
		if (cursor_u32(&at) == 0xd61f0220 && !at.bad) { /* br x17 */
			ret_stub->length = ret_stub->size = size;
			return true;
		}
	}
	return false;
}

static int add_stub(struct plt *plt, uint64_t address, const struct stub *stub, uint64_t limit)
{
	const struct slot key = { .address = stub->slot }, *slot;
	struct cursor names = plt->names;
	autofree char *text = NULL;
	const char *name;
	uint32_t string;
	int err;

	slot = bsearch(&key, plt->slots, plt->slot_count, sizeof(key), plt_by_address);
	if (!slot)
		return 0;
	cursor_seek(&names, slot->name);
	name = cursor_string(&names);
	if (!name || !*name || strlen(name) > MAX_NAME_BYTES)
		return 0;
	if (asprintf(&text, "%s" DEMANGLE_STUB, name) < 0)
		return -ENOMEM;
	err = writer_string(plt->writer, text, strlen(text), &string);
	return err ? err
		   : writer_symbol(plt->writer, address, stub->size, limit, string,
			     WRITER_SYMBOL_LOCAL | WRITER_SYMBOL_STUB);
}

/*
 * Stubs in .plt.got have 8 bytes if the jump fits. Not all linkers set the size of entries; in .plt
 * the rest of the 16 bytes is for lazy binding.
 */
static size_t stub_bytes(const struct elf_section *section, const struct stub *stub)
{
	bool fits = stub->length <= SHORT_STUB_BYTES && !strcmp(section->name, ".plt.got");

	return fits || section->entry_size == SHORT_STUB_BYTES ? SHORT_STUB_BYTES : stub->size;
}

static int read_stubs(struct plt *plt, const struct elf_section *section)
{
	bool arm64 = elf_image_machine(plt->image) == EM_AARCH64;
	struct cursor code = elf_image_section_bytes(plt->image, section->number);
	size_t step = arm64 ? STUB_STEP_ARM64 : STUB_STEP_X86, at = 0;
	int err = 0;

	while (cursor_left(&code) >= step && !err) {
		uint64_t address = section->address + at;
		struct stub stub;
		size_t size = step;

		if (arm64 ? stub_arm64(code, address, &stub) : stub_x86(code, address, &stub)) {
			stub.size = size = stub_bytes(section, &stub);
			err = add_stub(plt, address, &stub, section->address + section->size);
		}
		if (!cursor_bytes(&code, MIN(size, cursor_left(&code))))
			break;
		at += size;
	}
	return err;
}

static bool plt_has_stubs(const struct elf_section *section)
{
	return section->type == SHT_PROGBITS && section->flags & SHF_EXECINSTR &&
	       (!strcmp(section->name, ".plt") || !strncmp(section->name, ".plt.", 5)) &&
	       section->address <= UINT64_MAX - section->size;
}

int plt_read(struct elf_image *image, struct index_writer *w)
{
	struct plt plt = { .image = image, .writer = w };
	int err = read_all_slots(&plt);

	for (size_t i = 0; i < elf_image_section_count(image) && !err && plt.slot_count; i++) {
		struct elf_section section = elf_image_section(image, i);

		if (plt_has_stubs(&section))
			err = read_stubs(&plt, &section);
	}
	free(plt.slots);
	return err;
}
