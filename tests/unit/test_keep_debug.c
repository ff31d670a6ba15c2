/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/elf/build_id.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/keep_debug.h"
#include "tests/unit/elf_writer.h"

static const char info[] = "what DWARF says of it, which is a longer text than the others";
static const uint8_t id[20] = { 1, 2, 3, 0xab };

/* Places in the file's header, and in each of its section headers. */
enum {
	AT_CLASS = EI_CLASS,
	AT_TYPE = offsetof(Elf64_Ehdr, e_type),
	AT_SECTION_BYTES = offsetof(Elf64_Ehdr, e_shentsize),
	AT_SECTION_COUNT = offsetof(Elf64_Ehdr, e_shnum),
	AT_NAMES = offsetof(Elf64_Ehdr, e_shstrndx),
};

static void write_program(struct elf_writer *w)
{
	uint32_t text;

	elf_writer_init(w);
	elf_writer_build_id(w, 0x200, id, sizeof(id));
	text = elf_writer_code(w, ".text", 0x1010, 4096);
	elf_writer_section(w, &(struct elf_section_spec){ .name = ".data",
				      .flags = SHF_ALLOC | SHF_WRITE,
				      .address = 0x4000,
				      .bytes = "a secret",
				      .size = 8 });
	elf_writer_section(w, &(struct elf_section_spec){
				      .name = ".debug_info", .bytes = info, .size = sizeof(info) });
	elf_writer_section(w, &(struct elf_section_spec){ .name = ".debug_line",
				      .bytes = "lines",
				      .size = 5,
				      .flags = SHF_COMPRESSED });
	elf_writer_section(
		w, &(struct elf_section_spec){ .name = ".comment", .bytes = "GCC", .size = 3 });
	elf_writer_symbol(w, &(struct elf_symbol_spec){ "main", 0x1010, 32, .section = text });
	elf_writer_symbol(w,
		&(struct elf_symbol_spec){ "open", 0x1040, 32, .section = text, .dynamic = true });
}

/* Expects ERR; returns the new file if that is 0. */
static int keep(int in, int *ret_out)
{
	struct sandbox_result result;
	int out = memfd_create("out", MFD_CLOEXEC);
	int err = keep_debug_run(in, out, &result);

	assert_int_equal(result.error, err);
	if (err || !ret_out)
		close(out);
	else
		*ret_out = out;
	return err;
}

static bool holds(int fd, const char *text)
{
	struct stat st;
	bool found;
	void *bytes;

	assert_int_equal(fstat(fd, &st), 0);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(bytes != MAP_FAILED);
	found = memmem(bytes, (size_t)st.st_size, text, strlen(text)) != NULL;
	munmap(bytes, (size_t)st.st_size);
	return found;
}

static void test_names_stay_and_contents_go(void **)
{
	struct elf_image *before, *after;
	autoclose int in = -1, out = -1;
	struct elf_writer w;
	struct stat st;

	write_program(&w);
	in = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_true(holds(in, "a secret"));
	assert_int_equal(keep(in, &out), 0);
	assert_false(holds(out, "a secret"));
	assert_int_equal(fstat(out, &st), 0);
	assert_true(st.st_size < 4096); /* the code alone was larger */
	assert_int_equal(elf_image_open(in, &before), 0);
	assert_int_equal(elf_image_open(out, &after), 0);
	assert_int_equal(elf_image_section_count(after), elf_image_section_count(before));
	for (size_t i = 1; i < elf_image_section_count(before); i++) {
		struct elf_section a = elf_image_section(before, i),
				   b = elf_image_section(after, i);
		struct cursor x = elf_image_section_bytes(before, i),
			      y = elf_image_section_bytes(after, i);

		assert_string_equal(a.name, b.name);
		assert_int_equal(a.address, b.address);
		assert_int_equal(a.size, b.size);
		if (b.type == SHT_NOBITS)
			continue;
		assert_int_equal(a.type, b.type);
		assert_int_equal(cursor_left(&x), cursor_left(&y));
		assert_memory_equal(x.at, y.at, cursor_left(&x));
	}
	elf_image_destroy(before);
	elf_image_destroy(after);
}

