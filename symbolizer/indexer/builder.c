/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/builder.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/elf/debug_names.h"
#include "symbolizer/indexer/elf/images.h"
#include "symbolizer/indexer/elf/scratch.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "symbolizer/indexer/code/bare.h"
#include "symbolizer/indexer/code/code.h"
#include "symbolizer/indexer/dwarf/dwarf.h"
#include "symbolizer/indexer/runtime_source.h"
#include "symbolizer/indexer/source.h"
#include "symbolizer/indexer/symbols.h"
#include "symbolizer/indexer/toolchain.h"

static const uint64_t BIG_BYTES = 32 << 20;
static const uint64_t KERNEL_HALF = UINT64_C(1) << 63;

DEFINE_AUTO(index_writer);

/* An unreadable source costs its names; one that needs too much memory ends the build. */
static bool is_fatal(int err)
{
	return err == -ENOMEM || err == -E2BIG;
}

static int builder_add_code(const struct elf_image *image, struct index_writer *w)
{
	bool relocatable = elf_image_type(image) == ET_REL;
	int err = 0;

	for (size_t i = 0; i < elf_image_segment_count(image) && !err; i++) {
		struct elf_segment s = elf_image_segment(image, i);

		if (s.type != PT_LOAD || !(s.flags & PF_X))
			continue;
		/* An object may have thousands of sections, and is not mapped. */
		if (relocatable)
			err = writer_code(w, s.address, s.memory_size);
		else
			err = writer_segment(w, &(struct writer_segment){
							.address = s.address,
							.size = s.memory_size,
							.file_off = s.file_off,
						});
	}
	for (size_t i = 0; i < elf_image_section_count(image) && !err && !relocatable; i++) {
		struct elf_section s = elf_image_section(image, i);

		if (s.flags & SHF_ALLOC && s.flags & SHF_EXECINSTR)
			err = writer_code(w, s.address, s.size);
	}
	return err;
}

static int read_dwarf(struct source_build *b)
{
	const struct images *images = b->images;
	uint32_t units = 0, broken = 0;
	int err;

	writer_foreign(b->w,
		images_dwarf(images) != images->own || images->alternate || images->split_count);
	err = dwarf_read_images(images, b->answered_language, b->w, &units, &broken);
	writer_foreign(b->w, false);
	b->result->broken_units = broken;
	if (units > broken)
		writer_source(b->w, INDEX_SOURCE_DWARF);
	if (broken || (err && err != -ENOENT))
		writer_source(b->w, INDEX_SOURCE_DWARF_PARTIAL);
	return err;
}

static uint32_t builder_kind_of(const struct elf_image *image)
{
	uint32_t kind = INDEX_STATIC | INDEX_STRIPPED;

	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		if (elf_image_segment(image, i).type == PT_INTERP)
			kind &= ~(uint32_t)INDEX_STATIC;
	}
	for (size_t i = 0; i < elf_image_section_count(image); i++) {
		struct elf_section s = elf_image_section(image, i);

		if (s.type == SHT_SYMTAB && s.size)
			kind &= ~(uint32_t)INDEX_STRIPPED;
	}
	return kind;
}

static int add_making(struct elf_image *image, struct index_writer *w)
{
	char text[TOOLCHAIN_BYTES];
	uint32_t string = 0;
	int err = 0;

	toolchain_read(image, text);
	if (*text)
		err = writer_string(w, text, strlen(text), &string);
	if (!err)
		writer_making(w, string, builder_kind_of(image));
	return err;
}

static void add_file_hash(const struct elf_image *image, struct index_writer *w)
{
	struct cursor file = elf_image_whole(image);
	struct file_hash hash = file_hash_of(file.at, cursor_left(&file));

	writer_file_hash(w, &hash);
}

static int read_facts(struct source_build *b)
{
	struct build_id id;

	elf_image_build_id(b->images->own, &id);
	writer_build_id(b->w, &id);
	add_file_hash(b->images->own, b->w);
	return add_making(b->images->own, b->w);
}

static int read_symbols(struct source_build *b)
{
	const struct images *images = b->images;
	int err = symbols_read(images->own, &b->answered, b->w);

	writer_foreign(b->w, true);
	if (!is_fatal(err) && images->debug)
		err = symbols_read(images->debug, &b->answered, b->w);
	writer_foreign(b->w, false);
	if (!is_fatal(err) && images->small)
		err = symbols_read(images->small, &b->answered, b->w);
	if (!is_fatal(err))
		err = plt_read(images->own, b->w);
	return err;
}

static int builder_add_extent(void *context, const struct cfi_fde *fde)
{
	const struct source_build *b = context;
	uint64_t high;

	if (__builtin_add_overflow(fde->low, fde->size, &high))
		return 0;
	return writer_extent(b->w, fde->low, high);
}

/* Where functions end. */
static int read_extents(struct source_build *b)
{
	int err = unwind_each_function(b->images->own, builder_add_extent, b);

	return err == -ENOMEM ? err : 0;
}

/* The kernel walks its own stacks; only names and lines are wanted of its debug file. */
static bool is_kernel(const struct elf_image *image)
{
	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		struct elf_segment s = elf_image_segment(image, i);

		if (s.type == PT_LOAD && s.flags & PF_X && s.address >= KERNEL_HALF)
			return true;
	}
	return false;
}

