/* SPDX-License-Identifier: Apache-2.0 */
/* The stubs of the procedure linkage table as a source of the index. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "tests/unit/small_index.h"

enum {
	GOT = TEXT + 0x3000,
	PLT_SECTION = 1,
	/* The writer puts .dynstr and .dynsym after the added sections. */
	DYNSYM_BEHIND_TWO = 4,
};

struct relocation {
	uint64_t slot;
	uint32_t type, symbol;
};

struct file {
	struct elf_writer elf;
	struct buffer code;
};

static void begin(struct file *f)
{
	elf_writer_init(&f->elf);
	buffer_init(&f->code, 4096);
}

static void import(struct file *f, const char *name)
{
	elf_writer_symbol(&f->elf,
		&(struct elf_symbol_spec){ .name = name, .bind = STB_GLOBAL, .dynamic = true });
}

static void put(struct file *f, const void *bytes, size_t size)
{
	assert_int_equal(buffer_append(&f->code, bytes, size), 0);
}

/* jmp *SLOT(%rip), behind PREFIX bytes, filled up to SIZE bytes. */
static void put_jump(
	struct file *f, const void *prefix, size_t prefix_size, uint64_t slot, size_t size)
{
	size_t begin = f->code.size;
	int32_t displacement;

	put(f, prefix, prefix_size);
	put(f, "\xff\x25", 2);
	displacement = (int32_t)(slot - (TEXT + f->code.size + 4));
	put(f, &displacement, sizeof(displacement));
	while (f->code.size < begin + size)
		put(f, "\x90", 1);
}

/* The index that PLT_READ makes of the code in a section NAME with these relocations. */
static struct index *index_of(struct file *f, const char *name, uint64_t entry_size,
	const struct relocation *relocations, size_t count)
{
	struct index_writer *w = create();
	struct elf_image *image = NULL;
	Elf64_Rela rela[8];
	int fd;

	for (size_t i = 0; i < count; i++)
		rela[i] = (Elf64_Rela){ .r_offset = relocations[i].slot,
			.r_info = ELF64_R_INFO(
				(uint64_t)relocations[i].symbol, relocations[i].type) };
	elf_writer_section(&f->elf, &(struct elf_section_spec){ .name = name,
					    .flags = SHF_ALLOC | SHF_EXECINSTR,
					    .address = TEXT,
					    .bytes = f->code.bytes,
					    .size = f->code.size,
					    .entry_size = entry_size });
	elf_writer_section(&f->elf, &(struct elf_section_spec){ .name = ".rela.plt",
					    .type = SHT_RELA,
					    .flags = SHF_ALLOC,
					    .address = TEXT + 0x2000,
					    .bytes = rela,
					    .size = count * sizeof(*rela),
					    .link = DYNSYM_BEHIND_TWO });
	fd = elf_writer_file(&f->elf);
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(plt_read(image, w), 0);
	elf_image_destroy(image);
	elf_writer_deinit(&f->elf);
	buffer_deinit(&f->code);
	close(fd);
	return finish(w);
}

static const struct relocation two[] = {
	{ GOT + 8, R_X86_64_JUMP_SLOT, 2 },
	{ GOT, R_X86_64_JUMP_SLOT, 1 },
};

static void stubs_are_called_as_what_they_jump_to(void **)
{
	static const uint8_t header[16] = { 0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25 };
	struct index *index;
	struct file f;

	begin(&f);
	import(&f, "puts");
	import(&f, "_ZN3foo3barEi");
	put(&f, header, sizeof(header));
	put_jump(&f, "", 0, GOT, 16);
	put_jump(&f, "", 0, GOT + 8, 16);
	index = index_of(&f, ".plt", 16, two, 2);
	assert_string_equal(names(index, 0), "");
	assert_string_equal(names(index, 16), "puts@plt");
	assert_string_equal(names(index, 31), "puts@plt");
	assert_string_equal(names(index, 32), "foo::bar(int)@plt");
	assert_string_equal(names(index, 48), "");
	index_destroy(index);
}

static void stubs_with_branch_tracking(void **)
{
	struct index *index;
	struct file f;

	begin(&f);
	import(&f, "puts");
	import(&f, "exit");
	put_jump(&f, "\xf3\x0f\x1e\xfa", 4, GOT + 8, 16);
	put_jump(&f, "\xf3\x0f\x1e\xfa\xf2", 5, GOT, 16);
	index = index_of(&f, ".plt.sec", 16, two, 2);
	assert_string_equal(names(index, 4), "exit@plt");
	assert_string_equal(names(index, 16), "puts@plt");
	index_destroy(index);
}

