/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/elf/build_id.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/bytes.h"
#include "tests/unit/elf_writer.h"

static void put_note(struct buffer *b, const char *name, uint32_t name_size, uint32_t type,
	uint32_t content_size)
{
	put_u32(b, name_size);
	put_u32(b, content_size);
	put_u32(b, type);
	for (uint32_t i = 0; i < ((name_size + 3) & ~3u) && i < 64; i++)
		put_u8(b, i < strlen(name) ? (uint8_t)name[i] : 0);
	for (uint32_t i = 0; i < ((content_size + 3) & ~3u) && i < 64; i++)
		put_u8(b, i < content_size ? (uint8_t)(0xa0 + i) : 0);
}

/* A 64-bit file with one program header; NOTES follow it. */
static void put_elf64(struct buffer *b, uint32_t type, uint64_t note_size, uint64_t align,
	const struct buffer *notes)
{
	const Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1 };
	const Elf64_Phdr segment = { .p_type = type,
		.p_offset = sizeof(header) + sizeof(segment),
		.p_filesz = note_size,
		.p_align = align };

	buffer_append(b, &header, sizeof(header));
	buffer_append(b, &segment, sizeof(segment));
	buffer_append(b, notes->bytes, notes->size);
}

static int read_bytes(const struct buffer *file, struct build_id *ret_id)
{
	autoclose int fd = memory_file(file->bytes, file->size);

	assert_true(fd >= 0);
	return build_id_read(fd, ret_id);
}

/* The build ID of a file whose notes are NOTES (freed here), in a segment that claims SIZE bytes
 * (0: their real size).
 */
static int read_notes(struct buffer *notes, uint64_t size, uint64_t align, struct build_id *ret_id)
{
	autocall(buffer_deinit) struct buffer file;
	int err;

	buffer_init(&file, 1 << 20);
	put_elf64(&file, PT_NOTE, size ? size : notes->size, align, notes);
	err = read_bytes(&file, ret_id);
	buffer_deinit(notes);
	buffer_init(notes, 1 << 20);
	return err;
}

static void reads_a_build_id(void **state)
{
	autocall(buffer_deinit) struct buffer notes;
	struct build_id id;

	(void)state;
	buffer_init(&notes, 1 << 20);
	for (uint32_t size = 1; size <= BUILD_ID_MAX_BYTES; size++) {
		put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, size);
		assert_int_equal(read_notes(&notes, 0, 4, &id), 0);
		assert_int_equal(id.size, size);
		assert_int_equal(id.bytes[size - 1], 0xa0 + size - 1);
		assert_true(size == BUILD_ID_MAX_BYTES || id.bytes[size] == 0);
	}
}

static void reads_a_build_id_after_other_notes(void **state)
{
	autocall(buffer_deinit) struct buffer notes;
	struct build_id id;

	(void)state;
	buffer_init(&notes, 1 << 20);
	put_note(&notes, "Go\0", 4, 4, 30);
	put_note(&notes, "GNU", 4, NT_GNU_ABI_TAG, 16);
	put_note(&notes, "stapsdt", 8, 3, 21);
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 20);
	assert_int_equal(read_notes(&notes, 0, 4, &id), 0);
	assert_int_equal(id.size, 20);
	/* The last content's padding may be missing at the end of the file. */
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 18);
	notes.size -= 2;
	assert_int_equal(read_notes(&notes, 0, 4, &id), 0);
	assert_int_equal(id.size, 18);
}

/* On x86_64, GNU property notes are in a segment aligned to 8 bytes, and padded to that. */
static void pads_notes_to_8_where_the_segment_is(void **state)
{
	autocall(buffer_deinit) struct buffer notes;
	struct build_id id;

	(void)state;
	buffer_init(&notes, 1 << 20);
	put_note(&notes, "GNU", 4, NT_GNU_PROPERTY_TYPE_0, 12);
	put_u32(&notes, 0); /* 12 + 4 + 12 is not a multiple of 8 */
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 20);
	assert_int_equal(read_notes(&notes, 0, 8, &id), 0);
	assert_int_equal(id.size, 20);
}

static void reads_32_bit_files(void **state)
{
	const Elf32_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, 1 },
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 1 };
	const Elf32_Phdr segment = { .p_type = PT_NOTE,
		.p_offset = sizeof(header) + sizeof(segment),
		.p_filesz = 36,
		.p_align = 4 };
	autocall(buffer_deinit) struct buffer file;
	struct build_id id;

	(void)state;
	buffer_init(&file, 1 << 20);
	buffer_append(&file, &header, sizeof(header));
	buffer_append(&file, &segment, sizeof(segment));
	put_note(&file, "GNU", 4, NT_GNU_BUILD_ID, 20);
	assert_int_equal(read_bytes(&file, &id), 0);
	assert_int_equal(id.bytes[19], 0xa0 + 19);
}

