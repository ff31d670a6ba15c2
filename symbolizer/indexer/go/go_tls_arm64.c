/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On arm64 g is in x28. Only programs with cgo also keep it in thread-local storage, from which
 * runtime.load_g restores it:
 *
 *	adrp x27,iscgo; [add x27,x27,#lo]; ldrsb x0,[x27,#lo]; cbz x0,…
 *	mrs x0,tpidr_el0; movz x27,#OFFSET; ldr x28,[x0,x27]
 *	                  (or movz x27,#HIGH,lsl #16; movk x27,#LOW)
 *
 * The linker sets the variable runtime.iscgo. Without cgo it is 0 or not in the file, and the
 * storage is never written: only Go code runs, which always has g in the register (and the vDSO,
 * which does not change it). Shared libraries load the offset from a word that the dynamic linker
 * sets, instead of the constant: adrp x27,WORD; ldr x27,[x27,#lo]. (Arm's A64 instruction set has
 * the encodings.)
 */
#include <errno.h>

#include "bpf/abi/runtime_go.h"
#include "symbolizer/indexer/go/go_tls.h"

enum {
	SEARCH_WORDS = 6, /* at most between two parts of the sequence */
	MAX_OFFSET = 1 << 20,
};

static uint64_t adrp_page(uint32_t word, uint64_t pc)
{
	uint64_t pages = ((word >> 5) & 0x7ffff) << 2 | ((word >> 29) & 3);

	if (pages & (1 << 20))
		pages |= ~UINT64_C(0) << 21;
	return (pc & ~UINT64_C(0xfff)) + (pages << 12);
}

/* Gets the address of runtime.iscgo from the first instructions. */
static bool iscgo_address(struct cursor *c, uint64_t pc, uint64_t *ret_address)
{
	uint32_t word = cursor_u32(c);
	uint64_t address;

	if ((word & 0x9f000000) != 0x90000000) /* adrp */
		return false;
	address = adrp_page(word, pc);
	word = cursor_u32(c);
	if ((word & 0xffc00000) == 0x91000000) { /* add (immediate) */
		address += (word >> 10) & 0xfff;
		word = cursor_u32(c);
	}
	if ((word & 0xffc00000) != 0x39800000 && (word & 0xffc00000) != 0x39400000)
		return false; /* neither ldrsb nor ldrb */
	*ret_address = address + ((word >> 10) & 0xfff);
	return !c->bad;
}

static bool find_word(struct cursor *c, uint32_t mask, uint32_t wanted, uint32_t *ret_word)
{
	for (int i = 0; i < SEARCH_WORDS; i++) {
		*ret_word = cursor_u32(c);
		if (!c->bad && (*ret_word & mask) == wanted)
			return true;
	}
	return false;
}

/* Gets the constant: one instruction, or two (position-independent and externally linked). */
static bool read_offset(struct cursor *c, uint32_t *ret_offset)
{
	uint32_t high, low;

	if (!find_word(c, 0xff800000, 0xd2800000, &high)) /* movz xN,#imm16{,lsl #16} */
		return false;
	*ret_offset = high >> 5 & 0xffff;
	if ((high & 0x00600000) == 0)
		return true;
	low = cursor_u32(c);
	if (c->bad || (high & 0x00600000) != 0x00200000 || (low & 0xffe00000) != 0xf2800000)
		return false; /* not movk xN,#imm16 behind it */
	*ret_offset = *ret_offset << 16 | (low >> 5 & 0xffff);
	return true;
}

/* adrp xN,WORD; ldr xN,[xN,#lo], in code that begins at PC. Else *C stays where it is. */
static bool read_word(struct cursor *c, uint64_t pc, uint64_t *ret_word)
{
	struct cursor next = *c;
	uint64_t page_pc = pc + cursor_offset(&next);
	uint32_t page = cursor_u32(&next), load = cursor_u32(&next);

	if (next.bad || (page & 0x9f000000) != 0x90000000) /* adrp */
		return false;
	if ((load & 0xffc00000) != 0xf9400000) /* ldr (immediate), 64 bits */
		return false;
	if ((load & 31) != (page & 31) || (load >> 5 & 31) != (page & 31))
		return false;
	*ret_word = adrp_page(page, page_pc) + (load >> 10 & 0xfff) * sizeof(uint64_t);
	*c = next;
	return true;
}

static bool is_offset(uint32_t offset)
{
	return offset && offset % 8 == 0 && offset <= MAX_OFFSET;
}

/* Reads what load_g, which begins at PC, does with cgo. CODE is in it. */
static bool read_load(
	const struct gopclntab *table, struct cursor code, uint64_t pc, struct go_tls *ret_tls)
{
	uint32_t word, offset = 0;
	bool known;

	if (!find_word(&code, 0xffffffe0, 0xd53bd040, &word)) /* mrs xN,tpidr_el0 */
		return false;
	if (read_word(&code, pc, &ret_tls->word))
		known = go_tls_is_word(table->image, ret_tls->word);
	else
		known = read_offset(&code, &offset) && is_offset(offset);
	word = cursor_u32(&code);
	ret_tls->offset = offset;
	return known && !code.bad && (word & 0xffe0fc1f) == 0xf860681c; /* ldr x28,[xN,xM] */
}

int go_tls_arm64(const struct gopclntab *table, struct go_tls *ret_tls)
{
	struct go_tls tls = { 0 };
	struct gopclntab_function f;
	uint64_t iscgo;
	struct cursor code, flag;

	if (gopclntab_function_named(table, "runtime.load_g", &f))
		return -ENOENT;
	code = elf_image_at(table->image, f.entry, f.next - f.entry);
	if (!iscgo_address(&code, f.entry, &iscgo))
		return -EOPNOTSUPP;
	flag = elf_image_at(table->image, iscgo, 1);
	if (!cursor_u8(&flag))
		tls.offset = ABI_GO_G_IN_REGISTER;
	else if (!read_load(table, code, f.entry, &tls))
		return -EOPNOTSUPP;
	*ret_tls = tls;
	return 0;
}