static void stubs_of_eight_bytes(void **)
{
	static const struct relocation slots[] = {
		{ GOT, R_X86_64_GLOB_DAT, 1 },
		{ GOT + 8, R_X86_64_GLOB_DAT, 2 },
	};
	struct index *index;
	struct file f;

	begin(&f);
	import(&f, "puts");
	import(&f, "exit");
	put_jump(&f, "", 0, GOT, 8);
	put_jump(&f, "", 0, GOT + 8, 8);
	index = index_of(&f, ".plt.got", 8, slots, 2);
	assert_string_equal(names(index, 7), "puts@plt");
	assert_string_equal(names(index, 8), "exit@plt");
	assert_string_equal(names(index, 16), "");
	index_destroy(index);
}

/* The size of the section's entries may be 0, as some linkers leave it. */
static void stubs_of_eight_bytes_in_a_section_that_does_not_say_so(void **)
{
	static const struct relocation slots[] = {
		{ GOT, R_X86_64_GLOB_DAT, 1 },
		{ GOT + 8, R_X86_64_GLOB_DAT, 2 },
	};
	struct index *index;
	struct file f;

	begin(&f);
	import(&f, "puts");
	import(&f, "exit");
	put_jump(&f, "", 0, GOT, 8);
	put_jump(&f, "\xf2", 1, GOT + 8, 8);
	put_jump(&f, "\xf3\x0f\x1e\xfa", 4, GOT, 16); /* does not fit into 8 */
	index = index_of(&f, ".plt.got", 0, slots, 2);
	assert_string_equal(names(index, 7), "puts@plt");
	assert_string_equal(names(index, 8), "exit@plt");
	assert_string_equal(names(index, 15), "exit@plt");
	assert_string_equal(names(index, 16), "puts@plt");
	assert_string_equal(names(index, 31), "puts@plt");
	assert_string_equal(names(index, 32), "");
	index_destroy(index);
	/* In .plt the rest of an entry is for lazy binding. */
	begin(&f);
	import(&f, "puts");
	put_jump(&f, "", 0, GOT, 16);
	index = index_of(&f, ".plt", 0, slots, 1);
	assert_string_equal(names(index, 15), "puts@plt");
	index_destroy(index);
}

static void stubs_of_arm64(void **)
{
	/* bti c; adrp x16, +2 pages; ldr x17, [x16, #0x18]; add x16, x16, #0x18; br x17 */
	static const uint32_t code[] = { 0xd503201f, 0xd503245f, 0xd0000010, 0xf9400e11, 0x91006210,
		0xd61f0220, 0xd0000010, 0xf9400e11 };
	static const struct relocation slot = { TEXT + 0x2018, R_AARCH64_JUMP_SLOT, 1 };
	struct index *index;
	struct file f;

	begin(&f);
	f.elf.machine = EM_AARCH64;
	import(&f, "puts");
	put(&f, code, sizeof(code));
	index = index_of(&f, ".plt", 16, &slot, 1);
	assert_string_equal(names(index, 0), "");
	assert_string_equal(names(index, 4), "puts@plt");
	assert_string_equal(names(index, 23), "puts@plt");
	/* The end of the second stub is missing. */
	assert_string_equal(names(index, 24), "");
	index_destroy(index);
}

static void what_is_not_known_has_no_name(void **)
{
	static const struct relocation odd[] = {
		{ GOT, R_X86_64_JUMP_SLOT, 999 }, /* no such symbol */
		{ GOT + 8, R_X86_64_64, 1 }, /* fills no slot */
		{ GOT + 16, R_X86_64_JUMP_SLOT, 0 }, /* symbol 0 has no name */
	};
	struct index *index;
	struct file f;

	begin(&f);
	import(&f, "puts");
	for (uint64_t slot = GOT; slot <= GOT + 24; slot += 8)
		put_jump(&f, "", 0, slot, 16);
	put(&f, "\xff\x25\x01", 3); /* truncated */
	index = index_of(&f, ".plt", 16, odd, 3);
	for (uint64_t at = 0; at < 80; at += 8)
		assert_string_equal(names(index, at), "");
	index_destroy(index);
}

static void other_code_is_no_stub(void **)
{
	struct index *index;
	struct file f;

	begin(&f);
	import(&f, "puts");
	import(&f, "exit");
	put_jump(&f, "", 0, GOT, 16);
	index = index_of(&f, ".text", 16, two, 2);
	assert_string_equal(names(index, 0), "");
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stubs_are_called_as_what_they_jump_to),
		cmocka_unit_test(stubs_with_branch_tracking),
		cmocka_unit_test(stubs_of_eight_bytes),
		cmocka_unit_test(stubs_of_eight_bytes_in_a_section_that_does_not_say_so),
		cmocka_unit_test(stubs_of_arm64),
		cmocka_unit_test(what_is_not_known_has_no_name),
		cmocka_unit_test(other_code_is_no_stub),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
