/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From sections and pclntab to pages: all functions are collected and sorted by address, then each
 * is run once and its rows go straight into the pages. If entries overlap, each is valid up to the
 * start of the next, as in the binary search for exceptions; of two at the same address the first
 * one counts. Time and memory are linear in the size of the sections, whatever their contents.
 */
#include "symbolizer/indexer/cfi/cfi.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/writer/address_sort.h"
#include "symbolizer/indexer/cfi/eh_frame_cfa.h"
#include "symbolizer/indexer/cfi/eh_frame_rule.h"
#include "symbolizer/indexer/go/go_unwind.h"
#include "symbolizer/indexer/cfi/leaf_arm64.h"
#include "symbolizer/indexer/cfi/plt_unwind.h"
#include "symbolizer/indexer/cfi/unwind_pages.h"

enum {
	MAX_SECTIONS = 8,
	GO_SECTION = MAX_SECTIONS, /* functions of the pclntab */
	MAX_FUNCTIONS = 1 << 22, /* twice what the largest browsers have */
	HEADER_VERSION = 1, /* of .eh_frame_hdr (LSB 5, 10.6.2) */
	HEADER_FIXED_BYTES = 4,
	FUNCTION_ALIGN = 16, /* used by compilers */
	LEAVES = 3,
	PLT_LANDMARKS = 16,
	LANDMARKS = 2 + LEAVES + PLT_LANDMARKS,
	ENTRY_BYTES = 256, /* size limit of the code at a file's entry point */
	/* What a signal handler returns to: a nop, two instructions, and where the second one is.
	 */
	RETURN_BYTES = 16,
	NOP_BYTES = 4,
	MAX_VDSO_SYMBOLS = 64,
};

/* Compact, because there may be millions. */
struct function {
	uint64_t low;
	uint32_t size; /* bytes, at most up to the end of the code range around it */
	uint32_t section : 8;
	uint32_t cie : 24; /* as in struct cfi_fde */
	uint32_t code, code_size; /* as in struct cfi_fde; Go: `code` is the function's number */
};

struct job {
	const struct cfi_section *sections;
	struct cfi_entries *entries; /* one per section */
	size_t section_count;
	const struct source_range *skip;
	struct landmark landmarks[LANDMARKS]; /* the vDSO has no entry point */
	uint64_t next_landmark; /* no unused landmark starts before this address */
	struct go_unwind *go; /* NULL: no Go code */
	struct index_writer *w;
	uint32_t section; /* number of the section being read */
	struct function *functions;
	size_t function_count, function_capacity;
	uint64_t lowest; /* lowest address of the functions */
	uint64_t code_low, code_end; /* cached range of code; it may really start before code_low */
	uint64_t before; /* end of the last row */
	uint64_t start, limit; /* of the function being run; limit: at most the next one's start */
	/* Rule at the first instruction: of the function being run; of functions with an FDE. */
	struct abi_unwind_rule entry, cfi_entry;
	struct unwind_pages *pages;
	struct index_unwind figures;
};

/* Cached writer_code_at(): nearly all functions are in the same range of code. */
static int unwind_find_code(struct job *job, uint64_t address, bool *ret_found, uint64_t *ret_end)
{
	int err = 0;

	*ret_found = true;
	if (address < job->code_low || address >= job->code_end) {
		err = writer_code_at(job->w, address, ret_found, ret_end);
		if (err || !*ret_found)
			return err;
		job->code_low = address;
		job->code_end = *ret_end;
	}
	*ret_end = job->code_end;
	return 0;
}

/* Adds F, of SIZE bytes, unless it starts outside of code: the linker discarded it. */
static int add_function(struct job *job, uint64_t size, struct function f)
{
	uint64_t end = 0;
	bool found = false;
	int err = unwind_find_code(job, f.low, &found, &end);

	if (err || !found || !size)
		return err;
	err = array_reserve(
		job->functions, job->function_capacity, job->function_count + 1, MAX_FUNCTIONS);
	if (err)
		return err;
	f.size = (uint32_t)MIN(size, end - f.low);
	job->lowest = job->function_count ? MIN(job->lowest, f.low) : f.low;
	job->functions[job->function_count++] = f;
	return 0;
}

