/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "tests/unit/bytes.h"
#include "tests/unit/elf_writer.h"

static const char text[] =
	"a text that is long enough to be worth compressing: aaaaaaaaaaaaaaaaaaaaa";

static struct elf_image *open_writer(struct elf_writer *w)
{
	autoclose int fd = elf_writer_file(w);
	struct elf_image *image = NULL;

	assert_int_equal(elf_image_open(fd, &image), 0);
	elf_writer_deinit(w);
	return image;
}

static int open_bytes(const void *bytes, size_t size)
{
	autoclose int fd = memory_file(bytes, size);
	struct elf_image *image = NULL;
	int err = elf_image_open(fd, &image);

	elf_image_destroy(image);
	return err;
}

static void add_section(struct elf_writer *w, const char *name, uint64_t flags, struct buffer *b)
{
	elf_writer_section(
		w, &(struct elf_section_spec){
			   .name = name, .flags = flags, .bytes = b->bytes, .size = b->size });
	buffer_deinit(b);
}

static size_t compress_text(bool zstd, uint8_t *out, size_t size)
{
	struct libdeflate_compressor *c;

	if (zstd)
		return ZSTD_compress(out, size, text, sizeof(text), 3);
	c = libdeflate_alloc_compressor(6);
	size = libdeflate_zlib_compress(c, text, sizeof(text), out, size);
	libdeflate_free_compressor(c);
	return size;
}

static struct buffer compressed(uint32_t method, uint64_t claimed_size)
{
	uint8_t out[256];
	size_t size = compress_text(method == 2, out, sizeof(out));
	struct buffer b;

	buffer_init(&b, 4096);
	put_u32(&b, method);
	put_u32(&b, 0);
	put_u64(&b, claimed_size);
	put_u64(&b, 1);
	buffer_append(&b, out, size);
	return b;
}

static void assert_text(struct elf_image *image, const char *name)
{
	struct cursor c = elf_image_bytes(image, name);

	assert_int_equal(cursor_left(&c), sizeof(text));
	assert_memory_equal(c.at, text, sizeof(text));
}

static void test_sections_and_segments(void **)
{
	struct elf_section section;
	struct elf_image *image;
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", 0x401010, 64);
	image = open_writer(&w);
	assert_int_equal(elf_image_machine(image), EM_X86_64);
	assert_int_equal(elf_image_type(image), ET_DYN);
	assert_int_equal(elf_image_segment_count(image), 1);
	assert_int_equal(elf_image_segment(image, 0).address, 0x401010);
	assert_int_equal(elf_image_segment(image, 0).flags, PF_R | PF_X);
	assert_int_equal(elf_image_segment(image, 7).type, PT_NULL);
	assert_true(elf_image_find(image, ".text", &section));
	assert_int_equal(section.address, 0x401010);
	assert_int_equal(section.number, 1);
	assert_string_equal(elf_image_section(image, 1).name, ".text");
	assert_string_equal(elf_image_section(image, 99).name, "");
	assert_false(elf_image_find(image, ".data", &section));
	elf_image_destroy(image);
}

static void test_bytes_at_address(void **)
{
	struct elf_image *image;
	struct elf_writer w;
	struct cursor c;

	elf_writer_init(&w);
	elf_writer_section(&w, &(struct elf_section_spec){ .name = ".rodata",
				       .flags = SHF_ALLOC,
				       .address = 0x2004,
				       .bytes = "0123456789",
				       .size = 10 });
	image = open_writer(&w);
	c = elf_image_at(image, 0x2006, 4);
	assert_memory_equal(cursor_bytes(&c, 4), "2345", 4);
	c = elf_image_from(image, 0x2006);
	assert_int_equal(cursor_left(&c), 8);
	assert_true(elf_image_at(image, 0x2006, 9).bad);
	assert_true(elf_image_at(image, 0x2003, 1).bad);
	assert_true(elf_image_from(image, 0x200e).bad);
	assert_true(elf_image_at(image, UINT64_MAX, 2).bad);
	elf_image_destroy(image);
}

