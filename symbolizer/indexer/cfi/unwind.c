/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From functions to pages: all functions are collected and sorted by address, then each is run once
 * and its rows go straight into the pages. If entries overlap, each is valid up to the start of the
 * next, as in the binary search for exceptions; of two at the same address the first one counts.
 * Time and memory are linear in the size of the sections, whatever their contents.
 */
#include "symbolizer/indexer/cfi/unwind_input.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/writer/address_sort.h"
#include "symbolizer/indexer/cfi/eh_frame_cfa.h"
#include "symbolizer/indexer/cfi/eh_frame_rule.h"
#include "symbolizer/indexer/cfi/unwind_pages.h"

enum {
	SOURCE_SECTION = UNWIND_SECTIONS, /* functions of the runtime's source */
	MAX_FUNCTIONS = 1 << 22, /* twice what the largest browsers have */
	FUNCTION_ALIGN = 16, /* used by compilers */
	ROW_STEPS = 8, /* of work */
	MIN_GAP_BYTES = 16, /* less is padding */
};

/* Compact, because there may be millions. */
struct function {
	uint64_t low;
	uint32_t size; /* bytes, at most up to the end of the code range around it */
	uint32_t section : 8;
	uint32_t cie : 24; /* as in struct cfi_fde */
	uint32_t code, code_size; /* as in struct cfi_fde; or `code` is a source's number */
};

struct job {
	const struct cfi_section *sections;
	struct cfi_entries *entries; /* one per section */
	size_t section_count;
	const struct source_range *skip;
	struct landmark landmarks[UNWIND_LANDMARKS];
	uint64_t early; /* the function whose landmark begins a byte before it; 0 = none */
	uint64_t next_landmark; /* no unused landmark starts before this address */
	const struct unwind_source *source; /* NULL = none */
	const struct unwind_input *input;
	size_t code_range; /* of input->code: the first that does not end before `described` */
	int extent_error; /* of adding one for code without an entry */
	uint64_t described; /* end of the functions that were run */
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
	uint64_t high;
	int err = 0;

	if (fde->low >= job->skip->low && fde->low < job->skip->high)
		return 0;
	if (!__builtin_add_overflow(fde->low, fde->size, &high))
		err = writer_extent(job->w, fde->low - (fde->low == job->early), high);
	if (err)
		return err;
	return add_function(job, fde->size,
		(struct function){
			.low = fde->low,
			.section = job->section,
			.cie = fde->cie,
			.code = fde->code,
			.code_size = fde->code_size,
		});
}