static int add_fde(void *context, const struct cfi_fde *fde)
{
	struct job *job = context;

	if (fde->low >= job->skip->low && fde->low < job->skip->high)
		return 0;
	return add_function(job, fde->size,
		(struct function){
			.low = fde->low,
			.section = job->section,
			.cie = fde->cie,
			.code = fde->code,
			.code_size = fde->code_size,
		});
}

static int add_go_functions(struct job *job)
{
	int err = 0;

	for (uint32_t i = 0; job->go && i < job->go->table->function_count && !err; i++) {
		struct gopclntab_function f;

		if (gopclntab_function(job->go->table, i, &f))
			job->figures.broken++;
		else if (f.pcsp)
			err = add_function(job, f.next - f.entry,
				(struct function){
					.low = f.entry, .section = GO_SECTION, .code = i });
	}
	return err;
}

/* Whether RULE is the one at the function's first instruction. */
static bool is_entry(const struct job *job, const struct abi_unwind_rule *rule)
{
	return !memcmp(rule, &job->entry, sizeof(*rule));
}

/*
 * Returns where a function's first row starts. Small gaps between functions are padding, or a few
 * instructions of assembly for which the rule of a function's first instruction mostly holds. Such
 * a gap gets that rule, which saves two rows for most functions.
 */
static uint64_t over_padding(
	const struct job *job, uint64_t low, const struct abi_unwind_rule *rule)
{
	if (low == job->start && low - job->before < FUNCTION_ALIGN && !(low % FUNCTION_ALIGN) &&
		is_entry(job, rule))
		return job->before;
	return low;
}

static void unwind_add_row(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule)
{
	struct job *job = context;

	high = MIN(high, job->limit);
	unwind_pages_row(job->pages, over_padding(job, low, rule), high, rule);
	job->before = MAX(job->before, high);
}

static void add_rows(void *context, struct unwind_row *rows, size_t count, uint64_t high)
{
	struct job *job = context;

	while (count && rows[count - 1].low >= job->limit)
		count--;
	if (!count)
		return;
	high = MIN(high, job->limit);
	rows[0].low = over_padding(job, rows[0].low, &rows[0].rule);
	unwind_pages_rows(job->pages, rows, count, high);
	job->before = MAX(job->before, high);
}

static int run_go_function(struct job *job, const struct function *f)
{
	struct gopclntab_function function;
	int err = gopclntab_function(job->go->table, f->code, &function);

	if (err)
		return err;
	job->entry = go_unwind_entry_rule(job->go, &function);
	return go_unwind_function(job->go, &function, unwind_add_row, job);
}

static int run_fde(struct job *job, const struct function *f)
{
	struct cfi_fde fde = {
		.low = f->low,
		.size = f->size,
		.cie = f->cie,
		.code = f->code,
		.code_size = f->code_size,
	};
	const struct cfi_cie *cie = &job->entries[f->section].cies[f->cie];

	job->entry = job->cfi_entry;
	return cfi_run(&job->sections[f->section], cie, &fde, add_rows, job);
}

/*
 * Adds a row for assembly without an entry. A file's entry point has no caller: the stack ends
 * there. LIMIT is the start of the next function.
 */
static void add_landmark(struct job *job, struct landmark *mark, uint64_t limit)
{
	uint64_t low = MAX(mark->low, job->before), high = mark->low + mark->size, end = 0;
	bool found = false;

	if (!mark->size || mark->low >= limit)
		return;
	mark->size = 0;
	/* The entry point has an entry of its own; the code after it is another function. */
	if (mark->rule.cfa == ABI_CFA_END && mark->low < job->before)
		return;
	if (low >= high || (low >= job->skip->low && low < job->skip->high) ||
		writer_code_at(job->w, low, &found, &end) || !found)
		return;
	end = MIN(end, MIN(limit, high));
	unwind_pages_row(job->pages, low, end, &mark->rule);
	job->before = end;
}

static void add_landmarks(struct job *job, uint64_t limit)
{
	if (limit <= job->next_landmark)
		return;
	job->next_landmark = UINT64_MAX;
	for (size_t i = 0; i < LANDMARKS; i++) {
		struct landmark *mark = &job->landmarks[i];
		uint64_t next = i + 1 < LANDMARKS ? mark[1].low : limit;

		add_landmark(job, mark, MIN(limit, next));
		if (mark->size)
			job->next_landmark = MIN(job->next_landmark, mark->low);
	}
}

