/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables of whole files and of malformed index files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/index/format.h"
#include "symbolizer/vdso.h"
#include "tests/unit/bytes.h"
#include "tests/unit/cfi_writer.h"
#include "tests/unit/elf_writer.h"

static const char entry[] = "sp+8 fp=same ra=[cfa-8]";

static struct index *index_of_file(int fd, int output)
{
	struct sandbox_result result;
	struct index *index = NULL;

	assert_int_equal(builder_run(fd, output, &result), 0);
	assert_int_equal(index_open(output, &index), 0);
	return index;
}

static struct index *index_of(struct elf_writer *elf)
{
	autoclose int fd = elf_writer_file(elf);
	autoclose int output = memory_file("", 0);

	elf_writer_deinit(elf);
	return index_of_file(fd, output);
}

/* A file with code at CFI_TEXT and a function in its first half. */
static void start_file(struct elf_writer *elf, struct cfi_writer *cfi, bool debug)
{
	elf_writer_init(elf);
	elf_writer_code(elf, ".text", CFI_TEXT, 0x200);
	cfi_writer_init(cfi, EM_X86_64);
	cfi->debug = debug;
	cfi_writer_fde(cfi, cfi_writer_usual_cie(cfi), CFI_TEXT, 0x100, NO_CODE);
}

static void add_section(struct elf_writer *elf, struct cfi_writer *cfi, const char *name)
{
	elf_writer_section(elf, &(struct elf_section_spec){
					.name = name,
					.flags = cfi->debug ? 0 : SHF_ALLOC,
					.address = cfi->debug ? 0 : CFI_ADDRESS,
					.bytes = cfi->bytes.bytes,
					.size = cfi->bytes.size,
				});
	cfi_writer_deinit(cfi);
}

static void assert_half(struct index *index)
{
	assert_string_equal(cfi_rule_at(index, CFI_TEXT), entry);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0xff), entry);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x100), "none");
	assert_int_equal(index_unwind_page_count(index), 1);
	assert_int_equal(index_unwind_page_address(index, 0), CFI_TEXT & ~0xffff);
	assert_int_equal(index_unwind_page_address(index, 1), 0);
	assert_true(index_unwind_bytes(index) > sizeof(struct abi_unwind_page));
	assert_int_equal(index_unwind_figures(index)->functions, 1);
	index_destroy(index);
}

static void eh_frame_by_its_section(void **)
{
	struct elf_writer elf;
	struct cfi_writer cfi;

	start_file(&elf, &cfi, false);
	add_section(&elf, &cfi, ".eh_frame");
	assert_half(index_of(&elf));
}

static void debug_frame(void **)
{
	struct elf_writer elf;
	struct cfi_writer cfi;

	start_file(&elf, &cfi, true);
	add_section(&elf, &cfi, ".debug_frame");
	assert_half(index_of(&elf));
}

/* .eh_frame_hdr at 0x600000; its first pointer has ENCODING, with VALUE as its first 4 bytes. */
static void add_header(struct elf_writer *elf, uint8_t version, uint8_t encoding, uint32_t value)
{
	uint8_t bytes[12] = { version, encoding, 0xff, 0xff };
	uint32_t number;

	memcpy(bytes + 4, &value, sizeof(value));
	number = elf_writer_section(elf, &(struct elf_section_spec){
						 .name = ".eh_frame_hdr",
						 .flags = SHF_ALLOC,
						 .address = 0x600000,
						 .bytes = bytes,
						 .size = sizeof(bytes),
					 });
	elf_writer_segment(elf, &(Elf64_Phdr){
					.p_type = PT_GNU_EH_FRAME,
					.p_offset = elf->sections[number].sh_offset,
					.p_vaddr = 0x600000,
					.p_filesz = sizeof(bytes),
					.p_memsz = sizeof(bytes),
				});
}

static void eh_frame_without_section_headers(void **)
{
	struct elf_writer elf;
	struct cfi_writer cfi;

	start_file(&elf, &cfi, false);
	put_u32(&cfi.bytes, 0); /* terminator */
	put_u64(&cfi.bytes, 0xfefefefefefefefe);
	add_header(&elf, 1, 0x1b, CFI_ADDRESS - 0x600004);
	add_section(&elf, &cfi, ".eh_frame");
	elf.no_section_headers = true;
	assert_half(index_of(&elf));
}