static void test_what_stays(void **)
{
	static const char *const kept[] = { ".note.gnu.build-id", ".debug_info", ".debug_line",
		".symtab", ".strtab", ".dynsym", ".dynstr", ".shstrtab" };
	static const char *const gone[] = { ".text", ".data", ".comment" };
	autoclose int in = -1, out = -1;
	struct elf_section section;
	struct elf_image *image;
	struct elf_writer w;

	write_program(&w);
	in = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_int_equal(keep(in, &out), 0);
	assert_int_equal(elf_image_open(out, &image), 0);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		if (!elf_image_find(image, kept[i], &section) || section.type == SHT_NOBITS)
			fail_msg("%s is gone", kept[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
		assert_true(elf_image_find(image, gone[i], &section));
		assert_int_equal(section.type, SHT_NOBITS);
	}
	elf_image_destroy(image);
}

static void test_segments_are_where_they_were(void **)
{
	struct elf_image *before, *after;
	autoclose int in = -1, out = -1;
	struct build_id found;
	struct elf_writer w;

	write_program(&w);
	in = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_int_equal(keep(in, &out), 0);
	assert_int_equal(elf_image_open(in, &before), 0);
	assert_int_equal(elf_image_open(out, &after), 0);
	assert_int_equal(elf_image_segment_count(after), elf_image_segment_count(before));
	for (size_t i = 0; i < elf_image_segment_count(before); i++) {
		struct elf_segment a = elf_image_segment(before, i),
				   b = elf_image_segment(after, i);

		assert_int_equal(a.type, b.type);
		assert_int_equal(a.address, b.address);
		assert_int_equal(a.memory_size, b.memory_size);
		if (a.type == PT_LOAD)
			assert_int_equal(a.file_off, b.file_off);
		assert_int_equal(b.file_size, a.type == PT_NOTE ? a.file_size : 0);
	}
	/* By segment, as a reader without sections does. */
	assert_int_equal(build_id_read(out, &found), 0);
	assert_memory_equal(found.bytes, id, sizeof(id));
	elf_image_destroy(before);
	elf_image_destroy(after);
}

static void test_nothing_to_name(void **)
{
	autoclose int in = -1;
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_build_id(&w, 0x200, id, sizeof(id));
	elf_writer_code(&w, ".text", 0x1010, 64);
	in = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_int_equal(keep(in, NULL), -ENODATA);
}

static void test_no_section_headers(void **)
{
	autoclose int in = -1;
	struct elf_writer w;

	elf_writer_init(&w);
	w.no_section_headers = true;
	elf_writer_code(&w, ".text", 0x1010, 64);
	in = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_int_equal(keep(in, NULL), -ENODATA);
}

static void test_only_gopclntab(void **)
{
	autoclose int in = -1, out = -1;
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_section(&w, &(struct elf_section_spec){ .name = ".gopclntab",
				       .flags = SHF_ALLOC,
				       .address = 0x5000,
				       .bytes = "functions",
				       .size = 9 });
	in = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_int_equal(keep(in, &out), 0);
	assert_true(holds(out, "functions"));
}

/* ---- files that lie ------------------------------------------------------------------------- */

/* The program with SIZE bytes at OFF of its header replaced. */
static int broken_header(size_t off, const void *bytes, size_t size)
{
	autoclose int in = -1;
	struct elf_writer w;

	write_program(&w);
	elf_writer_finish(&w);
	memcpy(w.file.bytes + off, bytes, size);
	in = memory_file(w.file.bytes, w.file.size);
	elf_writer_deinit(&w);
	return keep(in, NULL);
}

static void test_no_elf_file(void **)
{
	autoclose int text = memory_file("#!/bin/sh\necho a text of more than a header's length, "
					 "which is sixty-four bytes\n",
			      80),
		      empty = memory_file("", 0);

	assert_int_equal(keep(text, NULL), -EBADMSG);
	assert_int_equal(keep(empty, NULL), -EBADMSG);
}

static void test_headers_that_lie(void **)
{
	const uint8_t class_32 = ELFCLASS32;
	const uint16_t relocatable = ET_REL, many = 0xff00, beyond = 60, narrow = 40;
	const uint64_t far = UINT64_MAX - 8;

	assert_int_equal(broken_header(AT_CLASS, &class_32, 1), -EOPNOTSUPP);
	assert_int_equal(broken_header(AT_TYPE, &relocatable, 2), -EOPNOTSUPP);
	assert_int_equal(broken_header(AT_SECTION_COUNT, &many, 2), -E2BIG);
	assert_int_equal(broken_header(AT_NAMES, &beyond, 2), -E2BIG);
	assert_int_equal(broken_header(AT_SECTION_BYTES, &narrow, 2), -EBADMSG);
	assert_int_equal(broken_header(offsetof(Elf64_Ehdr, e_shoff), &far, 8), -EBADMSG);
	assert_int_equal(broken_header(offsetof(Elf64_Ehdr, e_phoff), &far, 8), -EBADMSG);
}

/* The section called NAME, in the finished file of W. */
static Elf64_Shdr *header_of(struct elf_writer *w, const char *name)
{
	const Elf64_Ehdr *header = (const void *)w->file.bytes;
	Elf64_Shdr *sections = (void *)(w->file.bytes + header->e_shoff);
	const char *names = (const char *)w->file.bytes + sections[header->e_shstrndx].sh_offset;

	for (unsigned int i = 1; i < header->e_shnum; i++) {
		if (!strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	}
	fail_msg("no %s", name);
	return NULL;
}

static void test_section_behind_the_end(void **)
{
	autoclose int in = -1, out = -1;
	struct elf_section section;
	struct elf_image *image;
	struct elf_writer w;

	write_program(&w);
	elf_writer_finish(&w);
	header_of(&w, ".debug_info")->sh_offset = UINT64_MAX - 10;
	header_of(&w, ".symtab")->sh_size = UINT64_MAX;
	in = memory_file(w.file.bytes, w.file.size);
	elf_writer_deinit(&w);
	assert_int_equal(keep(in, &out), 0); /* the dynamic symbols are left */
	assert_int_equal(elf_image_open(out, &image), 0);
	assert_true(elf_image_find(image, ".debug_info", &section));
	assert_int_equal(section.type, SHT_NOBITS);
	elf_image_destroy(image);
}

/* Many sections that are the same gigabyte of a sparse file: nothing of it is written. */
static void test_more_than_the_limit(void **)
{
	autoclose int in = -1, out = memfd_create("out", MFD_CLOEXEC);
	struct sandbox_result result;
	struct elf_writer w;
	struct stat st;

	write_program(&w);
	elf_writer_finish(&w);
	header_of(&w, ".debug_info")->sh_size = KEEP_DEBUG_MAX_BYTES - 4096;
	header_of(&w, ".debug_line")->sh_size = 8192;
	in = memory_file(w.file.bytes, w.file.size);
	elf_writer_deinit(&w);
	assert_int_equal(ftruncate(in, INT64_C(1) << 30), 0);
	assert_int_equal(keep_debug_run(in, out, &result), -E2BIG);
	assert_int_equal(fstat(out, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void test_names_behind_the_end(void **)
{
	Elf64_Shdr *info_header;
	autoclose int in = -1;
	struct elf_writer w;

	write_program(&w);
	elf_writer_finish(&w);
	info_header = header_of(&w, ".debug_info");
	header_of(&w, ".debug_line")->sh_name = 1 << 20;
	info_header->sh_name = UINT32_MAX;
	in = memory_file(w.file.bytes, w.file.size);
	elf_writer_deinit(&w);
	assert_int_equal(keep(in, NULL), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_stay_and_contents_go),
		cmocka_unit_test(test_what_stays),
		cmocka_unit_test(test_segments_are_where_they_were),
		cmocka_unit_test(test_nothing_to_name),
		cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_only_gopclntab),
		cmocka_unit_test(test_no_elf_file),
		cmocka_unit_test(test_headers_that_lie),
		cmocka_unit_test(test_section_behind_the_end),
		cmocka_unit_test(test_more_than_the_limit),
		cmocka_unit_test(test_names_behind_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
