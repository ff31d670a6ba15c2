/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare_compare FILE: derives unwind rules from the instructions of FILE, as is done for code
 * without tables (symbolizer/indexer/code/bare.h), and compares them with its tables, as libdw
 * reads them: the CFA, and where the caller's frame pointer (rbp, x29) and, on aarch64, the return
 * address are. A difference is a mistake of ours or of the tables. Rules are compared if both have
 * the stack pointer, or both the frame pointer. Prints differences, then figures in one line; exits
 * 1 if there are differences.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "symbolizer/indexer/cfi/plt_unwind.h"
#include "symbolizer/indexer/code/bare.h"
#include "symbolizer/indexer/code/decoder.h"
#include "symbolizer/indexer/elf/images.h"

enum { MAX_SHOWN = 10, GAP_FUNCTIONS = 64 };

/* Numbers of registers in DWARF. */
struct numbers {
	int sp, fp, link; /* link: 0 = there is none (rax is not asked for) */
};

struct figures {
	struct numbers numbers;
	Dwarf_CFI *cfi;
	uint64_t rows, bytes, compared, different, without;
};

/* The distance from register NUMBER to the CFA; false = libdw's rule has another register. */
static bool distance_of(Dwarf_Frame *frame, int number, int64_t *ret_distance)
{
	size_t count = 0;
	Dwarf_Op *ops;

	if (dwarf_frame_cfa(frame, &ops, &count) || count != 1)
		return false;
	if (ops[0].atom == DW_OP_bregx && ops[0].number == (Dwarf_Word)number)
		*ret_distance = (int64_t)ops[0].number2;
	else if (ops[0].atom == DW_OP_breg0 + number)
		*ret_distance = (int64_t)ops[0].number;
	else
		return false;
	return true;
}

/*
 * Where the caller's value of register NUMBER is: its offset from the CFA; 0 = in the register;
 * false = elsewhere.
 */
static bool saved_at(Dwarf_Frame *frame, int number, int64_t *ret_off)
{
	Dwarf_Op memory[3], *ops = NULL;
	size_t count = 0;

	if (dwarf_frame_register(frame, number, memory, &ops, &count))
		return false;
	*ret_off = 0;
	if (!count)
		return !ops;
	if (ops[0].atom != DW_OP_call_frame_cfa || count != 2 || ops[1].atom != DW_OP_plus_uconst)
		return false;
	*ret_off = (int64_t)ops[1].number;
	return true;
}

/*
 * Tables may describe a saved register until the function ends, after it was restored: ours is then
 * in the register, which is right as well.
 */
static bool agrees(const struct numbers *numbers, const struct abi_unwind_rule *rule,
	int64_t distance, Dwarf_Frame *frame)
{
	int64_t off;

	if (rule->cfa_off != distance)
		return false;
	if (numbers->link && rule->ra == ABI_REG_AT_CFA &&
		(!saved_at(frame, numbers->link, &off) || (off && off != rule->ra_off)))
		return false;
	return rule->fp != ABI_REG_AT_CFA || !saved_at(frame, numbers->fp, &off) || !off ||
	       rule->fp_off == off;
}

static void compare_row(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule)
{
	struct figures *f = context;
	const int number = rule->cfa == ABI_CFA_SP ? f->numbers.sp : f->numbers.fp;
	int64_t distance = 0, fp = 0, ra = 0;
	autofree Dwarf_Frame *frame = NULL;

	f->rows++;
	f->bytes += high - low;
	if (dwarf_cfi_addrframe(f->cfi, low, &frame)) {
		f->without++;
		return;
	}
	if ((rule->cfa != ABI_CFA_SP && rule->cfa != ABI_CFA_FP) ||
		!distance_of(frame, number, &distance))
		return;
	f->compared++;
	if (agrees(&f->numbers, rule, distance, frame) || f->different++ >= MAX_SHOWN)
		return;
	saved_at(frame, f->numbers.fp, &fp);
	saved_at(frame, f->numbers.link, &ra);
	printf("%#lx: CFA %d%+d fp %d %+d ra %+d, libdw says %+ld fp %+ld ra %+ld\n",
		(unsigned long)low, rule->cfa, rule->cfa_off, rule->fp, rule->fp_off, rule->ra_off,
		(long)distance, (long)fp, (long)ra);
}