static void no_tables(struct elf_writer *elf)
{
	struct index *index = index_of(elf);

	assert_int_equal(index_unwind_page_count(index), 0);
	assert_int_equal(index_unwind_bytes(index), 0);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT), "none");
	assert_string_equal(cfi_rule_at(index, 0), "none");
	assert_string_equal(cfi_rule_at(index, UINT64_MAX), "none");
	index_destroy(index);
}

/* Checks the rules at and before the entry point ENTRY_POINT. */
static void assert_entry_point(uint64_t entry_point, const char *before, const char *at)
{
	struct elf_writer elf;
	struct cfi_writer cfi;
	struct index *index;

	start_file(&elf, &cfi, false);
	elf.entry_point = entry_point;
	add_section(&elf, &cfi, ".eh_frame");
	index = index_of(&elf);
	assert_string_equal(cfi_rule_at(index, entry_point - 1), before);
	assert_string_equal(cfi_rule_at(index, entry_point), at);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0xff), entry);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x200), "none");
	index_destroy(index);
}

static void code_behind_an_entry_point_with_an_entry_is_other_code(void **)
{
	struct elf_writer elf;
	struct cfi_writer cfi;
	struct index *index;

	start_file(&elf, &cfi, false);
	elf.entry_point = CFI_TEXT + 0x80;
	add_section(&elf, &cfi, ".eh_frame");
	index = index_of(&elf);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x80), entry);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x100), "none");
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x17f), "none");
	index_destroy(index);
}

static void nobody_calls_the_entry_point(void **)
{
	assert_entry_point(CFI_TEXT + 0x110, "none", "end");
	assert_entry_point(CFI_TEXT + 0x100, entry, "end");
	assert_entry_point(CFI_TEXT + 0x80, entry, entry); /* has an FDE of its own */
	assert_entry_point(CFI_TEXT + 0x300, "none", "none"); /* no code */
}

/* A vDSO of aarch64, with or without tables for its other code. */
static void assert_signal_return(bool tables)
{
	struct elf_writer elf;
	struct cfi_writer cfi;
	struct index *index;

	elf_writer_init(&elf);
	elf.machine = EM_AARCH64;
	elf_writer_code(&elf, ".text", CFI_TEXT, 0x200);
	elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = "__kernel_rt_sigreturn",
					.address = CFI_TEXT + 0x110,
					.size = 8,
					.section = 1,
					.bind = STB_GLOBAL,
					.dynamic = true });
	if (tables) {
		cfi_writer_init(&cfi, EM_AARCH64);
		cfi_writer_fde(&cfi, cfi_writer_usual_cie(&cfi), CFI_TEXT, 0x100, NO_CODE);
		add_section(&elf, &cfi, ".eh_frame");
	}
	index = index_of(&elf);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x10b), "none");
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x10f), "signal");
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x118), "signal");
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x11c), "none");
	index_destroy(index);
}

static void signal_handlers_return_into_the_vdso_of_aarch64(void **)
{
	assert_signal_return(true);
	assert_signal_return(false);
}

/* The rest of that vDSO has no tables: its rules come from its instructions. */
static void code_in_the_vdso_of_aarch64(void **)
{
	static const uint32_t code[] = { 0xf81f0ffe /* str x30,[sp,#-16]! */,
		0xd53be042 /* mrs x2,cntvct_el0 */, 0xf84107fe /* ldr x30,[sp],#16 */,
		0xd65f03c0 /* ret */ };
	struct elf_writer elf;
	struct index *index;

	elf_writer_init(&elf);
	elf.machine = EM_AARCH64;
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".text",
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .address = CFI_TEXT,
					 .bytes = code,
					 .size = sizeof(code) });
	elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = "__kernel_rt_sigreturn",
					.address = CFI_TEXT + 0x110,
					.size = sizeof(code),
					.section = 1,
					.bind = STB_GLOBAL,
					.dynamic = true });
	index = index_of(&elf);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 8), "sp+16 fp=same ra=[cfa-16]");
	index_destroy(index);
}

