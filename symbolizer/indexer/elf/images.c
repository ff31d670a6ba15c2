/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which debug file belongs to the module. A debug file has the build ID of its program; if
 * the program has none, the CRC-32 in its .gnu_debuglink has to do. One found by that link must
 * match both. A file that does not match is of another build, and its names would be wrong.
 */
#include "symbolizer/indexer/elf/images.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

DEFINE_AUTO(elf_image);

enum {
	/*
	 * minidebuginfo is a symbol table without .dynsym's part: some hundred KB for a big
	 * program.
	 */
	MAX_SMALL_BYTES = 64 << 20,
	LZMA_MEMORY = 80 << 20, /* the format's highest preset asks for 65 MiB */
	FIRST_SMALL_BYTES = 1 << 20,
	SMALL_RATIO = 64, /* to its compressed size; usual ones have 5 */
};

static bool has_section(const struct elf_image *image, const char *name)
{
	struct elf_section section;

	return elf_image_find(image, name, &section) && section.type != SHT_NOBITS &&
	       section.size != 0;
}

static bool has_dwarf(const struct elf_image *image)
{
	return has_section(image, ".debug_info") || has_section(image, ".zdebug_info");
}

/* ---- separate debug files ------------------------------------------------------------------- */

static bool is_debug_file_of(
	const struct elf_image *own, const struct elf_image *image, const struct debug_file *c)
{
	struct build_id wanted, found;

	if (elf_image_machine(own) != elf_image_machine(image))
		return false;
	elf_image_build_id(own, &wanted);
	elf_image_build_id(image, &found);
	if (!build_id_equal(&wanted, &found))
		return false;
	if (c->role == DEBUG_FILE_LINKED)
		return elf_image_crc32(image) == c->crc;
	return wanted.size != 0;
}

static int find_debug_file(struct images *images, const struct debug_files *debug_files)
{
	for (size_t i = 0; i < debug_files->count && !images->debug; i++) {
		const struct debug_file *c = &debug_files->items[i];
		autocall(auto_elf_image_destroy) struct elf_image *image = NULL;
		int err;

		if (c->role != DEBUG_FILE_SEPARATE && c->role != DEBUG_FILE_LINKED)
			continue;
		err = elf_image_open(c->fd, &image);
		if (err == -ENOMEM)
			return err;
		if (!err && (has_dwarf(image) || has_section(image, ".symtab")) &&
			is_debug_file_of(images->own, image, c)) {
			images->debug = take(image);
			images->debug_fd = c->fd;
			elf_image_peek_in(images->debug, c->fd);
		}
	}
	return 0;
}

/* ---- supplementary files -------------------------------------------------------------------- */

/* Reads SIZE bytes at C as an ID; an empty ID if they are too many or missing. */
static void take_id(struct cursor *c, uint64_t size, struct build_id *ret_id)
{
	const uint8_t *bytes = size <= BUILD_ID_MAX_BYTES ? cursor_bytes(c, size) : NULL;

	*ret_id = (struct build_id){ 0 };
	if (c->bad || !bytes)
		return;
	ret_id->size = (uint8_t)size;
	memcpy(ret_id->bytes, bytes, size);
}

/* .debug_sup (DWARF 5, 7.3.6): version, which side this is, a file name, an ID with its length. */
static void supplementary_id(struct elf_image *image, bool supplementary, struct build_id *ret_id)
{
	struct cursor c = elf_image_bytes(image, ".debug_sup");

	*ret_id = (struct build_id){ 0 };
	cursor_skip(&c, 2);
	if (cursor_u8(&c) != supplementary)
		return;
	cursor_string(&c);
	take_id(&c, cursor_uleb128(&c), ret_id);
}

/* .gnu_debugaltlink, the predecessor: a path and, after its NUL, the file's build ID. */
static void alternate_id(struct elf_image *image, struct build_id *ret_id)
{
	struct cursor c = elf_image_bytes(image, ".gnu_debugaltlink");

	cursor_string(&c);
	take_id(&c, cursor_left(&c), ret_id);
	if (!ret_id->size)
		supplementary_id(image, false, ret_id);
}

static int images_find_alternate(struct images *images, const struct debug_files *debug_files)
{
	struct build_id wanted, found;

	alternate_id(images_dwarf(images), &wanted);
	images->names_alternate = wanted.size > 0;
	for (size_t i = 0; i < debug_files->count && wanted.size && !images->alternate; i++) {
		autocall(auto_elf_image_destroy) struct elf_image *image = NULL;
		int err = -ENOENT;

		if (debug_files->items[i].role == DEBUG_FILE_SUPPLEMENTARY)
			err = elf_image_open_any(debug_files->items[i].fd, &image);
		if (err == -ENOMEM)
			return err;
		if (err)
			continue;
		elf_image_build_id(image, &found);
		if (!found.size)
			supplementary_id(image, true, &found);
		if (build_id_equal(&wanted, &found))
			images->alternate = take(image);
	}
	return 0;
}

/* ---- split DWARF ---------------------------------------------------------------------------- */

