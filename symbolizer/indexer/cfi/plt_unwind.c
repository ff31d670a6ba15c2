/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GNU ld describes its stubs in .eh_frame, except in static programs and on arm64; lld and mold
 * describe none. Without a rule, a sample in a stub has no caller, or (by frame pointer) the wrong
 * one.
 *
 * A stub is called and then jumps. Stubs for lazy binding may push the number of their slot before
 * they jump to the table's header, which pushes another word; on arm64 only the header pushes. All
 * stubs of a section are alike, so it is enough to look at the first.
 */
#include "symbolizer/indexer/cfi/plt_unwind.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	HEADER_BYTES = 16,
	PUSH_SLOT_BYTES = 6, /* push slot(%rip) */
	PUSH_NUMBER_BYTES = 5,
	MOVE_NUMBER_BYTES = 6, /* mov $number, %r11d */
	JUMP_BYTES = 6, /* jmp *slot(%rip) */
	LANDING_BYTES = 4, /* endbr64 */
	LONG_HEADER_BYTES = 32,
	WORD_BYTES = 8,
	INSTRUCTION_BYTES = 4, /* arm64 */
	MAX_SECTION_BYTES = 1 << 26,
};

struct marks {
	struct landmark *marks;
	size_t count, max;
};

static void plt_unwind_add(
	struct marks *m, uint64_t low, uint64_t size, struct abi_unwind_rule rule)
{
	if (size && m->count < m->max)
		m->marks[m->count++] = (struct landmark){
			.low = low,
			.size = (uint32_t)size,
			.rule = rule,
		};
}

/* Skips the bytes of TEXT; false if the next bytes are others. */
static bool skip(struct cursor *at, const char *text)
{
	struct cursor ahead = *at;
	const uint8_t *bytes = cursor_bytes(&ahead, strlen(text));

	if (!bytes || memcmp(bytes, text, strlen(text)) != 0)
		return false;
	*at = ahead;
	return true;
}

/* Skips SIZE bytes that start with TEXT; false if the next bytes are others. */
static bool instruction(struct cursor *at, const char *text, size_t size)
{
	struct cursor ahead = *at;

	if (!skip(&ahead, text) || !cursor_bytes(&ahead, size - strlen(text)))
		return false;
	*at = ahead;
	return true;
}

/* x86_64 rule with the CFA by KIND and the return address right below it. */
static struct abi_unwind_rule called(uint8_t kind, int cfa_off)
{
	return (struct abi_unwind_rule){
		.cfa = kind,
		.cfa_off = cfa_off,
		.ra = ABI_REG_AT_CFA,
		.ra_off = -WORD_BYTES,
	};
}

/* x86_64 rule with N words on the stack, including the return address. */
static struct abi_unwind_rule words(int n)
{
	return called(ABI_CFA_SP, n * WORD_BYTES);
}

/* Returns the rule of stubs like the one at AT; ABI_CFA_NONE if there is no known stub. */
static struct abi_unwind_rule rule_of_stub(struct cursor at)
{
	const uint8_t *first = at.at;
	bool jumps;

	(void)skip(&at, "\xf3\x0f\x1e\xfa"); /* endbr64 */
	(void)instruction(&at, "\x41\xbb", MOVE_NUMBER_BYTES);
	(void)skip(&at, "\xf2"); /* bnd */
	jumps = instruction(&at, "\xff\x25", JUMP_BYTES);
	if (instruction(&at, "\x68", PUSH_NUMBER_BYTES))
		return called(ABI_CFA_PLT, (int)(at.at - first));
	return jumps ? words(1) : (struct abi_unwind_rule){ .cfa = ABI_CFA_NONE };
}

