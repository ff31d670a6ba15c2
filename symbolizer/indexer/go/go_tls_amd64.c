/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.stackcheck is assembly without a frame. It exists in all versions and starts by loading
 * g:
 *
 *	mov %fs:OFFSET,%rax			the usual program
 *	mov $OFFSET,%rcx; mov %fs:(%rcx),%rax	position-independent, as linked
 *	mov GOT(%rip),%rcx; …			a shared library: known to the dynamic linker only
 *
 * (Intel's manual, volume 2, chapter 2 for the bytes.)
 */
#include <errno.h>

#include "symbolizer/indexer/go/go_tls.h"

enum {
	LOAD_BYTES = 11,
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

/* mov $imm32,%r64 and mov %fs:(%r64),%r64 with the same register. */
static bool load_indirect(struct cursor c, int64_t *ret_offset)
{
	uint8_t rex = cursor_u8(&c);
	uint8_t opcode = cursor_u8(&c);
	uint8_t modrm = cursor_u8(&c);
	uint8_t base = modrm & 7;
	uint8_t prefix, load_rex, load_opcode, load_modrm;

	*ret_offset = (int32_t)cursor_u32(&c);
	prefix = cursor_u8(&c);
	load_rex = cursor_u8(&c);
	load_opcode = cursor_u8(&c);
	load_modrm = cursor_u8(&c);
	if ((rex & 0xfe) != 0x48 || opcode != MOV_IMMEDIATE || (modrm & 0xf8) != 0xc0)
		return false;
	if (base == 4 || base == 5) /* these encode other addressing modes */
		return false;
	return prefix == FS && (load_rex & 0xfa) == 0x48 && (load_rex & 1) == (rex & 1) &&
	       load_opcode == MOV_LOAD && (load_modrm & 0xc7) == base;
}

int go_tls_amd64(const struct gopclntab *table, int64_t *ret_offset)
{
	struct gopclntab_function f;
	struct cursor code, absolute;
	int64_t offset = 0;
	bool known;

	if (gopclntab_function_named(table, "runtime.stackcheck", &f))
		return -ENOENT;
	code = elf_image_at(table->image, f.entry, LOAD_BYTES);
	absolute = code;
	if (cursor_u8(&absolute) == FS)
		known = load_absolute(absolute, &offset);
	else
		known = load_indirect(code, &offset);
	if (code.bad || !known || offset >= 0 || offset < MIN_OFFSET || offset % 8)
		return -EOPNOTSUPP;
	*ret_offset = offset;
	return 0;
}
