/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind_compare FILE [all|ORIGINAL]: builds FILE's index and compares its unwind tables with
 * libdw's over its executable sections: at the beginning, in the middle and at the end of each row
 * of libdw (`all`: at each address), and in the gaps, where there must be no rule, except in stubs,
 * whose code tells the rule. Prints differences, then figures in one line; exits 1 if there are
 * differences.
 *
 * BOLT may have made FILE from ORIGINAL. It appends the old entries to the new ones after a
 * terminator, where libdw stops reading. Code without an entry in libdw is then compared with the
 * tables of ORIGINAL, since old code stays where it was.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/index/unwind.h"

enum { MAX_SHOWN = 10, MAX_MACHINE_OPS = 3, DWARF_RDI = 5 };

enum {
	ENTRY_BYTES = 256, /* at a file's entry point, as in symbolizer/indexer/cfi/unwind.c */
	CONTEXT_BYTES = 30, /* with the byte before it, and a landing */
};

/* A module's tables, and the page of the last address. */
struct tables {
	struct index *index;
	const struct abi_unwind_page *page;
	size_t page_size;
	uint64_t page_number;
};

struct compare {
	struct tables ours, original;
	Dwarf_CFI *eh, *debug;
	bool is_arm, all;
	unsigned int fp, sp, ra;
	uint64_t entry_point;
	/* The content of the section being compared if it is a table of stubs, else NULL. */
	const uint8_t *stubs;
	uint64_t stubs_low, stubs_high;
	uint64_t context; /* of the first frame of contexts, once it was found; else 0 */
	uint64_t rows, addresses, gaps, unsupported, different;
};

/* A rule as text, for comparing and for showing differences. */
struct words {
	char text[128];
};

static const char *register_words(int rule, int off)
{
	static char text[2][48];
	static int turn;

	turn = !turn;
	switch (rule) {
	case ABI_REG_SAME:
		return "same";
	case ABI_REG_UNDEFINED:
		return "undefined";
	case ABI_REG_UNSUPPORTED:
		return "unsupported";
	default:
		snprintf(text[turn], sizeof(text[turn]), "[%s%+d]",
			rule == ABI_REG_AT_FP ? "fp" : "cfa", off);
		return text[turn];
	}
}

static struct words words_of(const struct compare *c, const struct abi_unwind_rule *r)
{
	char cfa[64] = "none";
	struct words w;

	switch (r->cfa) {
	case ABI_CFA_END:
		return (struct words){ "end" };
	case ABI_CFA_SIGNAL:
		return (struct words){ "signal" };
	case ABI_CFA_UNSUPPORTED:
		return (struct words){ "unsupported" };
	case ABI_CFA_NONE:
		return (struct words){ "none" };
	case ABI_CFA_SP:
	case ABI_CFA_FP:
	case ABI_CFA_REG:
		if (r->cfa == ABI_CFA_REG && r->extra & ABI_CFA_REG_INDEX) {
			snprintf(cfa, sizeof(cfa), "[r7+8*r%u%+d]+%d",
				r->extra & (ABI_CFA_REG_INDEX - 1), r->cfa_off, r->ra_off);
			break;
		}
		snprintf(cfa, sizeof(cfa), "r%u%+d",
			r->cfa == ABI_CFA_REG  ? r->extra
			: r->cfa == ABI_CFA_SP ? c->sp
					       : c->fp,
			r->cfa_off);
		break;
	case ABI_CFA_PLT:
		snprintf(cfa, sizeof(cfa), "plt %d", r->cfa_off);
		break;
	default:
		snprintf(cfa, sizeof(cfa), "[r%u%+d]+%d",
			r->cfa == ABI_CFA_DEREF_SP ? c->sp : c->fp, r->cfa_off, r->ra_off);
		break;
	}
	if (c->is_arm)
		snprintf(w.text, sizeof(w.text), "%s fp %s ra %s", cfa,
			register_words(r->fp, r->fp_off), register_words(r->ra, r->ra_off));
	else
		snprintf(w.text, sizeof(w.text), "%s fp %s%s", cfa,
			register_words(r->fp, r->fp_off), r->ra == ABI_REG_SAME ? " ra rdi" : "");
	return w;
}

static struct words words_at(const struct compare *c, struct tables *t, uint64_t address)
{
	struct abi_unwind_rule rule = { 0 };