/* The unit IDs decide later whether a file has units of ours. */
static int find_splits(struct images *images, const struct debug_files *debug_files)
{
	for (size_t i = 0; i < debug_files->count; i++) {
		autocall(auto_elf_image_destroy) struct elf_image *image = NULL;
		int err = -ENOENT;

		if (debug_files->items[i].role == DEBUG_FILE_SPLIT)
			err = elf_image_open_any(debug_files->items[i].fd, &image);
		if (err == -ENOMEM)
			return err;
		if (!err && elf_image_machine(image) == elf_image_machine(images->own))
			images->splits[images->split_count++] = take(image);
	}
	return 0;
}

/* ---- .gnu_debugdata ------------------------------------------------------------------------- */

static void end_stream(lzma_stream *stream)
{
	lzma_end(stream);
}

/* Makes room for more output of STREAM. */
static int images_grow(lzma_stream *stream, size_t limit, uint8_t **bytes, size_t *capacity)
{
	size_t used = stream->total_out;
	size_t need =
		used < limit ? MIN(MAX(used * 2, (size_t)FIRST_SMALL_BYTES), limit) : used + 1;
	int err = array_reserve(*bytes, *capacity, need, limit);

	if (err)
		return err;
	stream->next_out = *bytes + used;
	stream->avail_out = *capacity - used;
	return 0;
}

static int unpack(struct cursor packed, uint8_t **ret_bytes, size_t *ret_size)
{
	autocall(end_stream) lzma_stream stream = LZMA_STREAM_INIT;
	autofree uint8_t *bytes = NULL;
	size_t capacity = 0;
	size_t limit = MIN(
		cursor_left(&packed) * SMALL_RATIO + FIRST_SMALL_BYTES, (uint64_t)MAX_SMALL_BYTES);
	lzma_ret status;

	if (lzma_stream_decoder(&stream, LZMA_MEMORY, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = packed.at;
	stream.avail_in = cursor_left(&packed);
	do {
		int err = stream.avail_out ? 0 : images_grow(&stream, limit, &bytes, &capacity);

		if (err)
			return err;
		status = lzma_code(&stream, LZMA_FINISH);
	} while (status == LZMA_OK);
	if (status != LZMA_STREAM_END)
		return status == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
	*ret_size = stream.total_out;
	*ret_bytes = take(bytes);
	return 0;
}

/* Opens minidebuginfo: a small ELF file with the symbols that a distribution stripped (Fedora). */
static int open_small(struct images *images)
{
	struct cursor packed = elf_image_bytes(images->own, ".gnu_debugdata");
	autofree uint8_t *bytes = NULL;
	size_t size;
	int err;

	if (!cursor_left(&packed))
		return 0;
	err = unpack(packed, &bytes, &size);
	if (!err)
		err = elf_image_open_bytes(bytes, size, &images->small);
	if (!err)
		images->small_bytes = take(bytes);
	return err == -ENOMEM ? err : 0;
}

/* ---- all of them ---------------------------------------------------------------------------- */

int images_open(int elf_fd, const struct debug_files *debug_files, struct images *ret_images)
{
	autocall(images_deinit) struct images images = { 0 };
	int err = elf_image_open(elf_fd, &images.own);

	if (!err)
		elf_image_peek_in(images.own, elf_fd);
	if (!err && !has_dwarf(images.own))
		err = find_debug_file(&images, debug_files);
	if (!err && !images.debug && !has_section(images.own, ".symtab"))
		err = open_small(&images);
	if (!err)
		err = images_find_alternate(&images, debug_files);
	if (!err)
		err = find_splits(&images, debug_files);
	if (err)
		return err;
	*ret_images = images;
	images = (struct images){ 0 };
	return 0;
}

void images_use_scratch(const struct images *images, struct elf_scratch *scratch)
{
	elf_image_use_scratch(images->own, scratch);
	if (images->debug)
		elf_image_use_scratch(images->debug, scratch);
	if (images->alternate)
		elf_image_use_scratch(images->alternate, scratch);
	for (size_t i = 0; i < images->split_count; i++)
		elf_image_use_scratch(images->splits[i], scratch);
}

uint64_t images_bytes(const struct images *images)
{
	uint64_t bytes = elf_image_bytes_held(images->own);

	if (images->debug)
		bytes += elf_image_bytes_held(images->debug);
	if (images->alternate)
		bytes += elf_image_bytes_held(images->alternate);
	if (images->small)
		bytes += elf_image_bytes_held(images->small);
	for (size_t i = 0; i < images->split_count; i++)
		bytes += elf_image_bytes_held(images->splits[i]);
	return bytes;
}

void images_deinit(struct images *images)
{
	elf_image_destroy(images->own);
	elf_image_destroy(images->debug);
	elf_image_destroy(images->alternate);
	for (size_t i = 0; i < images->split_count; i++)
		elf_image_destroy(images->splits[i]);
	elf_image_destroy(images->small);
	free(images->small_bytes);
	*images = (struct images){ 0 };
}

struct elf_image *images_dwarf(const struct images *images)
{
	return images->debug && has_dwarf(images->debug) ? images->debug : images->own;
}