static void test_compressed_sections(void **)
{
	struct buffer zlib = compressed(1, sizeof(text)), zstd = compressed(2, sizeof(text));
	struct buffer old, packed = compressed(1, sizeof(text));
	struct elf_image *image;
	struct elf_writer w;

	buffer_init(&old, 4096);
	buffer_string(&old, "ZLIB");
	put_u64(&old, __builtin_bswap64(sizeof(text)));
	buffer_append(&old, packed.bytes + 24, packed.size - 24);
	buffer_deinit(&packed);
	elf_writer_init(&w);
	add_section(&w, ".debug_info", SHF_COMPRESSED, &zlib);
	add_section(&w, ".debug_str", SHF_COMPRESSED, &zstd);
	add_section(&w, ".zdebug_line", 0, &old);
	image = open_writer(&w);
	assert_text(image, ".debug_info");
	assert_text(image, ".debug_info");
	assert_text(image, ".debug_str");
	assert_text(image, ".debug_line");
	assert_text(image, ".zdebug_line");
	elf_image_destroy(image);
}

static void test_compressed_section_lies_about_its_size(void **)
{
	static const uint64_t sizes[] = { 0, 1, sizeof(text) - 1, sizeof(text) + 1,
		UINT64_C(1) << 31, UINT64_MAX };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		struct buffer b = compressed(1 + i % 2, sizes[i / 2]);
		struct elf_image *image;
		struct elf_writer w;
		struct cursor c;

		elf_writer_init(&w);
		add_section(&w, ".debug_info", SHF_COMPRESSED, &b);
		image = open_writer(&w);
		c = elf_image_bytes(image, ".debug_info");
		assert_int_equal(cursor_left(&c), 0);
		elf_image_destroy(image);
	}
}

static void test_unknown_compression_is_empty(void **)
{
	struct buffer b = compressed(3, sizeof(text));
	struct elf_image *image;
	struct elf_writer w;
	struct cursor c;

	elf_writer_init(&w);
	add_section(&w, ".debug_info", SHF_COMPRESSED, &b);
	image = open_writer(&w);
	c = elf_image_bytes(image, ".debug_info");
	assert_int_equal(cursor_left(&c), 0);
	elf_image_destroy(image);
}

static void test_nobits_and_section_past_the_file(void **)
{
	struct elf_image *image;
	struct elf_writer w;
	struct cursor c;

	elf_writer_init(&w);
	elf_writer_section(
		&w, &(struct elf_section_spec){ .name = ".bss", .type = SHT_NOBITS, .size = 16 });
	elf_writer_code(&w, ".text", 0x1000, 16);
	w.sections[2].sh_size = 1 << 20;
	image = open_writer(&w);
	c = elf_image_bytes(image, ".bss");
	assert_int_equal(cursor_left(&c), 0);
	c = elf_image_bytes(image, ".text");
	assert_int_equal(cursor_left(&c), 0);
	c = elf_image_section_bytes(image, 1000);
	assert_int_equal(cursor_left(&c), 0);
	elf_image_destroy(image);
}

static void test_build_id(void **)
{
	struct build_id id = { 0 };
	struct elf_image *image;
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_build_id(&w, 0x300, "\1\2\3\4\5", 5);
	image = open_writer(&w);
	elf_image_build_id(image, &id);
	assert_int_equal(id.size, 5);
	assert_memory_equal(id.bytes, "\1\2\3\4\5", 5);
	elf_image_destroy(image);
}

static void test_build_id_too_long_is_none(void **)
{
	struct build_id id = { .size = 3 };
	struct elf_image *image;
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_build_id(&w, 0x300, "0123456789012345678901234567890", 31);
	image = open_writer(&w);
	elf_image_build_id(image, &id);
	assert_int_equal(id.size, 0);
	elf_image_destroy(image);
}

static void put_rela(struct buffer *b, uint64_t address, uint32_t type, uint64_t addend)
{
	put_u64(b, address);
	put_u64(b, type);
	put_u64(b, addend);
}

/* .rela.dyn at 0x1000, unsorted; the words at 0x2000; the dynamic section at 0x3000. */
static struct elf_image *open_relocated(void)
{
	struct buffer rela, words, dynamic;
	struct elf_writer w;