	if (t->page_number != address >> ABI_UNWIND_PAGE_SHIFT) {
		t->page_number = address >> ABI_UNWIND_PAGE_SHIFT;
		if (!index_unwind_page(t->index, address, &t->page, &t->page_size))
			t->page = NULL;
	}
	if (t->page && !unwind_rule_at(t->page, t->page_size, address & 0xffff, &rule))
		return (struct words){ "a broken page" };
	return words_of(c, &rule);
}

/* The expression of a PLT: libdw's operations, compared with DWARF's own description of it. */
static bool is_plt(const Dwarf_Op *ops, size_t count, unsigned int *ret_bytes)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
		DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };

	if (count != sizeof(atoms))
		return false;
	for (size_t i = 0; i < count; i++)
		if (atoms[i] && ops[i].atom != atoms[i])
			return false;
	*ret_bytes = ops[4].atom - DW_OP_lit0;
	return ops[0].number == 8 && ops[1].number == 0 && *ret_bytes < 16;
}

/* The expression of OpenSSL's bn_mul_mont(). */
static bool is_index(const Dwarf_Op *ops, size_t count)
{
	return count == 7 && ops[0].atom == DW_OP_breg7 && ops[1].atom >= DW_OP_breg0 &&
	       ops[1].atom <= DW_OP_breg15 && !ops[1].number && ops[2].atom == DW_OP_lit8 &&
	       ops[3].atom == DW_OP_mul && ops[4].atom == DW_OP_plus &&
	       ops[5].atom == DW_OP_deref && ops[6].atom == DW_OP_plus_uconst;
}

static bool cfa_words(const struct compare *c, Dwarf_Frame *frame, char *text, size_t size)
{
	unsigned int reg, bytes;
	size_t count = 0;
	Dwarf_Op *ops;

	if (dwarf_frame_cfa(frame, &ops, &count) || !count)
		return false;
	if (count == 1 && ops[0].atom == DW_OP_bregx) {
		snprintf(text, size, "r%u%+d", (unsigned int)ops[0].number, (int)ops[0].number2);
		return true;
	}
	reg = ops[0].atom - DW_OP_breg0;
	if (reg > 31)
		return false;
	if (count == 1) {
		snprintf(text, size, "r%u%+d", reg, (int)ops[0].number);
		return true;
	}
	if (!c->is_arm && is_plt(ops, count, &bytes)) {
		snprintf(text, size, "plt %u", bytes);
		return true;
	}
	if (!c->is_arm && is_index(ops, count)) {
		snprintf(text, size, "[r7+8*r%d%+d]+%d", ops[1].atom - DW_OP_breg0,
			(int)ops[0].number, (int)ops[6].number);
		return true;
	}
	if (c->is_arm || ops[1].atom != DW_OP_deref || (reg != c->sp && reg != c->fp) ||
		(count == 3 && ops[2].atom != DW_OP_plus_uconst) || count > 3)
		return false;
	snprintf(text, size, "[r%u%+d]+%d", reg, (int)ops[0].number,
		count == 3 ? (int)ops[2].number : 0);
	return true;
}

/* PLACE_RDI: in that register, where vfork() has its return address. */
enum place { PLACE_SAME, PLACE_UNDEFINED, PLACE_CFA, PLACE_FP, PLACE_RDI, PLACE_OTHER };

static enum place place_of(
	const struct compare *c, Dwarf_Frame *frame, unsigned int reg, int *ret_offset)
{
	Dwarf_Op memory[MAX_MACHINE_OPS], *ops = NULL;
	size_t count = 0;

	*ret_offset = 0;
	if (dwarf_frame_register(frame, (int)reg, memory, &ops, &count))
		return PLACE_OTHER;
	if (!count)
		return ops ? PLACE_UNDEFINED : PLACE_SAME;
	if (ops[count - 1].atom == DW_OP_stack_value)
		return PLACE_OTHER;
	if (!c->is_arm && count == 1 && ops[0].atom == DW_OP_regx && ops[0].number == DWARF_RDI)
		return PLACE_RDI;
	/* An expression finds the CFA on its stack. */
	if (count == 2 && ops[1].atom == DW_OP_breg0 + c->fp) {
		*ret_offset = (int)ops[1].number;
		return PLACE_FP;
	}
	if (ops[0].atom == DW_OP_call_frame_cfa && count <= 2) { /* and what fits the rules */
		if (count == 2 && ops[1].atom != DW_OP_plus_uconst)
			return PLACE_OTHER;
		*ret_offset = count == 2 ? (int)ops[1].number : 0;
		return *ret_offset == (int16_t)*ret_offset ? PLACE_CFA : PLACE_OTHER;
	}
	return PLACE_OTHER;
}

