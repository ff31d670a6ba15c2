/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of g is in r14; until Go 1.16, and later in assembly, it is loaded into rcx first. A
 * small function compares sp itself, a larger one sp - N, and a huge one guards against an
 * underflow.
 */
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/go/go_stack_check.h"

enum { MAX_BYTES = 8 };

struct code_bytes {
	uint8_t size, bytes[MAX_BYTES];
};

static bool amd64_is(struct cursor *c, const struct code_bytes *code)
{
	if (cursor_left(c) < code->size || memcmp(c->at, code->bytes, code->size) != 0)
		return false;
	cursor_skip(c, code->size);
	return true;
}

/* g into rcx: from fs:-8, or in position-independent code from fs:(rcx). */
static bool amd64_load_g(struct cursor *c)
{
	static const struct code_bytes absolute = { 5, { 0x64, 0x48, 0x8b, 0x0c, 0x25 } };
	static const struct code_bytes offsets[] = {
		{ 3, { 0x48, 0xc7, 0xc1 } }, /* mov $imm32,%rcx */
		{ 3, { 0x48, 0x8b, 0x0d } }, /* mov disp32(%rip),%rcx */
	};
	static const struct code_bytes indirect = { 4, { 0x64, 0x48, 0x8b, 0x09 } };

	if (amd64_is(c, &absolute))
		return cursor_skip(c, 4);
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		if (amd64_is(c, &offsets[i]))
			return cursor_skip(c, 4) && amd64_is(c, &indirect);
	return false;
}

/* jcc with a distance of one or four bytes. */
static bool amd64_branch(struct cursor *c, uint8_t condition)
{
	uint8_t opcode = cursor_u8(c);

	if (opcode == (0x70 | condition))
		return cursor_skip(c, 1);
	return opcode == 0x0f && cursor_u8(c) == (0x80 | condition) && cursor_skip(c, 4);
}

/* lea -N(%rsp),%r12 or, until 1.16, %rax. */
static bool amd64_lea(struct cursor *c, uint32_t *ret_bytes)
{
	static const struct code_bytes near[] = { { 4, { 0x4c, 0x8d, 0x64, 0x24 } },
		{ 4, { 0x48, 0x8d, 0x44, 0x24 } } };
	static const struct code_bytes far[] = { { 4, { 0x4c, 0x8d, 0xa4, 0x24 } },
		{ 4, { 0x48, 0x8d, 0x84, 0x24 } } };

	for (size_t i = 0; i < ARRAY_SIZE(near); i++) {
		if (amd64_is(c, &near[i])) {
			*ret_bytes = 0 - (uint32_t)(int32_t)(int8_t)cursor_u8(c);
			return true;
		}
		if (amd64_is(c, &far[i])) {
			*ret_bytes = 0 - cursor_u32(c);
			return true;
		}
	}
	return false;
}

/* mov %rsp,%r12; sub $N,%r12; jb */
static bool amd64_subtract(struct cursor *c, uint32_t *ret_bytes)
{
	static const struct code_bytes start = { 6, { 0x49, 0x89, 0xe4, 0x49, 0x81, 0xec } };

	if (!amd64_is(c, &start))
		return false;
	*ret_bytes = cursor_u32(c);
	return amd64_branch(c, 2);
}

/* A comparison of what was computed, or of sp itself, with g.stackguard0. */
static bool amd64_compare(struct cursor *c, bool computed)
{
	static const struct code_bytes of_sp[] = {
		{ 4, { 0x49, 0x3b, 0x66, 0x10 } }, /* cmp 0x10(%r14),%rsp */
		{ 4, { 0x48, 0x3b, 0x61, 0x10 } }, /* cmp 0x10(%rcx),%rsp */
	};
	static const struct code_bytes of_other[] = {
		{ 4, { 0x4d, 0x3b, 0x66, 0x10 } }, /* cmp 0x10(%r14),%r12 */
		{ 4, { 0x4c, 0x3b, 0x61, 0x10 } }, /* cmp 0x10(%rcx),%r12 */
		{ 4, { 0x48, 0x3b, 0x41, 0x10 } }, /* cmp 0x10(%rcx),%rax */
	};

	if (!computed)
		return amd64_is(c, &of_sp[0]) || amd64_is(c, &of_sp[1]);
	return amd64_is(c, &of_other[0]) || amd64_is(c, &of_other[1]) || amd64_is(c, &of_other[2]);
}

/*
 * Until 1.16: mov 0x10(%rcx),%rsi; cmp $stackPreempt,%rsi; je; lea GUARD(%rsp),%rax;
 * sub %rsi,%rax; cmp $(N + GUARD),%rax.
 */
static bool amd64_huge(struct cursor *c, uint32_t *ret_bytes)
{
	static const struct code_bytes load = { 4, { 0x48, 0x8b, 0x71, 0x10 } };
	static const struct code_bytes compare = { 7,
		{ 0x48, 0x81, 0xfe, 0xde, 0xfa, 0xff, 0xff } };
	static const struct code_bytes lea = { 4, { 0x48, 0x8d, 0x84, 0x24 } };
	static const struct code_bytes sum = { 5, { 0x48, 0x29, 0xf0, 0x48, 0x3d } };
	uint32_t guard;

	if (!amd64_is(c, &load) || !amd64_is(c, &compare) || !amd64_branch(c, 4) ||
		!amd64_is(c, &lea))
		return false;
	guard = cursor_u32(c);
	if (!amd64_is(c, &sum))
		return false;
	*ret_bytes = cursor_u32(c) - guard;
	return true;
}

uint32_t go_stack_check_amd64(struct cursor prologue)
{
	struct cursor c = prologue, at;
	uint32_t bytes = 0;
	bool computed;

	if (!amd64_load_g(&c))
		c = prologue;
	at = c;
	if (amd64_huge(&at, &bytes) && !at.bad)
		return bytes;
	at = c;
	computed = amd64_lea(&at, &bytes);
	if (!computed) {
		at = c;
		computed = amd64_subtract(&at, &bytes);
	}
	if (!computed) {
		at = c;
		bytes = 0;
	}
	return amd64_compare(&at, computed) && !at.bad ? bytes : INDEX_NO_STACK_CHECK;
}