	buffer_init(&rela, 4096);
	buffer_init(&words, 4096);
	buffer_init(&dynamic, 4096);
	put_rela(&rela, 0x2008, R_X86_64_RELATIVE, 0x1234);
	put_rela(&rela, 0x2000, R_X86_64_RELATIVE, 0x5678);
	put_rela(&rela, 0x2010, R_X86_64_64, 0x9999);
	put_u64(&words, 0);
	put_u64(&words, 1);
	put_u64(&words, 77);
	put_u64(&dynamic, DT_RELA);
	put_u64(&dynamic, 0x1000);
	put_u64(&dynamic, DT_RELASZ);
	put_u64(&dynamic, rela.size);
	put_u64(&dynamic, DT_NULL);
	put_u64(&dynamic, 0);
	elf_writer_init(&w);
	for (int i = 0; i < 3; i++) {
		struct buffer *b = i == 0 ? &rela : i == 1 ? &words : &dynamic;
		uint32_t number =
			elf_writer_section(&w, &(struct elf_section_spec){ .name = "x",
						       .flags = SHF_ALLOC,
						       .address = 0x1000 * (uint64_t)(i + 1),
						       .bytes = b->bytes,
						       .size = b->size });

		if (i == 2)
			elf_writer_segment(&w, &(Elf64_Phdr){ .p_type = PT_DYNAMIC,
						       .p_offset = w.sections[number].sh_offset,
						       .p_filesz = b->size });
		buffer_deinit(b);
	}
	return open_writer(&w);
}

static void test_word_after_relocation(void **)
{
	struct elf_image *image = open_relocated();
	uint64_t word = 0;

	assert_true(elf_image_word(image, 0x2000, &word));
	assert_int_equal(word, 0x5678);
	assert_true(elf_image_word(image, 0x2008, &word));
	assert_int_equal(word, 0x1234);
	assert_true(elf_image_word(image, 0x2010, &word));
	assert_int_equal(word, 77);
	assert_false(elf_image_word(image, 0x2018, &word));
	elf_image_destroy(image);
}