/* LIMIT is the start of the next function. */
static void run_function(struct job *job, const struct function *f, uint64_t limit)
{
	add_landmarks(job, f->low);
	job->start = f->low;
	job->limit = MIN(f->low + f->size, limit);
	if (f->section == GO_SECTION ? run_go_function(job, f) : run_fde(job, f))
		job->figures.broken++;
}

/* Keeps the order of rank for equal addresses. All code of a module is within 4 GiB. */
static int sort_functions(const struct job *job, struct address_item **ret_order)
{
	const size_t count = job->function_count;
	struct address_item *order = malloc((count + 1) * sizeof(*order));
	int err;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct address_item){
			.address = (uint32_t)(job->functions[i].low - job->lowest),
			.number = (uint32_t)i,
		};
	err = address_sort(order, count);
	if (err)
		free(order);
	else
		*ret_order = order;
	return err;
}

static int run_functions(struct job *job)
{
	const size_t count = job->function_count;
	autofree struct address_item *order = NULL;
	int err = sort_functions(job, &order);

	for (size_t i = 0, next; i < count && !err; i = next) {
		for (next = i + 1; next < count && order[next].address == order[i].address;)
			next++;
		run_function(job, &job->functions[order[i].number],
			next < count ? job->lowest + order[next].address : UINT64_MAX);
	}
	return err;
}

static int make_pages(struct job *job)
{
	struct unwind_counts counts = { 0 };
	int err = run_functions(job);

	if (err)
		return err;
	add_landmarks(job, UINT64_MAX);
	err = unwind_pages_finish(job->pages, &counts);
	job->figures.pages = counts.pages;
	job->figures.rows = counts.rows;
	job->figures.unsupported = counts.unsupported;
	job->figures.left_out = counts.left_out;
	return err;
}

static int put_page(void *context, uint64_t address, const struct abi_unwind_page *page)
{
	return writer_unwind_page(context, address, page, page->size);
}

/* After -E2BIG, the functions read so far are valid. */
static int unwind_read_entries(struct job *job)
{
	int err = 0;

	for (size_t i = 0; i < job->section_count && !err; i++) {
		job->section = (uint32_t)i;
		err = cfi_read(&job->sections[i], &job->entries[i], add_fde, job);
		job->figures.broken += job->entries[i].broken + (err == -EBADMSG);
		err = err == -EBADMSG ? 0 : err;
	}
	return err ? err : add_go_functions(job);
}

static int run_job(struct job *job)
{
	int err = unwind_read_entries(job), made = 0;

	if (!err || err == -E2BIG)
		made = make_pages(job);
	job->figures.functions = (uint32_t)job->function_count;
	writer_unwind(job->w, &job->figures);
	return err ? err : made;
}

/* Runs JOB; its sections, landmarks, Go code, range to skip and writer must be set. */
static int begin_job(struct job *job)
{
	struct cfi_entries entries[MAX_SECTIONS];
	int err = -ENOMEM;

	job->entries = entries;
	for (size_t i = 0; i < job->section_count; i++)
		cfi_entries_init(&entries[i]);
	if (job->section_count)
		job->cfi_entry = cfi_entry_rule(&job->sections[0]);
	job->pages = unwind_pages_create(put_page, job->w);
	if (job->pages)
		err = run_job(job);
	unwind_pages_destroy(job->pages);
	free(job->functions);
	for (size_t i = 0; i < job->section_count; i++)
		cfi_entries_deinit(&entries[i]);
	return err;
}

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
	struct job job = {
		.sections = sections,
		.section_count = MIN(count, (size_t)MAX_SECTIONS),
		.skip = skip,
		.landmarks[LANDMARKS - 1] = entry_landmark(entry_point),
		.w = w,
	};

	return begin_job(&job);
}

/* The sections of a file; at an address that several describe, the first one counts. */
struct found {
	struct elf_image *image;
	struct cfi_section sections[MAX_SECTIONS];
	size_t count;
};

static uint64_t unwind_address_of(const struct elf_image *image, const char *name)
{
	struct elf_section section;

	return elf_image_find(image, name, &section) ? section.address : 0;
}