/* Adds the rules of the header of the table at AT. Returns its size in bytes, 0 = no header. */
static size_t header_x86(struct marks *m, struct cursor at, uint64_t low)
{
	if (instruction(&at, "\xff\x35", PUSH_SLOT_BYTES)) {
		plt_unwind_add(m, low, PUSH_SLOT_BYTES, words(2));
		plt_unwind_add(m, low + PUSH_SLOT_BYTES, HEADER_BYTES - PUSH_SLOT_BYTES, words(3));
		return HEADER_BYTES;
	}
	/* mold's: endbr64; push %r11; push slot(%rip) */
	if (!skip(&at, "\xf3\x0f\x1e\xfa\x41\x53\xff\x35"))
		return 0;
	plt_unwind_add(m, low, LANDING_BYTES + 2, words(1));
	plt_unwind_add(m, low + LANDING_BYTES + 2, PUSH_SLOT_BYTES, words(2));
	plt_unwind_add(m, low + LANDING_BYTES + 2 + PUSH_SLOT_BYTES,
		LONG_HEADER_BYTES - LANDING_BYTES - 2 - PUSH_SLOT_BYTES, words(3));
	return LONG_HEADER_BYTES;
}

static void read_x86(struct marks *m, struct cursor code, uint64_t low, uint64_t size)
{
	size_t header = header_x86(m, code, low);
	struct abi_unwind_rule rule;

	if (!cursor_bytes(&code, header))
		return;
	rule = rule_of_stub(code);
	/* ABI_CFA_PLT depends on the low bits of the address. */
	if (rule.cfa == ABI_CFA_NONE || (rule.cfa == ABI_CFA_PLT && low % HEADER_BYTES))
		return;
	plt_unwind_add(m, low + header, size - header, rule);
}

/* [bti c]; stp x16, x30, [sp, #-16]!: only the header saves the return address on the stack. */
static void read_arm64(struct marks *m, struct cursor code, uint64_t low, uint64_t size)
{
	const struct abi_unwind_rule at_entry = { .cfa = ABI_CFA_SP };
	const struct abi_unwind_rule behind = {
		.cfa = ABI_CFA_SP,
		.cfa_off = 2 * WORD_BYTES,
		.ra = ABI_REG_AT_CFA,
		.ra_off = -WORD_BYTES,
	};
	struct cursor at = code;
	uint64_t pushes;

	(void)skip(&at, "\x5f\x24\x03\xd5");
	if (skip(&at, "\xf0\x7b\xbf\xa9")) {
		pushes = (uint64_t)(at.at - code.at);
		plt_unwind_add(m, low, pushes, at_entry);
		plt_unwind_add(m, low + pushes, MIN(size, LONG_HEADER_BYTES) - pushes, behind);
		low += MIN(size, LONG_HEADER_BYTES);
		size -= MIN(size, LONG_HEADER_BYTES);
	}
	plt_unwind_add(m, low, size, at_entry);
}

/* .plt, .plt.got, .plt.sec; in static programs lld uses .iplt. */
bool plt_unwind_has_stubs(const struct elf_section *section)
{
	return section->type == SHT_PROGBITS && section->flags & SHF_EXECINSTR &&
	       (!strcmp(section->name, ".plt") || !strncmp(section->name, ".plt.", 5) ||
		       !strcmp(section->name, ".iplt")) &&
	       section->size <= MAX_SECTION_BYTES && section->address <= UINT64_MAX - section->size;
}

size_t plt_unwind(struct elf_image *image, struct landmark *marks, size_t max)
{
	struct marks m = { .marks = marks, .max = max };

	for (size_t i = 0; i < elf_image_section_count(image); i++) {
		struct elf_section section = elf_image_section(image, i);
		struct cursor code;

		if (!plt_unwind_has_stubs(&section))
			continue;
		code = elf_image_section_bytes(image, section.number);
		if (code.bad || cursor_left(&code) != section.size)
			continue;
		if (elf_image_machine(image) == EM_AARCH64)
			read_arm64(&m, code, section.address, section.size);
		else
			read_x86(&m, code, section.address, section.size);
	}
	return m.count;
}