static void test_foreign_files_are_refused(void **)
{
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", 0x1000, 16);
	elf_writer_finish(&w);
	assert_int_equal(open_bytes("", 0), -EBADMSG);
	assert_int_equal(open_bytes("#!/bin/sh\necho hello\n", 21), -EBADMSG);
	assert_int_equal(open_bytes(w.file.bytes, 20), -EBADMSG);
	w.file.bytes[EI_CLASS] = ELFCLASS32;
	assert_int_equal(open_bytes(w.file.bytes, w.file.size), -EOPNOTSUPP);
	w.file.bytes[EI_CLASS] = ELFCLASS64;
	w.file.bytes[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(open_bytes(w.file.bytes, w.file.size), -EOPNOTSUPP);
	w.file.bytes[EI_DATA] = ELFDATA2LSB;
	w.file.bytes[offsetof(Elf64_Ehdr, e_machine)] = EM_386;
	assert_int_equal(open_bytes(w.file.bytes, w.file.size), -EOPNOTSUPP);
	w.file.bytes[offsetof(Elf64_Ehdr, e_machine)] = EM_X86_64;
	w.file.bytes[offsetof(Elf64_Ehdr, e_type)] = ET_CORE;
	assert_int_equal(open_bytes(w.file.bytes, w.file.size), -EOPNOTSUPP);
	elf_writer_deinit(&w);
}

/* ---- relocatable files ---------------------------------------------------------------------- */

struct object {
	struct elf_writer w;
	uint32_t text, init, cold, data;
};

static uint32_t object_section(
	struct elf_writer *w, const char *name, uint64_t flags, uint64_t size, uint64_t align)
{
	uint32_t number = elf_writer_section(
		w, &(struct elf_section_spec){
			   .name = name, .flags = SHF_ALLOC | flags, .size = size });

	w->sections[number].sh_addralign = align;
	return number;
}

static void object_init(struct object *o)
{
	elf_writer_init(&o->w);
	o->w.type = ET_REL;
	o->w.no_segments = true;
	o->init = object_section(&o->w, ".init.text", SHF_EXECINSTR, 0x20, 16);
	o->data = object_section(&o->w, ".data", SHF_WRITE, 0x40, 32);
	o->text = object_section(&o->w, ".text", SHF_EXECINSTR, 0x31, 16);
	o->cold = object_section(&o->w, ".text.cold", SHF_EXECINSTR, 0x11, 4);
}

/* Adds NAME with the words, and its relocations, the number of which is COUNT. */
static void object_words(struct object *o, const char *name, const uint64_t words[2],
	const Elf64_Rela *relocations, size_t count, uint32_t symbols)
{
	uint32_t number = elf_writer_section(
		&o->w, &(struct elf_section_spec){
			       .name = name, .bytes = words, .size = 2 * sizeof(*words) });

	elf_writer_section(&o->w, &(struct elf_section_spec){
					  .name = ".rela",
					  .type = SHT_RELA,
					  .bytes = relocations,
					  .size = count * sizeof(*relocations),
					  .link = symbols,
					  .info = number,
					  .entry_size = sizeof(*relocations),
				  });
}

static uint64_t address_of(struct elf_image *image, const char *name)
{
	struct elf_section section;

	assert_true(elf_image_find(image, name, &section));
	return section.address;
}

/* The code first, in the file's order; then what a module needs only once; then data. */
static void test_sections_of_objects_have_addresses(void **)
{
	struct elf_image *image;
	struct object o;

	object_init(&o);
	image = open_writer(&o.w);
	assert_int_equal(elf_image_type(image), ET_REL);
	assert_int_equal(address_of(image, ".text"), 0);
	assert_int_equal(address_of(image, ".text.cold"), 0x34);
	assert_int_equal(address_of(image, ".init.text"), 0x50);
	assert_int_equal(address_of(image, ".data"), 0x80);
	assert_int_equal(elf_image_segment_count(image), 1);
	assert_int_equal(elf_image_segment(image, 0).memory_size, 0x70);
	assert_true(elf_image_at(image, 0, 4).bad);
	elf_image_destroy(image);
}

/* As in many of Debian's arm64 modules: what the kernel fills is before .text in the file. */
static void test_code_of_arm64_modules_starts_at_zero(void **)
{
	struct elf_image *image;
	struct elf_writer w;

	elf_writer_init(&w);
	w.type = ET_REL;
	w.no_segments = true;
	object_section(&w, ".plt", SHF_EXECINSTR, 1, 1);
	object_section(&w, ".init.plt", 0, 1, 1);
	object_section(&w, ".text.ftrace_trampoline", SHF_EXECINSTR, 1, 1);
	object_section(&w, ".text", SHF_EXECINSTR, 0x40, 32);
	image = open_writer(&w);
	assert_int_equal(address_of(image, ".text"), 0);
	assert_int_equal(address_of(image, ".plt"), 0x40);
	assert_int_equal(elf_image_segment(image, 0).memory_size, 0x40);
	elf_image_destroy(image);
}

static void test_impossible_alignment(void **)
{
	struct object o;

	object_init(&o);
	o.w.sections[o.cold].sh_addralign = 3;
	elf_writer_finish(&o.w);
	assert_int_equal(open_bytes(o.w.file.bytes, o.w.file.size), -EBADMSG);
	elf_writer_deinit(&o.w);
}

static void test_huge_sections_of_objects(void **)
{
	struct object o;

	object_init(&o);
	o.w.sections[o.cold].sh_size = UINT64_MAX - 8;
	elf_writer_finish(&o.w);
	assert_int_equal(open_bytes(o.w.file.bytes, o.w.file.size), -E2BIG);
	elf_writer_deinit(&o.w);
}

/* A table of symbols that the writer does not make: of .text.cold + 4, and an undefined one. */
static uint32_t object_symbols(struct object *o)
{
	Elf64_Sym symbols[3] = {
		[1] = { .st_value = 4, .st_shndx = (uint16_t)o->cold },
		[2] = { .st_shndx = SHN_UNDEF },
	};

	return elf_writer_section(&o->w, &(struct elf_section_spec){
						 .name = ".symbols",
						 .type = SHT_SYMTAB,
						 .bytes = symbols,
						 .size = sizeof(symbols),
						 .entry_size = sizeof(*symbols),
					 });
}

static void assert_peeked(
	struct elf_image *image, const char *name, const char *expected, size_t size)
{
	const struct cursor section = elf_image_bytes(image, name);
	const size_t end = (size_t)(section.end - section.start);
	char bytes[8] = { 0 };

	assert_int_equal(elf_image_peek(image, &section, end - 5, bytes, sizeof(bytes)), 5);
	assert_memory_equal(bytes, expected + size - 5, 5);
	assert_int_equal(elf_image_peek(image, &section, 2, bytes, 3), 3);
	assert_memory_equal(bytes, expected + 2, 3);
	assert_memory_equal(bytes + 3, expected + size - 2, 2);
	assert_int_equal(elf_image_peek(image, &section, end, bytes, 1), 0);
	assert_int_equal(elf_image_peek(image, &section, UINT64_MAX, bytes, 1), 0);
}

/* The bytes come from the mapping, the file, or what was decompressed. */
static void test_scattered_bytes(void **)
{
	static const char other[1 << 16];
	autoclose int other_fd = memory_file(other, sizeof(other));
	struct buffer packed = compressed(1, sizeof(text));
	struct elf_image *image;
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_writer_section(&w,
		&(struct elf_section_spec){ .name = ".plain", .bytes = "0123456789", .size = 10 });
	add_section(&w, ".packed", SHF_COMPRESSED, &packed);
	fd = elf_writer_file(&w);
	assert_int_equal(elf_image_open(fd, &image), 0);
	elf_writer_deinit(&w);
	assert_peeked(image, ".plain", "0123456789", 10);
	assert_peeked(image, ".packed", text, sizeof(text));
	elf_image_peek_in(image, fd);
	assert_peeked(image, ".plain", "0123456789", 10);
	assert_peeked(image, ".packed", text, sizeof(text));
	elf_image_peek_in(image, other_fd);
	assert_peeked(image, ".plain", other, 10);
	assert_peeked(image, ".packed", text, sizeof(text));
	close(fd);
	elf_image_peek_in(image, fd); /* cannot be read: the mapping can */
	assert_peeked(image, ".plain", "0123456789", 10);
	elf_image_destroy(image);
}

static void test_relocations(void **)
{
	static const uint64_t before[2] = { 0x1111111111111111, 0x2222222222222222 };
	const Elf64_Rela relocations[] = {
		{ .r_offset = 0, .r_info = ELF64_R_INFO(1, R_X86_64_64), .r_addend = 2 },
		{ .r_offset = 8, .r_info = ELF64_R_INFO(1, R_X86_64_PC32), .r_addend = 0 },
		/* Not of the section, of no kind that there is, of no symbol. */
		{ .r_offset = 15, .r_info = ELF64_R_INFO(1, R_X86_64_32), .r_addend = 0 },
		{ .r_offset = UINT64_MAX, .r_info = ELF64_R_INFO(1, R_X86_64_64), .r_addend = 0 },
		{ .r_offset = 12, .r_info = ELF64_R_INFO(1, 250), .r_addend = 0 },
	};
	struct elf_image *image;
	uint64_t words[2];
	struct cursor c;
	struct object o;

	object_init(&o);
	object_words(&o, ".debug_words", before, relocations, 5, object_symbols(&o));
	image = open_writer(&o.w);
	c = elf_image_bytes(image, ".debug_words");
	words[0] = cursor_u64(&c);
	words[1] = cursor_u64(&c);
	assert_int_equal(words[0], 0x34 + 4 + 2);
	assert_int_equal(words[1], 0x2222222200000000 | (0x34 + 4 - 8));
	assert_int_equal(cursor_left(&c), 0);
	elf_image_destroy(image);
}

/* What refers to another file's symbol must not look like this file's first function. */
static void test_relocations_of_unknown_symbols(void **)
{
	static const uint64_t before[2];
	const Elf64_Rela relocations[] = {
		{ .r_offset = 0, .r_info = ELF64_R_INFO(2, R_X86_64_64), .r_addend = 8 },
		{ .r_offset = 8, .r_info = ELF64_R_INFO(3, R_X86_64_64), .r_addend = 8 },
	};
	struct elf_image *image;
	struct cursor c;
	struct object o;

	object_init(&o);
	object_words(&o, ".debug_words", before, relocations, 2, object_symbols(&o));
	image = open_writer(&o.w);
	c = elf_image_bytes(image, ".debug_words");
	assert_int_equal(cursor_u64(&c), UINT64_MAX);
	assert_int_equal(cursor_u64(&c), UINT64_MAX);
	elf_image_destroy(image);
}

/* vmlinux keeps the relocations that the linker has applied. */
static void test_linked_files_are_not_relocated(void **)
{
	static const uint64_t before[2] = { 1, 2 };
	const Elf64_Rela relocations[] = {
		{ .r_offset = 0, .r_info = ELF64_R_INFO(1, R_X86_64_64), .r_addend = 2 },
	};
	struct elf_image *image;
	struct cursor c;
	struct object o;

	object_init(&o);
	o.w.type = ET_EXEC;
	object_words(&o, ".debug_words", before, relocations, 1, object_symbols(&o));
	image = open_writer(&o.w);
	c = elf_image_bytes(image, ".debug_words");
	assert_int_equal(cursor_u64(&c), 1);
	elf_image_destroy(image);
}

/* ---- odd files ------------------------------------------------------------------------------ */

static void test_without_section_headers(void **)
{
	struct elf_image *image;
	struct elf_writer w;
	struct cursor c;

	elf_writer_init(&w);
	w.no_section_headers = true;
	elf_writer_code(&w, ".text", 0x1000, 16);
	image = open_writer(&w);
	assert_int_equal(elf_image_section_count(image), 0);
	c = elf_image_at(image, 0x1000, 16);
	assert_int_equal(cursor_left(&c), 16);
	elf_image_destroy(image);
}

/* Reads all there is to read. */
static void walk(struct elf_image *image)
{
	struct build_id id;
	uint64_t word;

	for (size_t i = 0; i < elf_image_section_count(image); i++) {
		struct cursor c = elf_image_section_bytes(image, i);

		while (cursor_left(&c))
			cursor_u8(&c);
	}
	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		struct cursor c = elf_image_from(image, elf_image_segment(image, i).address);

		while (cursor_left(&c))
			cursor_u8(&c);
	}
	elf_image_bytes(image, ".debug_info");
	elf_image_build_id(image, &id);
	elf_image_word(image, 0x1000, &word);
}