static void other_notes_are_not_taken_for_a_build_id(void **state)
{
	autocall(buffer_deinit) struct buffer notes;
	struct build_id id = { .size = 99 };

	(void)state;
	buffer_init(&notes, 1 << 20);
	put_note(&notes, "GNX", 4, NT_GNU_BUILD_ID, 20);
	assert_int_equal(read_notes(&notes, 0, 4, &id), -ENOENT);
	put_note(&notes, "GNU", 3, NT_GNU_BUILD_ID, 20);
	assert_int_equal(read_notes(&notes, 0, 4, &id), -ENOENT);
	put_note(&notes, "GNUX", 5, NT_GNU_BUILD_ID, 20);
	assert_int_equal(read_notes(&notes, 0, 4, &id), -ENOENT);
	put_note(&notes, "GNU", 4, NT_GNU_ABI_TAG, 20);
	assert_int_equal(read_notes(&notes, 0, 4, &id), -ENOENT);
	assert_int_equal(read_notes(&notes, 100, 4, &id), -ENOENT);
	assert_int_equal(id.size, 99); /* untouched */
}

static void a_build_id_of_another_size_is_refused(void **state)
{
	autocall(buffer_deinit) struct buffer notes;
	struct build_id id;

	(void)state;
	buffer_init(&notes, 1 << 20);
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 0);
	assert_int_equal(read_notes(&notes, 0, 4, &id), -EOPNOTSUPP);
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, BUILD_ID_MAX_BYTES + 1);
	assert_int_equal(read_notes(&notes, 0, 4, &id), -EOPNOTSUPP);
}

static void sizes_beyond_the_end_stop_the_search(void **state)
{
	static const uint32_t sizes[] = { 0x1000, 0x7fffffff, 0xfffffffc, 0xffffffff };
	autocall(buffer_deinit) struct buffer notes;
	struct build_id id;

	(void)state;
	buffer_init(&notes, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, sizes[i]);
		assert_int_equal(read_notes(&notes, 0, 4, &id), -ENOENT);
		put_note(&notes, "GNU", sizes[i], NT_GNU_BUILD_ID, 20);
		assert_int_equal(read_notes(&notes, 0, 4, &id), -ENOENT);
	}
	/* A segment that claims more than the file has is read as far as it goes. */
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 20);
	assert_int_equal(read_notes(&notes, UINT64_MAX, 4, &id), 0);
}

static void each_truncated_file_is_refused(void **state)
{
	autocall(buffer_deinit) struct buffer notes, file;
	struct build_id id;
	size_t whole;

	(void)state;
	buffer_init(&notes, 1 << 20);
	buffer_init(&file, 1 << 20);
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 20);
	put_elf64(&file, PT_NOTE, notes.size, 4, &notes);
	whole = file.size;
	for (file.size = 0; file.size < whole; file.size++)
		assert_true(read_bytes(&file, &id) < 0);
	assert_int_equal(read_bytes(&file, &id), 0);
}

static void broken_headers_are_refused(void **state)
{
	autocall(buffer_deinit) struct buffer notes, file;
	struct build_id id;
	Elf64_Ehdr *header;

	(void)state;
	buffer_init(&notes, 1 << 20);
	buffer_init(&file, 1 << 20);
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 20);
	put_elf64(&file, PT_NOTE, notes.size, 4, &notes);
	header = (Elf64_Ehdr *)file.bytes;
	header->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(read_bytes(&file, &id), -EOPNOTSUPP);
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_CLASS] = 3;
	assert_int_equal(read_bytes(&file, &id), -EOPNOTSUPP);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_MAG0] = '#';
	assert_int_equal(read_bytes(&file, &id), -EBADMSG);
	header->e_ident[EI_MAG0] = 0x7f;
	header->e_phentsize = 8;
	assert_int_equal(read_bytes(&file, &id), -EBADMSG);
	header->e_phentsize = sizeof(Elf64_Phdr);
	header->e_phnum = 0xffff;
	assert_int_equal(read_bytes(&file, &id), -E2BIG);
	header->e_phnum = 0;
	assert_int_equal(read_bytes(&file, &id), -ENOENT);
	header->e_phnum = 1;
	header->e_phoff = UINT64_MAX - 8;
	assert_int_equal(read_bytes(&file, &id), -EBADMSG);
}

static void a_file_without_notes_has_none(void **state)
{
	autocall(buffer_deinit) struct buffer notes, file;
	struct build_id id;

	(void)state;
	buffer_init(&notes, 1 << 20);
	buffer_init(&file, 1 << 20);
	put_note(&notes, "GNU", 4, NT_GNU_BUILD_ID, 20);
	put_elf64(&file, PT_LOAD, notes.size, 4, &notes);
	assert_int_equal(read_bytes(&file, &id), -ENOENT);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_build_id),
		cmocka_unit_test(reads_a_build_id_after_other_notes),
		cmocka_unit_test(pads_notes_to_8_where_the_segment_is),
		cmocka_unit_test(reads_32_bit_files),
		cmocka_unit_test(other_notes_are_not_taken_for_a_build_id),
		cmocka_unit_test(a_build_id_of_another_size_is_refused),
		cmocka_unit_test(sizes_beyond_the_end_stop_the_search),
		cmocka_unit_test(each_truncated_file_is_refused),
		cmocka_unit_test(broken_headers_are_refused),
		cmocka_unit_test(a_file_without_notes_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