/* The loader realigns the stack in _dl_runtime_resolve and finds its frame by rbx. */
static void rbx_is_followed_in_the_loader(void **)
{
	static const char *const exports[] = { "_r_debug", "_r_other" };

	for (int i = 0; i < 2; i++) {
		struct elf_writer elf;
		struct cfi_writer cfi;
		struct index *index;

		start_file(&elf, &cfi, false);
		elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = exports[i],
						.address = CFI_TEXT + 0x10,
						.size = 8,
						.section = 1,
						.bind = STB_GLOBAL,
						.dynamic = true });
		add_section(&elf, &cfi, ".eh_frame");
		index = index_of(&elf);
		assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x80),
			i ? entry : "sp+8 fp=same ra=[cfa-8] rbx=-1 words");
		index_destroy(index);
	}
}

static void headers_that_lie(void **)
{
	static const struct {
		uint8_t version, encoding;
		uint32_t value;
	} lies[] = {
		{ 2, 0x1b, CFI_ADDRESS - 0x600004 }, { 1, 0xff, 0 }, { 1, 0x9b, 0 },
		{ 1, 0x1b, 0x7fffffff }, { 1, 0x03, 0xfffffff0 },
		{ 1, 0x0c, 0 }, /* 8 bytes, of which the others are zero */
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct elf_writer elf;
		struct cfi_writer cfi;

		start_file(&elf, &cfi, false);
		add_header(&elf, lies[i].version, lies[i].encoding, lies[i].value);
		add_section(&elf, &cfi, ".eh_frame");
		elf.no_section_headers = true;
		no_tables(&elf);
	}
}

static void file_without_tables(void **)
{
	struct elf_writer elf;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", CFI_TEXT, 0x200);
	no_tables(&elf);
}

static void two_sections_and_segments_far_apart(void **)
{
	struct elf_writer elf;
	struct cfi_writer cfi;
	struct index *index;
	uint64_t cie, address = 0;
	size_t segment;

	start_file(&elf, &cfi, false);
	add_section(&elf, &cfi, ".eh_frame");
	elf_writer_code(&elf, ".text.hot", 0x8801000, 0x100);
	cfi_writer_init(&cfi, EM_X86_64);
	cfi.debug = true; /* absolute pointers */
	cie = cfi_writer_usual_cie(&cfi);
	cfi_writer_fde(&cfi, cie, 0x8801000, 0x100, CFI(DEF_CFA_OFFSET(16)));
	add_section(&elf, &cfi, ".debug_frame");
	index = index_of(&elf);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT), entry);
	assert_string_equal(cfi_rule_at(index, 0x8801000), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, 0x8811000), "none");
	assert_int_equal(index_unwind_page_count(index), 2);
	assert_int_equal(index_unwind_page_address(index, 1), 0x8800000);
	assert_true(index_address(index, index_segment(index, 1).file_off, &address, &segment));
	assert_int_equal(address, 0x8801000);
	index_destroy(index);
}

static void code_of_another_source_is_left_out(void **)
{
	const struct source_range skip = { CFI_TEXT + 0x100, CFI_TEXT + 0x200 };
	struct index_writer *writer = index_writer_create();
	autoclose int fd = memory_file("", 0);
	struct cfi_section section;
	struct index *index = NULL;
	struct cfi_writer cfi;
	uint64_t cie;

	cfi_writer_init(&cfi, EM_X86_64);
	cie = cfi_writer_usual_cie(&cfi);
	for (uint64_t i = 0; i < 3; i++)
		cfi_writer_fde(&cfi, cie, CFI_TEXT + i * 0x100, 0x100, NO_CODE);
	section = cfi_writer_section(&cfi);
	assert_int_equal(writer_code(writer, CFI_TEXT, CFI_TEXT_SIZE), 0);
	assert_int_equal(unwind_read_sections(&section, 1, CFI_TEXT + 0x140, &skip, writer), 0);
	assert_int_equal(writer_finish(writer, fd), 0);
	index_writer_destroy(writer);
	cfi_writer_deinit(&cfi);
	assert_int_equal(index_open(fd, &index), 0);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0xff), entry);
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x100), "none");
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x1ff), "none");
	assert_string_equal(cfi_rule_at(index, CFI_TEXT + 0x200), entry);
	index_destroy(index);
}

