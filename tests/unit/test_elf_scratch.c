/* SPDX-License-Identifier: Apache-2.0 */
/* Big compressed sections in a scratch file. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/elf/scratch.h"
#include "tests/unit/bytes.h"
#include "tests/unit/elf_writer.h"

enum { ZLIB = 1, ZSTD = 2, ZSTD_FRAMES = 3, BYTES = 20 << 20, HEADER_BYTES = 24 };

struct fixture {
	uint8_t *text; /* BYTES, worth compressing */
	struct elf_scratch scratch;
	struct elf_image *image;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint32_t number = 1;

	if (!f)
		return -1;
	f->text = malloc(BYTES);
	assert_non_null(f->text);
	for (size_t i = 0; i < BYTES; i++) {
		number = number * 1664525 + 1013904223;
		f->text[i] = (uint8_t)(number >> 24 & (i >> 12 & 1 ? 0x0f : 0x01));
	}
	f->scratch = (struct elf_scratch){ memfd_create("scratch", MFD_CLOEXEC), 0, 1 << 30 };
	assert_true(f->scratch.fd >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	elf_image_destroy(f->image);
	close(f->scratch.fd);
	free(f->text);
	free(f);
	return 0;
}

/* As lld does: a frame for each MiB. The last one is skippable. */
static size_t packed_in_frames(const struct fixture *f, uint8_t *out, size_t size)
{
	static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3 };
	size_t used = 0;

	for (size_t at = 0; at < BYTES; at += 1 << 20)
		used += ZSTD_compress(out + used, size - used, f->text + at, 1 << 20, 1);
	memcpy(out + used, skippable, sizeof(skippable));
	return used + sizeof(skippable);
}

static size_t packed_bytes(const struct fixture *f, uint32_t method, uint8_t *out, size_t size)
{
	struct libdeflate_compressor *c;

	if (method == ZSTD)
		return ZSTD_compress(out, size, f->text, BYTES, 1);
	if (method == ZSTD_FRAMES)
		return packed_in_frames(f, out, size);
	c = libdeflate_alloc_compressor(1);
	size = libdeflate_zlib_compress(c, f->text, BYTES, out, size);
	libdeflate_free_compressor(c);
	return size;
}

/* Adds .debug_info of CLAIMED bytes, which loses its last CUT bytes. */
static struct buffer packed(const struct fixture *f, uint32_t method, uint64_t claimed, size_t cut)
{
	autofree uint8_t *out = malloc(BYTES);
	size_t size = packed_bytes(f, method, out, BYTES);
	struct buffer b;

	assert_true(size > cut);
	buffer_init(&b, BYTES + HEADER_BYTES);
	put_u32(&b, method == ZLIB ? ZLIB : ZSTD);
	put_u32(&b, 0);
	put_u64(&b, claimed);
	put_u64(&b, 1);
	buffer_append(&b, out, size - cut);
	return b;
}

static void open_image(struct fixture *f, struct buffer *info, struct buffer *line)
{
	struct buffer *sections[] = { info, line };
	static const char *const names[] = { ".debug_info", ".debug_line" };
	struct elf_writer w;
	autoclose int fd = -1;

	elf_writer_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(sections) && sections[i]; i++) {
		elf_writer_section(&w, &(struct elf_section_spec){ .name = names[i],
					       .flags = SHF_COMPRESSED,
					       .bytes = sections[i]->bytes,
					       .size = sections[i]->size });
		buffer_deinit(sections[i]);
	}
	fd = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_int_equal(elf_image_open(fd, &f->image), 0);
	elf_image_use_scratch(f->image, &f->scratch);
}

static void close_image(struct fixture *f)
{
	elf_image_destroy(f->image);
	f->image = NULL;
}

static void assert_text(struct fixture *f, const char *name)
{
	struct cursor c = elf_image_bytes(f->image, name);

	assert_int_equal(cursor_left(&c), BYTES);
	assert_memory_equal(c.at, f->text, BYTES);
}