static const char *place_words(enum place place, int offset)
{
	static const int rules[] = {
		[PLACE_SAME] = ABI_REG_SAME,
		[PLACE_UNDEFINED] = ABI_REG_UNDEFINED,
		[PLACE_CFA] = ABI_REG_AT_CFA,
		[PLACE_FP] = ABI_REG_AT_FP,
		[PLACE_RDI] = ABI_REG_UNSUPPORTED,
		[PLACE_OTHER] = ABI_REG_UNSUPPORTED,
	};

	return register_words(rules[place], offset);
}

/* An entry of libdw without its registers. */
struct entry {
	Dwarf_Addr low, high; /* of the row */
	unsigned int ra;
	bool signal;
};

static struct words theirs(const struct compare *c, Dwarf_Frame *frame, struct entry *entry)
{
	int fp_offset, ra_offset;
	enum place fp = place_of(c, frame, c->fp, &fp_offset);
	enum place ra = place_of(c, frame, c->ra, &ra_offset);
	char cfa[64];
	struct words w;

	if (ra == PLACE_UNDEFINED)
		return (struct words){ "end" };
	if (entry->signal)
		return (struct words){ "signal" };
	if (entry->ra != c->ra)
		ra = PLACE_OTHER;
	if (!cfa_words(c, frame, cfa, sizeof(cfa)))
		return (struct words){ "unsupported" };
	if (!c->is_arm && ra != PLACE_RDI && (ra != PLACE_CFA || ra_offset != -8))
		return (struct words){ "unsupported" };
	if (c->is_arm)
		snprintf(w.text, sizeof(w.text), "%s fp %s ra %s", cfa, place_words(fp, fp_offset),
			place_words(ra == PLACE_FP ? PLACE_OTHER : ra, ra_offset));
	else
		snprintf(w.text, sizeof(w.text), "%s fp %s%s", cfa, place_words(fp, fp_offset),
			ra == PLACE_RDI ? " ra rdi" : "");
	return w;
}

/*
 * glibc's __start_context and the byte before it, at one place: stacks of contexts end there, and
 * the function's entry says otherwise.
 */
static bool is_context(struct compare *c, uint64_t address, const struct words *ours)
{
	if (c->is_arm || strcmp(ours->text, "end"))
		return false;
	if (!c->context)
		c->context = address;
	return address - c->context < CONTEXT_BYTES;
}

static void expect(struct compare *c, uint64_t address, const struct words *expected)
{
	struct words ours = words_at(c, &c->ours, address);

	c->addresses++;
	if (!strcmp(ours.text, expected->text) || is_context(c, address, &ours))
		return;
	if (c->different++ < MAX_SHOWN)
		printf("%#lx: %s, libdw says %s\n", (unsigned long)address, ours.text,
			expected->text);
}

static void expect_row(struct compare *c, uint64_t low, uint64_t high, const struct words *expected)
{
	c->rows++;
	c->unsupported += !strcmp(expected->text, "unsupported");
	if (!c->all) {
		expect(c, low, expected);
		expect(c, low + (high - low) / 2, expected);
		expect(c, high - 1, expected);
		return;
	}
	for (; low < high; low++)
		expect(c, low, expected);
}

static Dwarf_Frame *frame_at(struct compare *c, uint64_t address)
{
	Dwarf_Frame *frame = NULL;

	if (c->eh && !dwarf_cfi_addrframe(c->eh, address, &frame))
		return frame;
	if (c->debug && !dwarf_cfi_addrframe(c->debug, address, &frame))
		return frame;
	return NULL;
}

static bool has_frame(struct compare *c, uint64_t address)
{
	autofree Dwarf_Frame *frame = frame_at(c, address);

	return frame;
}

static const char *entry_words(const struct compare *c)
{
	return c->is_arm ? "r31+0 fp same ra same" : "r7+8 fp same";
}

