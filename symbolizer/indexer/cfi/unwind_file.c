/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file has for unwind tables: its sections of call frame information, and code without any
 * whose rules are known.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "symbolizer/indexer/cfi/unwind_input.h"

enum {
	HEADER_VERSION = 1, /* of .eh_frame_hdr (LSB 5, 10.6.2) */
	HEADER_FIXED_BYTES = 4,
	PLT_LANDMARKS = 16,
	ENTRY_BYTES = 256, /* size limit of the code at a file's entry point */
	/* What a signal handler returns to: a nop, two instructions, and where the second one is.
	 */
	RETURN_BYTES = 16,
	NOP_BYTES = 4,
	MAX_VDSO_SYMBOLS = 64,
	CONTEXT_BYTES = 25, /* of __start_context(), with its two calls */
	MAX_CONTEXT_CODE = 32 << 20, /* where it is looked for: a C library, a static program */
	RET = 0xc3,
};

/* The entry point, what signal handlers return to, and the first frame of contexts. */
_Static_assert(3 + PLT_LANDMARKS == UNWIND_LANDMARKS, "room for all of them");

static struct landmark entry_landmark(uint64_t entry_point)
{
	return (struct landmark){
		.low = entry_point,
		.size = entry_point ? ENTRY_BYTES : 0,
		.rule.cfa = ABI_CFA_END,
	};
}

int unwind_read_sections(const struct cfi_section *sections, size_t count, uint64_t entry_point,
	const struct source_range *skip, struct index_writer *w)
{
	const struct unwind_input input = {
		.sections = sections,
		.section_count = MIN(count, (size_t)UNWIND_SECTIONS),
		.skip = skip,
		.landmarks[UNWIND_LANDMARKS - 1] = entry_landmark(entry_point),
		.w = w,
	};

	return unwind_write(&input);
}

/* The sections of a file; at an address that several describe, the first one counts. */
struct found {
	struct elf_image *image;
	struct cfi_section sections[UNWIND_SECTIONS];
	size_t count;
};

static uint64_t unwind_address_of(const struct elf_image *image, const char *name)
{
	struct elf_section section;

	return elf_image_find(image, name, &section) ? section.address : 0;
}

static void add_section(struct found *f, struct cursor bytes, uint64_t address, bool eh)
{
	if (bytes.bad || !cursor_left(&bytes) || f->count == UNWIND_SECTIONS)
		return;
	f->sections[f->count++] = (struct cfi_section){
		.bytes = bytes,
		.address = address,
		.text = unwind_address_of(f->image, ".text"),
		.data = unwind_address_of(f->image, ".got"),
		.machine = elf_image_machine(f->image),
		.eh = eh,
	};
}

/* Rewritten files (BOLT) may have more than one. */
static void find_eh_frames(struct found *f)
{
	for (size_t i = 0; i < elf_image_section_count(f->image); i++) {
		struct elf_section section = elf_image_section(f->image, i);

		if (!strcmp(section.name, ".eh_frame"))
			add_section(f, elf_image_section_bytes(f->image, i), section.address, true);
	}
}

/* Without section headers, .eh_frame_hdr has the address of .eh_frame. */
static void find_by_header(struct found *f, const struct elf_segment *segment)
{
	struct cursor bytes = elf_image_at(f->image, segment->address, segment->file_size);
	struct cfi_section header = {
		.bytes = bytes,
		.address = segment->address,
		.data = segment->address,
	};
	uint64_t address = 0;
	uint8_t encoding;

	if (cursor_u8(&bytes) != HEADER_VERSION)
		return;
	encoding = cursor_u8(&bytes);
	cursor_skip(&bytes, HEADER_FIXED_BYTES - 2);
	if (!cfi_pointer(&header, &bytes, encoding, 0, &address))
		return;
	add_section(f, elf_image_from(f->image, address), address, true);
	if (f->count)
		f->sections[f->count - 1].ends_at_zero = true;
}

static void find_sections(struct found *f)
{
	find_eh_frames(f);
	for (size_t i = 0; i < elf_image_segment_count(f->image) && !f->count; i++) {
		struct elf_segment segment = elf_image_segment(f->image, i);

		if (segment.type == PT_GNU_EH_FRAME)
			find_by_header(f, &segment);
	}
	add_section(f, elf_image_bytes(f->image, ".debug_frame"), 0, false);
}

int unwind_each_function(struct elf_image *image, cfi_fde_sink *sink, void *context)
{
	struct found f = { .image = image };
	int err = 0;

	find_sections(&f);
	for (size_t i = 0; i < f.count && !err; i++) {
		struct cfi_entries entries;

		cfi_entries_init(&entries);
		err = cfi_read(&f.sections[i], &entries, sink, context);
		cfi_entries_deinit(&entries);
		err = err == -EBADMSG ? 0 : err;
	}
	return err;
}

/* The address of NAME, one of the exports of a file with few of them; 0 if absent. */
static uint64_t find_export(struct elf_image *image, const char *name)
{
	struct cursor symbols = elf_image_bytes(image, ".dynsym");
	size_t count = cursor_left(&symbols) / sizeof(Elf64_Sym);

	for (size_t i = 0; i < count && count <= MAX_VDSO_SYMBOLS; i++) {
		struct cursor names = elf_image_bytes(image, ".dynstr");
		const char *found;
		Elf64_Sym symbol;

		memcpy(&symbol, cursor_bytes(&symbols, sizeof(symbol)), sizeof(symbol));
		cursor_seek(&names, symbol.st_name);
		found = cursor_string(&names);
		if (found && !strcmp(found, name))
			return symbol.st_value;
	}
	return 0;
}

