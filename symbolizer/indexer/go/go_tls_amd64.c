/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.stackcheck is assembly without a frame. It exists in all versions and starts by loading
 * g:
 *
 *	mov %fs:OFFSET,%rax			the usual program
 *	mov $OFFSET,%rcx; mov %fs:(%rcx),%rax	position-independent, as linked
 *	mov WORD(%rip),%rcx; mov %fs:(%rcx),%rax	a shared library: the dynamic linker sets it
 *
 * (Intel's manual, volume 2, chapter 2 for the bytes.)
 */
#include <errno.h>

#include "symbolizer/indexer/go/go_tls.h"

enum {
	LOAD_BYTES = 11,
	WORD_LOAD_BYTES = 7,
	FS = 0x64,
	MOV_LOAD = 0x8b,
	MOV_IMMEDIATE = 0xc7,
	SIB_NO_BASE_NO_INDEX = 0x25,
	MIN_OFFSET = -(1 << 20),
};

/* mov %fs:disp32,%r64, after the fs prefix. */
static bool load_absolute(struct cursor c, int64_t *ret_offset)
{
	uint8_t rex = cursor_u8(&c);
	uint8_t opcode = cursor_u8(&c);
	uint8_t modrm = cursor_u8(&c);
	uint8_t sib = cursor_u8(&c);

	*ret_offset = (int32_t)cursor_u32(&c);
	return (rex & 0xfb) == 0x48 && opcode == MOV_LOAD && (modrm & 0xc7) == 4 &&
	       sib == SIB_NO_BASE_NO_INDEX;
}

/* mov %fs:(BASE),%r64, where BASE is a register's number. */
static bool load_from(struct cursor c, uint8_t base)
{
	uint8_t prefix = cursor_u8(&c);
	uint8_t rex = cursor_u8(&c);
	uint8_t opcode = cursor_u8(&c);
	uint8_t modrm = cursor_u8(&c);

	if ((base & 7) == 4 || (base & 7) == 5) /* these encode other addressing modes */
		return false;
	return prefix == FS && (rex & 0xfa) == 0x48 && (rex & 1) == base >> 3 &&
	       opcode == MOV_LOAD && (modrm & 0xc7) == (base & 7);
}

/* mov $imm32,%r64 and mov %fs:(%r64),%r64 with the same register. */
static bool load_indirect(struct cursor c, int64_t *ret_offset)
{
	uint8_t rex = cursor_u8(&c);
	uint8_t opcode = cursor_u8(&c);
	uint8_t modrm = cursor_u8(&c);

	*ret_offset = (int32_t)cursor_u32(&c);
	return (rex & 0xfe) == 0x48 && opcode == MOV_IMMEDIATE && (modrm & 0xf8) == 0xc0 &&
	       load_from(c, (modrm & 7) | (rex & 1) << 3);
}

/* mov disp32(%rip),%r64 and mov %fs:(%r64),%r64 with the same register, at PC. */
static bool load_by_word(struct cursor c, uint64_t pc, uint64_t *ret_word)
{
	uint8_t rex = cursor_u8(&c);
	uint8_t opcode = cursor_u8(&c);
	uint8_t modrm = cursor_u8(&c);

	*ret_word = pc + WORD_LOAD_BYTES + (uint64_t)(int32_t)cursor_u32(&c);
	return (rex & 0xfb) == 0x48 && opcode == MOV_LOAD && (modrm & 0xc7) == 5 &&
	       load_from(c, (modrm >> 3 & 7) | (rex & 4) << 1);
}

static bool is_offset(int64_t offset)
{
	return offset < 0 && offset >= MIN_OFFSET && offset % 8 == 0;
}

int go_tls_amd64(const struct gopclntab *table, struct go_tls *ret_tls)
{
	struct go_tls tls = { 0 };
	struct gopclntab_function f;
	struct cursor code, absolute;
	bool known;

	if (gopclntab_function_named(table, "runtime.stackcheck", &f))
		return -ENOENT;
	code = elf_image_at(table->image, f.entry, LOAD_BYTES);
	absolute = code;
	if (cursor_u8(&absolute) == FS)
		known = load_absolute(absolute, &tls.offset) && is_offset(tls.offset);
	else if (load_indirect(code, &tls.offset))
		known = is_offset(tls.offset);
	else
		known = load_by_word(code, f.entry, &tls.word) &&
			go_tls_is_word(table->image, tls.word);
	if (code.bad || !known)
		return -EOPNOTSUPP;
	if (tls.word)
		tls.offset = 0;
	*ret_tls = tls;
	return 0;
}