static struct words words(const char *text)
{
	struct words w;

	snprintf(w.text, sizeof(w.text), "%s", text);
	return w;
}

/* The rule AT bytes into the 16 bytes of an x86_64 STUB. */
static struct words stub_words(const uint8_t *stub, uint64_t at)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	bool lands = !memcmp(stub, landing, sizeof(landing));

	if (stub[0] == 0xff && stub[1] == 0x35) /* the header, entered after a push */
		return words(at < 6 ? "r7+16 fp same" : "r7+24 fp same");
	if (stub[0] == 0xff && stub[1] == 0x25 && stub[6] == 0x68)
		return words("plt 11 fp same");
	if (lands && stub[4] == 0x68)
		return words("plt 9 fp same");
	return words("r7+8 fp same");
}

/* The same for arm64, where the header, the section's first 32 bytes, saves the caller. */
static struct words arm_stub_words(const struct compare *c, uint64_t address)
{
	static const uint8_t store[] = { 0xf0, 0x7b, 0xbf, 0xa9 };
	uint64_t at = address - c->stubs_low;

	for (uint64_t i = 0; i <= 4; i += 4)
		if (at >= i + 4 && at < 32 && !memcmp(c->stubs + i, store, sizeof(store)))
			return words("r31+16 fp same ra [cfa-8]");
	return words(entry_words(c));
}

/* GNU ld has entries for most stubs, and none for those of static programs and of arm64. */
static bool expected_of_stub(const struct compare *c, uint64_t address, struct words *ret_words)
{
	uint64_t at = address - c->stubs_low;
	bool ends_early = c->stubs && c->stubs_high - c->stubs_low < 16;

	if (!c->stubs || ends_early)
		return false;
	if (c->is_arm)
		*ret_words = arm_stub_words(c, address);
	else if (c->stubs_low % 16 || at - at % 16 + 16 > c->stubs_high - c->stubs_low)
		*ret_words = words(entry_words(c));
	else
		*ret_words = stub_words(c->stubs + at - at % 16, at % 16);
	return true;
}

/*
 * A gap has no rules, with three exceptions: padding up to a function's alignment may keep the
 * entry's rule, the file's entry point ends all stacks, and stubs get their rules from their code.
 * Rules from instructions, which bare_compare.c compares, are for x86_64 not made here: their
 * library is not loaded. On aarch64, which needs none, other code may have any.
 */
static uint64_t compare_gap(struct compare *c, uint64_t low, uint64_t high)
{
	static const struct words nothing = { "none" }, outermost = { "end" };
	uint64_t gap = low, end = low + 1;
	struct words expected;

	while (end < high && !has_frame(c, end))
		end++;
	expected = words_at(c, &c->ours, end);
	if (end == high || end % 16 || end - low >= 16 || strcmp(expected.text, entry_words(c)))
		expected = nothing;
	c->gaps++;
	for (; low < end; low++) {
		struct words old = nothing;

		if (c->is_arm ? low == c->entry_point
			      : low - c->entry_point < ENTRY_BYTES && c->entry_point >= gap) {
			expect(c, low, &outermost);
			continue;
		}
		if (expected_of_stub(c, low, &old)) {
			expect(c, low, &old);
			continue;
		}
		if (c->is_arm && !c->original.index)
			continue;
		if (c->original.index)
			old = words_at(c, &c->original, low);
		expect(c, low, strcmp(old.text, nothing.text) ? &old : &expected);
	}
	return end;
}

/* Whether the row at ADDRESS has its return address just above the CFA. */
static bool is_behind_push(struct compare *c, uint64_t address)
{
	autofree Dwarf_Frame *frame = frame_at(c, address);
	int offset = 0;

	return frame && c->is_arm && place_of(c, frame, c->ra, &offset) == PLACE_CFA && offset == 8;
}

/*
 * The aarch64 dynamic linker's entry for its lazy binding counts from below the 16 bytes that the
 * stub has pushed. Ours counts from above them, already in the row before the first that says so.
 */