static void pages_come_ascending(void **)
{
	struct index_writer *w = index_writer_create();

	assert_int_equal(writer_code(w, CFI_TEXT, CFI_TEXT_SIZE), 0);
	assert_int_equal(writer_segment(w, &(struct writer_segment){ CFI_TEXT, 1, 0 }), 0);
	assert_int_equal(writer_unwind_page(w, CFI_TEXT, "abcdefg", 8), 0);
	assert_int_equal(writer_unwind_page(w, CFI_TEXT, "abcdefg", 8), -EBADMSG);
	assert_int_equal(writer_unwind_page(w, CFI_TEXT + 0x10000, "abcdef", 7), -EBADMSG);
	assert_int_equal(writer_unwind_page(w, CFI_TEXT + 0x10000, "abcdefg", 8), 0);
	assert_int_equal(writer_unwind_page(w, 1ULL << 40, "abcdefg", 8), -EBADMSG);
	index_writer_destroy(w);
}

static int write_good_index(void)
{
	struct elf_writer elf;
	struct cfi_writer cfi;
	autoclose int fd = -1;
	autoclose int output = memory_file("", 0);

	start_file(&elf, &cfi, false);
	add_section(&elf, &cfi, ".eh_frame");
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	index_destroy(index_of_file(fd, output));
	return take_fd(&output);
}

/* Changes 4 bytes of a table of the index and fixes its checksum. */
static struct index *with_lie(enum index_table_number table, size_t offset, uint32_t value)
{
	autoclose int fd = write_good_index();
	uint8_t bytes[16384];
	ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
	struct index_header header;
	struct index *index = NULL;
	uint64_t checksum;

	assert_true(size > (ssize_t)sizeof(header) && size < (ssize_t)sizeof(bytes));
	memcpy(&header, bytes, sizeof(header));
	memcpy(bytes + header.tables[table].offset + offset, &value, sizeof(value));
	checksum = XXH3_64bits(bytes, (size_t)size - sizeof(checksum));
	memcpy(bytes + size - sizeof(checksum), &checksum, sizeof(checksum));
	assert_int_equal(pwrite(fd, bytes, (size_t)size, 0), size);
	assert_int_equal(index_open(fd, &index), 0);
	return index;
}

static void assert_no_page(struct index *index)
{
	const struct abi_unwind_page *page;
	size_t size;

	assert_false(
		index_unwind_page(index, CFI_TEXT, &page, &size) && unwind_page_check(page, size));
	index_destroy(index);
}

static void an_index_that_lies_gives_no_page(void **)
{
	static const uint32_t good = sizeof(struct abi_unwind_page);

	assert_no_page(with_lie(INDEX_UNWIND_PAGES, 0, 77)); /* number of another page */
	assert_no_page(with_lie(INDEX_UNWIND_PAGES, 4, 1)); /* address inside the page */
	assert_no_page(with_lie(INDEX_UNWIND_PAGES, 4, 0xffffffff));
	assert_no_page(with_lie(INDEX_UNWIND_WORDS, 0, 0xffffff)); /* size */
	assert_no_page(with_lie(INDEX_UNWIND_WORDS, 0, good));
	assert_no_page(with_lie(INDEX_UNWIND_WORDS, 4, 0xffffffff)); /* counts */
	assert_no_page(with_lie(INDEX_UNWIND_WORDS, good, 0)); /* offsets of buckets */
}

static void the_vdso_has_tables(void **)
{
	autoclose int output = memory_file("", 0);
	struct module_id id;
	struct index *index;
	autoclose int fd = -1;
	int vdso;

	if (vdso_open(&vdso, &id))
		skip();
	fd = vdso;
	index = index_of_file(fd, output);
	assert_int_equal(index_unwind_page_count(index), 1);
	assert_true(index_unwind_figures(index)->rows > 5);
	assert_int_equal(index_unwind_figures(index)->broken, 0);
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eh_frame_by_its_section),
		cmocka_unit_test(debug_frame),
		cmocka_unit_test(eh_frame_without_section_headers),
		cmocka_unit_test(nobody_calls_the_entry_point),
		cmocka_unit_test(code_behind_an_entry_point_with_an_entry_is_other_code),
		cmocka_unit_test(signal_handlers_return_into_the_vdso_of_aarch64),
		cmocka_unit_test(rbx_is_followed_in_the_loader),
		cmocka_unit_test(code_in_the_vdso_of_aarch64),
		cmocka_unit_test(headers_that_lie),
		cmocka_unit_test(file_without_tables),
		cmocka_unit_test(two_sections_and_segments_far_apart),
		cmocka_unit_test(code_of_another_source_is_left_out),
		cmocka_unit_test(pages_come_ascending),
		cmocka_unit_test(an_index_that_lies_gives_no_page),
		cmocka_unit_test(the_vdso_has_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