static void test_truncated_or_flipped_anywhere(void **)
{
	struct buffer b = compressed(1, sizeof(text));
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_build_id(&w, 0x300, "\1\2\3\4\5", 5);
	add_section(&w, ".debug_info", SHF_COMPRESSED, &b);
	elf_writer_symbol(&w, &(struct elf_symbol_spec){ .name = "main", .address = 0x1000 });
	elf_writer_finish(&w);
	for (size_t i = 0; i < 2 * w.file.size; i++) {
		size_t at = i / 2, size = i % 2 ? at : w.file.size;
		struct elf_image *image = NULL;
		autoclose int fd = -1;

		w.file.bytes[at] ^= 0xff;
		fd = memory_file(w.file.bytes, size);
		w.file.bytes[at] ^= 0xff;
		if (!elf_image_open(fd, &image))
			walk(image);
		elf_image_destroy(image);
	}
	elf_writer_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections_and_segments),
		cmocka_unit_test(test_bytes_at_address),
		cmocka_unit_test(test_compressed_sections),
		cmocka_unit_test(test_compressed_section_lies_about_its_size),
		cmocka_unit_test(test_unknown_compression_is_empty),
		cmocka_unit_test(test_nobits_and_section_past_the_file),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_build_id_too_long_is_none),
		cmocka_unit_test(test_word_after_relocation),
		cmocka_unit_test(test_foreign_files_are_refused),
		cmocka_unit_test(test_sections_of_objects_have_addresses),
		cmocka_unit_test(test_code_of_arm64_modules_starts_at_zero),
		cmocka_unit_test(test_impossible_alignment),
		cmocka_unit_test(test_huge_sections_of_objects),
		cmocka_unit_test(test_scattered_bytes),
		cmocka_unit_test(test_relocations),
		cmocka_unit_test(test_relocations_of_unknown_symbols),
		cmocka_unit_test(test_linked_files_are_not_relocated),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_truncated_or_flipped_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