struct functions {
	struct elf_image *image;
	struct source_range *items;
	size_t count, capacity;
};

/* Stubs of the procedure linkage table are not what assembly calls in its own gap. */
static bool is_stub(const struct elf_image *image, uint64_t address)
{
	for (size_t i = 0; i < elf_image_section_count(image); i++) {
		struct elf_section s = elf_image_section(image, i);

		if (plt_unwind_has_stubs(&s) && address - s.address < s.size)
			return true;
	}
	return false;
}

static int add_function(void *context, const struct cfi_fde *fde)
{
	struct functions *f = context;
	int err = array_reserve(f->items, f->capacity, f->count + 1, 1 << 24);

	if (!err && fde->size && !is_stub(f->image, fde->low))
		f->items[f->count++] =
			(struct source_range){ .low = fde->low, .high = fde->low + fde->size };
	return err;
}

static int by_low(const void *a, const void *b)
{
	const struct source_range *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/* Whether there is code between two functions, or nothing but padding. */
static bool are_neighbours(const struct source_range *one, const struct source_range *next)
{
	return next->low >= one->high && next->low - one->high < 16;
}

static void ignore_function(void *context, uint64_t low, uint64_t high)
{
	(void)context;
	(void)low;
	(void)high;
}

/* A source reads no more than so many bytes. */
static int compare_gap(struct figures *f, struct elf_image *image, const struct source_range *gap)
{
	const struct unwind_gap_sink sink = { compare_row, ignore_function, f };
	struct unwind_gap_source source = { 0 };
	int err = bare_open(image, NULL, &source);

	if (err)
		return err;
	err = source.run(source.state, gap->low, gap->high, &sink);
	source.close(source.state);
	return err;
}

/* Reads neighbours together, as many as a gap may have. */
static int compare_functions(struct figures *f, const struct functions *functions)
{
	int err = 0;

	for (size_t i = 0, end; i < functions->count && !err; i = end) {
		struct source_range gap = functions->items[i];

		for (end = i + 1; end < functions->count && end - i < GAP_FUNCTIONS; end++)
			if (!are_neighbours(&functions->items[end - 1], &functions->items[end]))
				break;
		gap.high = functions->items[end - 1].high;
		err = compare_gap(f, functions->image, &gap);
	}
	return err;
}

int main(int argc, char **argv)
{
	static const struct debug_files none;
	struct functions functions = { 0 };
	struct figures f = { 0 };
	struct images images = { 0 };
	autoclose int fd = open(argc == 2 ? argv[1] : "", O_RDONLY | O_CLOEXEC);
	Elf *elf;

	code_libraries_load(false);
	elf_version(EV_CURRENT);
	if (fd < 0 || images_open(fd, &none, &images))
		return 2;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	f.cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (!f.cfi)
		return 2;
	functions.image = images.own;
	f.numbers = elf_image_machine(images.own) == EM_AARCH64
			    ? (struct numbers){ .sp = 31, .fp = 29, .link = 30 }
			    : (struct numbers){ .sp = 7, .fp = 6 };
	if (unwind_each_function(images.own, add_function, &functions))
		return 2;
	qsort(functions.items, functions.count, sizeof(functions.items[0]), by_low);
	if (compare_functions(&f, &functions))
		return 2;
	free(functions.items);
	images_deinit(&images);
	dwarf_cfi_end(f.cfi);
	elf_end(elf);
	printf("%s: %lu rows of %lu bytes, %lu compared: %lu different; %lu without a table\n",
		argv[1], (unsigned long)f.rows, (unsigned long)f.bytes, (unsigned long)f.compared,
		(unsigned long)f.different, (unsigned long)f.without);
	return f.different ? 1 : 0;
}