static int add_source_functions(struct job *job)
{
	const struct unwind_source *source = job->source;
	int err = 0;

	for (uint32_t i = 0; source && i < source->function_count && !err; i++) {
		uint64_t low, size;

		if (source->function(source->state, i, &low, &size))
			job->figures.broken++;
		else if (size)
			err = add_function(job, size,
				(struct function){
					.low = low, .section = SOURCE_SECTION, .code = i });
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

	/* Functions may share their tables; run_source_function() ends once this is spent. */
	(void)work_spend(writer_work(job->w), ROW_STEPS);
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

static int run_source_function(struct job *job, const struct function *f)
{
	const struct unwind_source *source = job->source;

	if (!work_spend(writer_work(job->w), ROW_STEPS))
		return -EBADMSG;
	return source->run(source->state, f->code, &job->entry, unwind_add_row, job);
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

static void add_gap_row(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule)
{
	struct job *job = context;

	unwind_pages_row(job->pages, low, high, rule);
	job->before = MAX(job->before, high);
	/* It ends there, and so does an assembly function without a size before it. */
	if (rule->cfa == ABI_CFA_SIGNAL && !job->extent_error)
		job->extent_error = writer_extent(job->w, low, high);
}

static void add_gap_function(void *context, uint64_t low, uint64_t high)
{
	struct job *job = context;

	if (!job->extent_error)
		job->extent_error = writer_code_extent(job->w, low, high);
}

/* Adds the rows of code without an entry in [LOW, HIGH), but for what the runtime describes. */
static int add_gap(struct job *job, uint64_t low, uint64_t high)
{
	const struct unwind_gap_source *gaps = job->input->gaps;
	const struct source_range *skip = job->skip;
	const struct unwind_gap_sink sink = { add_gap_row, add_gap_function, job };
	int err = 0;

	if (low < skip->high && high > skip->low) {
		if (low < skip->low)
			err = add_gap(job, low, skip->low);
		low = skip->high;
	}
	if (!err && low < high && high - low >= MIN_GAP_BYTES)
		err = gaps->run(gaps->state, low, high, &sink);
	return err ? err : job->extent_error;
}

/* Adds the rows of code without an entry up to LIMIT, the start of the next function. */
static int add_gaps(struct job *job, uint64_t limit)
{
	const struct unwind_input *input = job->input;
	int err = 0;

	if (!input->gaps || limit < job->described || limit - job->described < MIN_GAP_BYTES)
		return 0;
	for (; job->code_range < input->code_count && !err; job->code_range++) {
		const struct source_range *code = &input->code[job->code_range];

		if (code->low >= limit)
			break;
		err = add_gap(job, MAX(code->low, MAX(job->described, job->before)),
			MIN(code->high, limit));
		if (code->high > limit)
			break;
	}
	return err;
}

/*
 * Adds a row for assembly without an entry. A file's entry point has no caller: the stack ends
 * there. LIMIT is the start of the next function. Rows ascend: code before it comes first.
 */
static int add_landmark(struct job *job, struct landmark *mark, uint64_t limit)
{
	uint64_t low = MAX(mark->low, job->before), high = mark->low + mark->size, end = 0;
	const struct unwind_gap_source *gaps = job->input->gaps;
	bool found = false;
	int err;

	if (!mark->size || mark->low >= limit)
		return 0;
	mark->size = 0;
	/* The entry point has an entry of its own; the code after it is another function. */
	if (mark->rule.cfa == ABI_CFA_END && mark->low < job->before)
		return 0;
	if (low >= high || (low >= job->skip->low && low < job->skip->high) ||
		writer_code_at(job->w, low, &found, &end) || !found)
		return 0;
	err = add_gaps(job, low);
	if (err)
		return err;
	end = MIN(end, mark->has_entry ? high : MIN(limit, high));
	if (mark->rule.cfa == ABI_CFA_END && gaps && low == mark->low && !mark->has_entry)
		end = gaps->entry_end(gaps->state, low, end);
	unwind_pages_row(job->pages, low, end, &mark->rule);
	job->before = end;
	return 0;
}

static int add_landmarks(struct job *job, uint64_t limit)
{
	int err = 0;

	if (limit <= job->next_landmark)
		return 0;
	job->next_landmark = UINT64_MAX;
	for (size_t i = 0; i < UNWIND_LANDMARKS && !err; i++) {
		struct landmark *mark = &job->landmarks[i];
		uint64_t next = i + 1 < UNWIND_LANDMARKS ? mark[1].low : limit;

		err = add_landmark(job, mark, MIN(limit, next));
		if (mark->size)
			job->next_landmark = MIN(job->next_landmark, mark->low);
	}
	return err;
}

/* LIMIT is the start of the next function. */
static int run_function(struct job *job, const struct function *f, uint64_t limit)
{
	int err;

	err = add_landmarks(job, f->low);
	if (!err)
		err = add_gaps(job, f->low);
	job->start = f->low;
	job->limit = MIN(f->low + f->size, limit);
	/* Instead of its entry, a landmark holds. */
	if (job->before > f->low)
		return err;
	if (f->section == SOURCE_SECTION ? run_source_function(job, f) : run_fde(job, f))
		job->figures.broken++;
	job->described = MAX(job->described, f->low + f->size);
	return err;
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
		err = run_function(job, &job->functions[order[i].number],
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
	err = add_landmarks(job, UINT64_MAX);
	if (!err)
		err = add_gaps(job, UINT64_MAX);
	if (err)
		return err;
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
	return err ? err : add_source_functions(job);
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

/* Runs JOB; its sections, landmarks, source, range to skip and writer must be set. */
static int begin_job(struct job *job)
{
	struct cfi_entries entries[UNWIND_SECTIONS];
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

int unwind_write(const struct unwind_input *input)
{
	struct job job = {
		.sections = input->sections,
		.section_count = input->section_count,
		.skip = input->skip,
		.source = input->source,
		.input = input,
		.w = input->w,
	};

	assert(input->section_count <= UNWIND_SECTIONS);
	memcpy(job.landmarks, input->landmarks, sizeof(job.landmarks));
	for (size_t i = 0; i < UNWIND_LANDMARKS; i++)
		if (job.landmarks[i].has_entry)
			job.early = job.landmarks[i].low + 1;
	return begin_job(&job);
}