static uint64_t file_bytes(const struct fixture *f)
{
	struct stat st;

	assert_int_equal(fstat(f->scratch.fd, &st), 0);
	return (uint64_t)st.st_size;
}

static void big_sections_are_in_the_file_one_after_the_other(void **state)
{
	struct fixture *f = *state;
	struct buffer zlib = packed(f, ZLIB, BYTES, 0), zstd = packed(f, ZSTD, BYTES, 0);
	struct cursor info;

	open_image(f, &zlib, &zstd);
	assert_text(f, ".debug_info");
	assert_int_equal(file_bytes(f), BYTES);
	assert_text(f, ".debug_line");
	assert_int_equal(file_bytes(f), 2 * BYTES);
	/* What was forgotten is there again. */
	info = elf_image_bytes(f->image, ".debug_info");
	elf_image_forget(f->image, info.start, BYTES);
	assert_text(f, ".debug_info");
	assert_text(f, ".debug_line");
	close_image(f);
	assert_int_equal(scratch_clear(&f->scratch), 0);
	assert_int_equal(file_bytes(f), 0);
	assert_int_equal(f->scratch.used, 0);
}

static void a_section_of_another_size_is_empty(void **state)
{
	static const struct {
		uint32_t method;
		uint64_t claimed;
		size_t cut;
	} cases[] = { { ZLIB, BYTES - 1, 0 }, { ZLIB, BYTES + 1, 0 }, { ZLIB, BYTES, 1 },
		{ ZLIB, BYTES, 100000 }, { ZSTD, BYTES - 1, 0 }, { ZSTD, BYTES + 1, 0 },
		{ ZSTD, BYTES, 1 }, { ZSTD, BYTES, 100000 }, { ZSTD_FRAMES, BYTES - 1, 0 },
		{ ZSTD_FRAMES, BYTES + 1, 0 }, { ZSTD_FRAMES, BYTES, 12 } };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buffer b = packed(f, cases[i].method, cases[i].claimed, cases[i].cut);
		struct cursor c;

		open_image(f, &b, NULL);
		c = elf_image_bytes(f->image, ".debug_info");
		assert_int_equal(cursor_left(&c), 0);
		assert_int_equal(file_bytes(f), 0);
		close_image(f);
	}
}

static void many_frames_are_one_section(void **state)
{
	struct fixture *f = *state;
	struct buffer frames = packed(f, ZSTD_FRAMES, BYTES, 0);

	open_image(f, &frames, NULL);
	assert_text(f, ".debug_info");
	assert_int_equal(file_bytes(f), BYTES);
}

/* The index is written there next. */
static void what_is_left_of_a_failure_is_cleared(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(pwrite(f->scratch.fd, "left", 4, 100), 4);
	assert_int_equal(scratch_clear(&f->scratch), 0);
	assert_int_equal(file_bytes(f), 0);
}

static void without_room_in_the_file_memory_has_the_section(void **state)
{
	struct fixture *f = *state;

	for (uint32_t method = ZLIB; method <= ZSTD; method++) {
		struct buffer b = packed(f, method, BYTES, 0);

		f->scratch.limit = BYTES - 1;
		open_image(f, &b, NULL);
		assert_text(f, ".debug_info");
		assert_int_equal(file_bytes(f), 0);
		close_image(f);
	}
}

static void a_file_that_cannot_be_written_is_not_needed(void **state)
{
	struct fixture *f = *state;
	struct buffer b = packed(f, ZLIB, BYTES, 0);

	close(f->scratch.fd);
	f->scratch.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	open_image(f, &b, NULL);
	assert_text(f, ".debug_info");
	assert_int_equal(f->scratch.used, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(big_sections_are_in_the_file_one_after_the_other),
		CASE(a_section_of_another_size_is_empty),
		CASE(many_frames_are_one_section),
		CASE(what_is_left_of_a_failure_is_cleared),
		CASE(without_room_in_the_file_memory_has_the_section),
		CASE(a_file_that_cannot_be_written_is_not_needed),
	};

	return cmocka_run_group_tests_name("elf_scratch", tests, NULL, NULL);
}