static void move_behind_push(struct compare *c, const struct entry *entry, struct words *w)
{
	bool now = is_behind_push(c, entry->low);
	int cfa;

	if (sscanf(w->text, "r31%d", &cfa) != 1)
		return;
	if (now && strstr(w->text, " fp same ra [cfa+8]"))
		snprintf(w->text, sizeof(w->text), "r31%+d fp same ra [cfa-8]", cfa + 16);
	else if (!now && !cfa && is_behind_push(c, entry->high))
		snprintf(w->text, sizeof(w->text), "r31+16 fp same ra same");
}

static void compare_code(struct compare *c, uint64_t low, uint64_t high)
{
	while (low < high) {
		autofree Dwarf_Frame *frame = frame_at(c, low);
		struct entry entry = { 0 };
		struct words expected;

		if (!frame) {
			low = compare_gap(c, low, high);
			continue;
		}
		entry.ra = (unsigned int)dwarf_frame_info(
			frame, &entry.low, &entry.high, &entry.signal);
		entry.high = MIN(entry.high, high);
		expected = theirs(c, frame, &entry);
		move_behind_push(c, &entry, &expected);
		expect_row(c, low, entry.high, &expected);
		low = MAX(entry.high, low + 1);
	}
}

static void find_stubs(struct compare *c, Elf *elf, Elf_Scn *scn, const GElf_Shdr *section)
{
	const char *name;
	Elf_Data *data;
	size_t names;

	c->stubs = NULL;
	if (elf_getshdrstrndx(elf, &names))
		return;
	name = elf_strptr(elf, names, section->sh_name);
	if (!name || (strcmp(name, ".plt") != 0 && strncmp(name, ".plt.", 5) != 0 &&
			     strcmp(name, ".iplt") != 0))
		return;
	data = elf_getdata(scn, NULL);
	if (!data || data->d_size != section->sh_size)
		return;
	c->stubs = data->d_buf;
	c->stubs_low = section->sh_addr;
	c->stubs_high = section->sh_addr + section->sh_size;
}

static int compare_file(struct compare *c, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header))
		return -1;
	c->is_arm = header.e_machine == EM_AARCH64;
	c->entry_point = header.e_entry;
	c->fp = c->is_arm ? 29 : 6;
	c->sp = c->is_arm ? 31 : 7;
	c->ra = c->is_arm ? 30 : 16;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr section;

		if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_EXECINSTR))
			continue;
		find_stubs(c, elf, scn, &section);
		compare_code(c, section.sh_addr, section.sh_addr + section.sh_size);
	}
	return 0;
}

static bool build_tables(int fd, struct tables *ret_tables)
{
	autoclose int output = memfd_create("index", MFD_CLOEXEC);
	struct sandbox_result result;

	ret_tables->page_number = UINT64_MAX;
	return !builder_run(fd, output, &result) && !index_open(output, &ret_tables->index);
}

static bool build_original(const char *path, struct tables *ret_tables)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && build_tables(fd, ret_tables);
}

static void print_figures(const struct compare *c, const char *path)
{
	const struct index_unwind *u = index_unwind_figures(c->ours.index);
	size_t bytes = index_unwind_bytes(c->ours.index);

	printf("%s: %lu rows, %lu addresses, %lu gaps, %lu different; %u rows in %u pages, "
	       "%zu bytes of %zu, %.2f a row; %lu (%u) unsupported, %u broken, %u left out\n",
		path, (unsigned long)c->rows, (unsigned long)c->addresses, (unsigned long)c->gaps,
		(unsigned long)c->different, u->rows, u->pages, bytes, index_bytes(c->ours.index),
		c->rows ? (double)bytes / (double)c->rows : 0, (unsigned long)c->unsupported,
		u->unsupported, u->broken, u->left_out);
}

int main(int argc, char **argv)
{
	autoclose int fd = argc >= 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct compare c = { .all = argc == 3 && !strcmp(argv[2], "all") };
	Dwarf *dwarf;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	if (!elf || !build_tables(fd, &c.ours))
		return 1;
	if (argc == 3 && !c.all && !build_original(argv[2], &c.original))
		return 1;
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	c.eh = dwarf_getcfi_elf(elf);
	c.debug = dwarf ? dwarf_getcfi(dwarf) : NULL;
	if (compare_file(&c, elf))
		return 1;
	print_figures(&c, argv[1]);
	dwarf_end(dwarf);
	dwarf_cfi_end(c.eh);
	elf_end(elf);
	index_destroy(c.ours.index);
	index_destroy(c.original.index);
	return c.different != 0;
}