/*
 * On aarch64 signal handlers return into the vDSO. Since Linux 5.8 that code has no entry (and the
 * vDSO may have no tables at all): a walk by frame pointer would miss the interrupted function.
 * Before it is a nop, for unwinders that subtract 1 from the return address. The rest of that vDSO
 * has the rules of its instructions.
 */
static struct landmark signal_landmark(struct elf_image *image)
{
	uint64_t low = 0;

	if (elf_image_machine(image) == EM_AARCH64)
		low = find_export(image, "__kernel_rt_sigreturn");
	if (low < NOP_BYTES)
		return (struct landmark){ 0 };
	return (struct landmark){
		.low = low - NOP_BYTES,
		.size = RETURN_BYTES,
		.rule.cfa = ABI_CFA_SIGNAL,
	};
}

/*
 * Where the function of a context returns to that makecontext() made: glibc's __start_context. Its
 * entry takes what is on the stack, the address of a context, for a return address. Unwinders look
 * it up a byte before the function, which is padding: that byte is part of the landmark.
 */
static struct landmark context_landmark(
	const struct elf_image *image, const struct source_range *code)
{
	/* mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je; call */
	static const uint8_t begin[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff,
		0x74, 0x08, 0xe8 };
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct cursor bytes = elf_image_at(image, code->low, code->high - code->low);
	uint32_t size = 1 + CONTEXT_BYTES;
	const uint8_t *at = NULL;

	if (!bytes.bad && cursor_left(&bytes) <= MAX_CONTEXT_CODE)
		at = memmem(bytes.at, cursor_left(&bytes), begin, sizeof(begin));
	if (!at || bytes.end - at < CONTEXT_BYTES || at - bytes.at <= (ptrdiff_t)sizeof(landing))
		return (struct landmark){ 0 };
	if (!memcmp(at - sizeof(landing), landing, sizeof(landing))) {
		at -= sizeof(landing);
		size += sizeof(landing);
	}
	/* What is no padding may run, and has a caller. */
	if (at[-1] == RET)
		return (struct landmark){ 0 };
	return (struct landmark){
		.low = code->low + (uint64_t)(at - bytes.at) - 1,
		.size = size,
		.has_entry = true,
		.rule.cfa = ABI_CFA_END,
	};
}

static int mark_by_address(const void *a, const void *b)
{
	const struct landmark *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/*
 * Collects INPUT's code with known rules, ascending; returns whether the file is an aarch64 vDSO.
 */
static bool find_landmarks(struct elf_image *image, struct unwind_input *input)
{
	struct landmark *marks = input->landmarks;
	bool is_vdso;

	marks[0] = entry_landmark(elf_image_entry_point(image));
	marks[1] = signal_landmark(image);
	is_vdso = marks[1].size;
	if (elf_image_machine(image) == EM_X86_64)
		for (size_t i = 0; i < input->code_count && !marks[2].size; i++)
			marks[2] = context_landmark(image, &input->code[i]);
	plt_unwind(image, &marks[3], PLT_LANDMARKS);
	qsort(marks, UNWIND_LANDMARKS, sizeof(marks[0]), mark_by_address);
	return is_vdso;
}

/*
 * Returns the additional register that walks need, as in struct cfi_section. The dynamic linker's
 * code for lazy binding realigns the stack and saves the old stack pointer in rbx; the dynamic
 * linker is recognized by an export.
 */
static uint8_t kept_register(struct elf_image *image, const struct unwind_source *source)
{
	if (elf_image_machine(image) != EM_X86_64)
		return 0;
	if (source && source->kept)
		return source->kept;
	return find_export(image, "_r_debug") ? ABI_KEPT_RBX + 1 : 0;
}

static int code_by_address(const void *a, const void *b)
{
	const struct source_range *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/*
 * Where code without entries may be, or with wrong ones: sections of code but for the tables of
 * stubs, which plt_unwind() describes. A file without section headers has none.
 */
static void find_code(const struct elf_image *image, struct unwind_input *input)
{
	for (size_t i = 0; i < elf_image_section_count(image); i++) {
		struct elf_section s = elf_image_section(image, i);
		uint64_t end;

		if (s.type != SHT_PROGBITS || !(s.flags & SHF_EXECINSTR) ||
			!(s.flags & SHF_ALLOC) || plt_unwind_has_stubs(&s) ||
			__builtin_add_overflow(s.address, s.size, &end) ||
			input->code_count == UNWIND_CODE_RANGES)
			continue;
		input->code[input->code_count++] =
			(struct source_range){ .low = s.address, .high = end };
	}
	qsort(input->code, input->code_count, sizeof(input->code[0]), code_by_address);
}

int unwind_read(struct elf_image *image, const struct source_range *skip,
	const struct unwind_source *source, const struct unwind_gap_source *gaps,
	struct index_writer *w)
{
	struct found f = { .image = image };
	struct unwind_input input = { .skip = skip, .source = source, .gaps = gaps, .w = w };
	int err;

	find_sections(&f);
	for (size_t i = 0; i < f.count; i++)
		f.sections[i].kept = kept_register(image, source);
	find_code(image, &input);
	if (!find_landmarks(image, &input) && !f.count && !source && !(gaps && input.code_count))
		return -ENOENT;
	input.sections = f.sections;
	input.section_count = f.count;
	err = unwind_write(&input);
	for (size_t i = 0; i < f.count; i++)
		elf_image_forget(image, f.sections[i].bytes.start,
			(size_t)(f.sections[i].bytes.end - f.sections[i].bytes.start));
	return err;
}