/* Unwind tables over a limit are left out and counted; names are unaffected. */
static int read_rules(struct source_build *b)
{
	struct elf_image *image = b->images->own;
	struct unwind_gap_source gaps = { 0 };
	struct unwind_source source;
	int err = runtime_sources_open_unwind(image, &source);
	bool opened = !err;

	/* The code of an object file is not what runs: nothing in it is relocated. */
	if (err != -ENOMEM && elf_image_type(image) != ET_REL)
		err = bare_open(image, writer_work(b->w), &gaps);
	if (err != -ENOMEM)
		err = unwind_read(image, &b->answered, opened ? &source : NULL,
			gaps.run ? &gaps : NULL, b->w);
	if (opened)
		source.close(source.state);
	if (gaps.run)
		gaps.close(gaps.state);
	return err == -ENOMEM ? err : 0;
}

static int read_unwind(struct source_build *b)
{
	return is_kernel(b->images->own) ? read_extents(b) : read_rules(b);
}

/* Order matters: later sources skip what earlier ones have answered. */
static int (*const sources[])(struct source_build *b) = {
	runtime_sources_names,
	read_dwarf,
	read_symbols,
	read_unwind,
	runtime_sources_facts,
	read_facts,
	code_read_functions,
};

/*
 * For names of some addresses. Without unwind tables nobody knows where symbols without a size end,
 * so they name nothing.
 */
static int (*const asked_sources[])(struct source_build *b) = {
	runtime_sources_names,
	read_dwarf,
	read_symbols,
	read_facts,
};

static int read_sources(struct source_build *b)
{
	bool asked = writer_asks(b->w);
	size_t count = asked ? ARRAY_SIZE(asked_sources) : ARRAY_SIZE(sources);
	int err = builder_add_code(b->images->own, b->w);

	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		writer_allow(b->w, images_bytes(b->images));
		err = (asked ? asked_sources : sources)[i](b);
		if (is_fatal(err))
			return err;
	}
	return 0;
}

static bool was_offered(const struct debug_files *c, enum debug_file_role role)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->items[i].role == role)
			return true;
	return false;
}

/* Records which debug files were offered, so that later finds can be told from them. */
static void note_debug_files(
	const struct debug_files *c, const struct images *images, struct index_writer *w)
{
	if (c->count)
		writer_source(w, INDEX_SOURCE_DEBUG_FILES);
	if (was_offered(c, DEBUG_FILE_SPLIT))
		writer_source(w, INDEX_SOURCE_SPLIT);
	if (images->names_alternate && !was_offered(c, DEBUG_FILE_SUPPLEMENTARY))
		writer_source(w, INDEX_SOURCE_NOT_SHARED);
}

/* Malformed section headers name no debug files. */
static int add_debug_names(
	const struct sandbox_files *files, const struct images *images, struct index_writer *w)
{
	autofree struct debug_names *own = calloc(1, sizeof(*own));
	autofree struct debug_names *debug = calloc(1, sizeof(*debug));

	int err = own && debug ? debug_names_read(files->elf_fd, own) : -ENOMEM;

	if ((!err || err == -EBADMSG) && images->debug)
		err = debug_names_read(images->debug_fd, debug);
	if (err && err != -EBADMSG)
		return err;
	return writer_debug_names(w, own, images->debug ? debug : NULL);
}

/* Whether the index of all addresses takes so long that a part of it is worth having. */
static bool is_big(const struct images *images)
{
	return images_bytes(images) >= BIG_BYTES;
}

static int builder_build(const struct sandbox_files *files, struct sandbox_result *result)
{
	autocall(auto_index_writer_destroy) struct index_writer *w = index_writer_create();
	autocall(images_deinit) struct images images = { 0 };
	struct source_build b = {
		.images = &images,
		.w = w,
		.result = result,
		.wants_functions = files->wants_functions,
	};
	/* The output comes last, when nothing of the images is needed. */
	struct elf_scratch scratch = { .fd = files->output_fd, .limit = files->scratch_bytes };
	int err;

	if (!w)
		return -ENOMEM;
	err = images_open(files->elf_fd, &files->debug_files, &images);
	if (err)
		return err;
	images_use_scratch(&images, &scratch);
	if (files->address_count && !files->wants_functions && is_big(&images)) {
		writer_ask(w, files->addresses, files->address_count);
		writer_source(w, INDEX_SOURCE_ASKED);
	}
	err = read_sources(&b);
	if (!err)
		err = add_debug_names(files, &images, w);
	if (err)
		return err;
	note_debug_files(&files->debug_files, &images, w);
	writer_allow(w, images_bytes(&images));
	/* The writer has its own copies; the file's sections may be hundreds of MB. */
	images_deinit(&images);
	err = scratch_clear(&scratch);
	return err ? err : writer_finish(w, files->output_fd);
}

int builder_run_files(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	struct sandbox_result result = { 0 };

	result.error = builder_build(files, &result);
	*ret_result = result;
	return result.error;
}

int builder_run(int elf_fd, int output_fd, struct sandbox_result *ret_result)
{
	const struct sandbox_files files = { .elf_fd = elf_fd, .output_fd = output_fd };

	return builder_run_files(&files, ret_result);
}