static void add_section(struct found *f, struct cursor bytes, uint64_t address, bool eh)
{
	if (bytes.bad || !cursor_left(&bytes) || f->count == MAX_SECTIONS)
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

/* Finds NAME among the exports of a file with few of them; address 0 if absent. */
static struct function find_export(struct elf_image *image, const char *name)
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
		if (found && !strcmp(found, name) && symbol.st_size <= UINT32_MAX)
			return (struct function){ .low = symbol.st_value,
				.size = (uint32_t)symbol.st_size };
	}
	return (struct function){ 0 };
}

/*
 * On aarch64 signal handlers return into the vDSO. Since Linux 5.8 that code has no entry (and the
 * vDSO may have no tables at all): a walk by frame pointer would miss the interrupted function.
 * Before it is a nop, for unwinders that subtract 1 from the return address.
 */
static struct landmark signal_landmark(struct elf_image *image)
{
	uint64_t low = 0;

	if (elf_image_machine(image) == EM_AARCH64)
		low = find_export(image, "__kernel_rt_sigreturn").low;
	if (low < NOP_BYTES)
		return (struct landmark){ 0 };
	return (struct landmark){
		.low = low - NOP_BYTES,
		.size = RETURN_BYTES,
		.rule.cfa = ABI_CFA_SIGNAL,
	};
}

/*
 * The rest of that vDSO has no tables either. Its clock functions have no frame: the caller is in
 * the link register.
 */
static void leaf_landmarks(struct elf_image *image, struct landmark marks[LEAVES])
{
	static const char *const names[LEAVES] = { "__kernel_clock_gettime",
		"__kernel_gettimeofday", "__kernel_clock_getres" };

	for (size_t i = 0; i < LEAVES; i++) {
		struct function f = find_export(image, names[i]);

		if (f.low && leaf_arm64(elf_image_at(image, f.low, f.size)))
			marks[i] = (struct landmark){
				.low = f.low, .size = f.size, .rule.cfa = ABI_CFA_SP
			};
	}
}

static int mark_by_address(const void *a, const void *b)
{
	const struct landmark *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/* Collects code with known rules, ascending; returns whether the file is an aarch64 vDSO. */
static bool find_landmarks(struct elf_image *image, struct landmark marks[LANDMARKS])
{
	bool is_vdso;

	marks[0] = entry_landmark(elf_image_entry_point(image));
	marks[1] = signal_landmark(image);
	is_vdso = marks[1].size;
	if (is_vdso)
		leaf_landmarks(image, &marks[2]);
	plt_unwind(image, &marks[2 + LEAVES], PLT_LANDMARKS);
	qsort(marks, LANDMARKS, sizeof(marks[0]), mark_by_address);
	return is_vdso;
}

/*
 * Returns the additional register that walks need, as in struct cfi_section. The dynamic linker's
 * code for lazy binding realigns the stack and saves the old stack pointer in rbx; the dynamic
 * linker is recognized by an export.
 */
static uint8_t kept_register(struct elf_image *image, const struct go_unwind *go)
{
	struct gopclntab_function racecall;

	if (elf_image_machine(image) != EM_X86_64)
		return 0;
	if (go && !gopclntab_function_named(go->table, "racecall", &racecall))
		return ABI_KEPT_R12 + 1;
	return find_export(image, "_r_debug").low ? ABI_KEPT_RBX + 1 : 0;
}

int unwind_read(struct elf_image *image, const struct source_range *skip, struct index_writer *w)
{
	struct found f = { .image = image };
	struct job job = { .skip = skip, .w = w };
	autocall(go_unwind_deinit) struct go_unwind go = { 0 };
	struct gopclntab table;
	int err;

	find_sections(&f);
	if (!gopclntab_find(image, &table)) {
		go_unwind_init(&go, &table);
		job.go = &go;
	}
	for (size_t i = 0; i < f.count; i++)
		f.sections[i].kept = kept_register(image, job.go);
	if (!find_landmarks(image, job.landmarks) && !f.count && !job.go)
		return -ENOENT;
	job.sections = f.sections;
	job.section_count = f.count;
	err = begin_job(&job);
	for (size_t i = 0; i < f.count; i++)
		elf_image_forget(image, f.sections[i].bytes.start,
			(size_t)(f.sections[i].bytes.end - f.sections[i].bytes.start));
	return err;
}
