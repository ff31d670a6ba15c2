/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "bpf/abi/runtime_go.h"
#include "symbolizer/indexer/go/go.h"
#include "tests/unit/bytes.h"
#include "tests/unit/dwarf_writer.h"
#include "tests/unit/gopclntab_writer.h"

enum { BUILDINFO = 0x610000, TLS = 0x620000, GOT = 0x630000, TEXT_CODE = 0x40, LIMIT = 1 << 16 };

static struct gopclntab_writer w;
static uint8_t text[GO_TEXT_SIZE];

/* The program's only function; its code is what `text` holds at 0x40. */
static void program(const char *function)
{
	struct gopclntab_function_spec spec = { .entry = TEXT_CODE, .tree = GO_NO_TREE };

	gopclntab_writer_init(&w, 20);
	memset(text, 0xcc, sizeof(text));
	w.code = text;
	gopclntab_writer_name(&w, "main.main");
	spec.name = gopclntab_writer_name(&w, function);
	gopclntab_writer_function(&w, &spec);
}

static void data(const char *name, uint64_t address, const struct buffer *contents)
{
	elf_writer_section(&w.elf, &(struct elf_section_spec){ .name = name,
					   .flags = SHF_ALLOC | SHF_WRITE,
					   .address = address,
					   .bytes = contents->bytes,
					   .size = contents->size });
}

static void put_build_info(struct buffer *b, uint8_t pointer_size, uint8_t flags)
{
	buffer_init(b, LIMIT);
	buffer_append(b, "\xff Go buildinf:", 14);
	put_u8(b, pointer_size);
	put_u8(b, flags);
}

/* As since 1.18. */
static void version(const char *version)
{
	struct buffer b;

	put_build_info(&b, 8, 2);
	put_zeros(&b, 16);
	put_uleb128(&b, strlen(version));
	put_string(&b, version);
	put_zeros(&b, 64);
	data(".go.buildinfo", BUILDINFO, &b);
	buffer_deinit(&b);
}

/* As until 1.17: the words at 16 and 24 point to strings; the version's text follows. */
static void pointed_version(const char *version, uint64_t string, uint64_t length)
{
	struct buffer b;

	put_build_info(&b, 8, 0);
	put_u64(&b, string);
	put_u64(&b, string);
	put_u64(&b, BUILDINFO + 48);
	put_u64(&b, length);
	put_string(&b, version);
	put_zeros(&b, 64);
	data(".go.buildinfo", BUILDINFO, &b);
	buffer_deinit(&b);
}

static void code(const char *bytes, size_t size)
{
	memcpy(text + TEXT_CODE, bytes, size);
}

/* mov %fs:-128,%rax */
static void load_absolute(void)
{
	code("\x64\x48\x8b\x04\x25\x80\xff\xff\xff", 9);
}

/* mov $-192,%rcx; mov %fs:(%rcx),%rax */
static void load_indirect(void)
{
	code("\x48\xc7\xc1\x40\xff\xff\xff\x64\x48\x8b\x01", 11);
}

static struct index_go facts(void)
{
	autoclose int fd = gopclntab_writer_file(&w, TEXT_CODE + 0x20);
	struct index_go go = { .version = 99 };
	struct elf_image *image = NULL;

	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(go_facts_read(image, &go), 0);
	elf_image_destroy(image);
	gopclntab_writer_deinit(&w);
	return go;
}

static void refused(uint32_t version)
{
	struct index_go go = facts();

	assert_int_equal(go.version, version);
	assert_int_equal(go.supported, 0);
	assert_true(go.refusal);
	assert_int_equal(go.g_tls_offset, 0);
	assert_int_equal(go.g_goid, 0);
}

static void each_version_of_the_table(void **state)
{
	static const uint32_t goids[] = { 152, 152, 152, 152, 152, 152, 152, 160, 160, 152, 152,
		152 };
	static const uint32_t curgs[] = { 192, 192, 192, 192, 192, 192, 192, 192, 192, 184, 184,
		184 };

	static const uint32_t locked[] = { 360, 360, 352, 352, 352, 352, 344, 368, 368, 360, 384,
		384 };

	(void)state;
	for (uint32_t minor = 16; minor <= 27; minor++) {
		char name[32];
		struct index_go go;

		program("runtime.stackcheck");
		load_absolute();
		snprintf(name, sizeof(name), "go1.%u.3", minor);
		version(name);
		go = facts();
		assert_int_equal(go.version, minor);
		assert_int_equal(go.supported, 1);
		assert_int_equal(go.g_tls_offset, -128);
		assert_int_equal(go.g_m, 48);
		assert_int_equal(go.g_goid, goids[minor - 16]);
		assert_int_equal(go.m_curg, curgs[minor - 16]);
		assert_int_equal(go.g_stack_hi, 8);
		assert_int_equal(go.labels_kind, minor < 24 ? 1 : 2);
		assert_true(go.g_labels > go.g_goid);
		assert_int_equal(go.g_status, go.g_goid - 8);
		assert_int_equal(go.g_startpc, go.g_gopc + 16);
		assert_int_equal(go.g_labels, go.g_startpc + 48);
		assert_int_equal(go.g_parent_goid, minor < 21 ? 0 : go.g_gopc - 8);
		assert_int_equal(go.g_waitreason, go.g_status + 32);
		assert_int_equal(go.m_lockedg, locked[minor - 16]);
	}
}

static void version_behind_a_pointer(void **state)
{
	struct index_go go;

	(void)state;
	program("runtime.stackcheck");
	load_absolute();
	pointed_version("go1.17", BUILDINFO + 32, 6);
	go = facts();
	assert_int_equal(go.version, 17);
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_labels, 360);
}

static void version_without_section_headers(void **state)
{
	(void)state;
	program("runtime.stackcheck.abi0");
	load_indirect();
	version("go1.24.1 X:nocoverageredesign");
	w.elf.no_section_headers = true;

	struct index_go go = facts();

	assert_int_equal(go.version, 24);
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_tls_offset, -192);
}

static void candidates_are_releases(void **state)
{
	(void)state;
	program("runtime.stackcheck");
	load_absolute();
	version("go1.22rc1");
	assert_int_equal(facts().supported, 1);
}

static void a_program_without_go(void **state)
{
	struct index_go go;

	(void)state;
	program("runtime.stackcheck");
	go = facts();
	assert_int_equal(go.version, 0);
	assert_int_equal(go.supported, 0);
}

static void unknown_versions_are_refused(void **state)
{
	static const struct {
		const char *text;
		uint32_t minor;
	} versions[] = {
		{ "go1.15.15", 15 },
		{ "go1.28", 28 },
		{ "go1.28.1", 28 },
		{ "devel go1.25-8dce8bd Tue", 25 },
		{ "devel +8dce8bd Tue", GO_VERSION_UNKNOWN },
		{ "go2.1", GO_VERSION_UNKNOWN },
		{ "go1.", GO_VERSION_UNKNOWN },
		{ "go1.99999999999999999999", GO_VERSION_UNKNOWN },
		{ "gccgo", GO_VERSION_UNKNOWN },
		{ "", GO_VERSION_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		program("runtime.stackcheck");
		load_absolute();
		version(versions[i].text);
		refused(versions[i].minor);
	}
}

/* Members of runtime.g, as Go 1.26 has them. */
static const struct {
	const char *name;
	uint64_t offset;
} g_members[] = { { "stack", 0 }, { "m", 48 }, { "sched", 56 }, { "atomicstatus", 144 },
	{ "goid", 152 }, { "parentGoid", 280 }, { "gopc", 288 }, { "startpc", 304 },
	{ "labels", 352 }, { "waitreason", 176 } };

static void put_structure(struct dwarf_writer *d, const char *name)
{
	DIE(d, DW_TAG_structure_type, true, TEXT(DW_AT_name, name));
}

static void put_member(struct dwarf_writer *d, const char *name, uint64_t offset)
{
	DIE(d, DW_TAG_member, false, TEXT(DW_AT_name, name),
		NUMBER(DW_AT_data_member_location, DW_FORM_udata, offset));
}

static void section(const char *name, const struct buffer *contents)
{
	elf_writer_section(
		&w.elf, &(struct elf_section_spec){
				.name = name, .bytes = contents->bytes, .size = contents->size });
}

/* DWARF of 1.26, with g's member MOVED elsewhere; NULL = none. */
static void dwarf_but(const char *moved)
{
	struct dwarf_writer d;

	dwarf_writer_init(&d);
	dwarf_writer_unit(&d, 4);
	DIE(&d, DW_TAG_compile_unit, true, TEXT(DW_AT_name, "runtime"));
	put_structure(&d, "runtime.g");
	for (size_t i = 0; i < ARRAY_SIZE(g_members); i++) {
		bool here = moved && !strcmp(g_members[i].name, moved);

		put_member(&d, g_members[i].name, g_members[i].offset + (here ? 8 : 0));
	}
	dwarf_writer_up(&d);
	put_structure(&d, "runtime.m");
	put_member(&d, "curg", 184);
	put_member(&d, "lockedg", 384);
	dwarf_writer_up(&d);
	put_structure(&d, "runtime.stack");
	put_member(&d, "hi", 8);
	dwarf_writer_up(&d);
	put_structure(&d, "runtime.gobuf");
	put_member(&d, "bp", 40);
	dwarf_writer_up(&d);
	dwarf_writer_up(&d);
	dwarf_writer_unit_end(&d);
	section(".debug_info", &d.info);
	section(".debug_abbrev", &d.abbrev);
	dwarf_writer_deinit(&d);
}

static struct index_go facts_with_dwarf(const char *name, const char *moved)
{
	program("runtime.stackcheck");
	load_absolute();
	version(name);
	dwarf_but(moved);
	return facts();
}

static void dwarf_and_table_agree(void **state)
{
	struct index_go go = facts_with_dwarf("go1.26.1", NULL);

	(void)state;
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_parent_goid, 280);
	assert_int_equal(go.g_gopc, 288);
	assert_int_equal(go.g_startpc, 304);
	assert_int_equal(go.g_status, 144);
}

static void dwarf_that_contradicts_the_table_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(g_members); i++) {
		struct index_go go = facts_with_dwarf("go1.26.1", g_members[i].name);

		assert_int_equal(go.supported, 0);
		assert_int_equal(go.refusal, INDEX_GO_CONTRADICTION);
		assert_int_equal(go.g_goid, 0);
	}
	assert_int_equal(facts_with_dwarf("go1.25.1", NULL).refusal, INDEX_GO_CONTRADICTION);
}

/* What the members mean may have changed. */
static void newer_releases_are_refused_in_spite_of_dwarf(void **state)
{
	(void)state;
	assert_int_equal(facts_with_dwarf("go1.28.1", NULL).refusal, INDEX_GO_NEW_VERSION);
	assert_int_equal(facts_with_dwarf("go1.28rc1", NULL).refusal, INDEX_GO_NEW_VERSION);
}

/* The table has nothing about them. */
static void development_versions_need_dwarf(void **state)
{
	struct index_go go = facts_with_dwarf("devel go1.26-8dce8bd Tue", "goid");

	(void)state;
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_goid, 160);
	go = facts_with_dwarf("devel +8dce8bd Tue", NULL);
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.labels_kind, 0);
}

static void broken_build_information(void **state)
{
	struct buffer b;

	(void)state;
	program("runtime.stackcheck"); /* cut behind the magic */
	put_build_info(&b, 8, 2);
	data(".go.buildinfo", BUILDINFO, &b);
	buffer_deinit(&b);
	refused(GO_VERSION_UNKNOWN);

	program("runtime.stackcheck"); /* a length that never ends */
	put_build_info(&b, 8, 2);
	put_zeros(&b, 16);
	for (int i = 0; i < 40; i++)
		put_u8(&b, 0xff);
	data(".go.buildinfo", BUILDINFO, &b);
	buffer_deinit(&b);
	refused(GO_VERSION_UNKNOWN);

	program("runtime.stackcheck"); /* 32-bit pointers */
	put_build_info(&b, 4, 0);
	put_zeros(&b, 16);
	data(".go.buildinfo", BUILDINFO, &b);
	buffer_deinit(&b);
	refused(GO_VERSION_UNKNOWN);
}

static void invalid_pointers(void **state)
{
	(void)state;
	program("runtime.stackcheck");
	pointed_version("go1.17", 0xdead0000, 6);
	refused(GO_VERSION_UNKNOWN);
	program("runtime.stackcheck");
	pointed_version("go1.17", BUILDINFO + 32, UINT64_MAX);
	refused(GO_VERSION_UNKNOWN);
}

static void load_with_high_registers(void **state)
{
	(void)state;
	program("runtime.stackcheck");
	code("\x49\xc7\xc0\xf8\xff\xff\xff\x64\x4d\x8b\x08", 11); /* through %r8 into %r9 */
	version("go1.26.1");
	assert_int_equal(facts().g_tls_offset, -8);
}

/* Code that does not load g from a place fixed at link time. */
static void code_refused(const char *bytes, size_t size)
{
	program("runtime.stackcheck");
	code(bytes, size);
	version("go1.26.1");
	refused(26);
}

static void unknown_load_instructions(void **state)
{
	(void)state;
	/* two different registers */
	code_refused("\x48\xc7\xc1\x40\xff\xff\xff\x64\x48\x8b\x00", 11);
	code_refused("\x49\xc7\xc1\x40\xff\xff\xff\x64\x48\x8b\x01", 11);
	/* through %rsp, which means something else */
	code_refused("\x48\xc7\xc4\x40\xff\xff\xff\x64\x48\x8b\x04", 11);
	/* 32 bits wide; from gs; above the thread pointer; not aligned; far away */
	code_refused("\x64\x8b\x04\x25\xf8\xff\xff\xff", 8);
	code_refused("\x65\x48\x8b\x04\x25\xf8\xff\xff\xff", 9);
	code_refused("\x64\x48\x8b\x04\x25\x08\x00\x00\x00", 9);
	code_refused("\x64\x48\x8b\x04\x25\xf9\xff\xff\xff", 9);
	code_refused("\x64\x48\x8b\x04\x25\x00\x00\x00\x80", 9);
}

/* runtime.tlsg at VALUE of a TLS segment of SIZE bytes. */
static void tls_symbol(uint64_t value, uint64_t size, uint64_t align)
{
	struct elf_symbol_spec symbol = { "runtime.tlsg", value, 8, 1, .type = STT_TLS };

	elf_writer_segment(&w.elf, &(Elf64_Phdr){ .p_type = PT_TLS,
					   .p_flags = PF_R,
					   .p_vaddr = TLS,
					   .p_memsz = size,
					   .p_align = align });
	elf_writer_symbol(&w.elf, &symbol);
}

/* The GOT of a shared library, from GOT to GOT + 0x20. */
static void got(void)
{
	struct buffer b;

	buffer_init(&b, LIMIT);
	put_zeros(&b, 0x20);
	data(".got", GOT, &b);
	buffer_deinit(&b);
}

/* The code loads the offset from OFF bytes behind the GOT's beginning. */
static void library(const char *opcode, const char *load, uint32_t off)
{
	const uint32_t distance = GOT + off - (GO_TEXT + TEXT_CODE + 7);

	program("runtime.stackcheck");
	memcpy(text + TEXT_CODE, opcode, 3);
	memcpy(text + TEXT_CODE + 3, &distance, sizeof(distance));
	memcpy(text + TEXT_CODE + 7, load, 4);
	version("go1.26.1");
	got();
}

static void a_shared_library_has_the_offset_in_a_word(void **state)
{
	static const struct {
		const char *opcode, *load;
	} registers[] = { { "\x48\x8b\x0d", "\x64\x48\x8b\x01" }, /* rcx */
		{ "\x4c\x8b\x0d", "\x64\x49\x8b\x01" } }; /* r9 */

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		struct index_go go;

		library(registers[i].opcode, registers[i].load, 0x18);
		tls_symbol(0, 8, 8); /* of its own block, wherever that is */
		go = facts();
		assert_int_equal(go.supported, 1);
		assert_int_equal(go.g_tls_in_word, 1);
		assert_int_equal(go.g_tls_offset, GOT + 0x18);
	}
}

static void words_that_cannot_be_the_linkers_are_refused(void **state)
{
	static const char opcode[] = "\x48\x8b\x0d", load[] = "\x64\x48\x8b\x01";

	(void)state;
	library(opcode, load, 0x20); /* behind the GOT */
	refused(26);
	library(opcode, load, 4); /* not aligned */
	refused(26);
	library(opcode, load, GO_TEXT - GOT); /* code */
	refused(26);
	library("\x4c\x8b\x0d", load, 8); /* two different registers */
	refused(26);
}

static void symbol_and_code_agree(void **state)
{
	struct index_go go;

	(void)state;
	program("runtime.stackcheck");
	load_absolute();
	version("go1.26.1");
	tls_symbol(0, 0x7c, 64); /* rounded up to 128 */
	go = facts();
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_tls_offset, -128);
}

static void symbol_and_code_disagree(void **state)
{
	(void)state;
	program("runtime.stackcheck");
	load_absolute();
	version("go1.26.1");
	tls_symbol(0, 8, 8);
	refused(26);
}

static void symbol_alone(void **state)
{
	struct index_go go;

	(void)state;
	program("runtime.other");
	version("go1.26.1");
	tls_symbol(0x10, 0x18, 8);
	go = facts();
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_tls_offset, -8);
}

static void symbol_outside_of_its_segment(void **state)
{
	(void)state;
	program("runtime.other");
	version("go1.26.1");
	tls_symbol(0x20, 0x18, 8);
	refused(26);
}

static void neither_symbol_nor_code(void **state)
{
	(void)state;
	program("runtime.other");
	version("go1.26.1");
	refused(26);
}

/* runtime.load_g of a program with cgo (ISCGO 1) or without, whose flag is at BUILDINFO - 16. */
static void arm_program_of(uint8_t iscgo, bool add, uint32_t movz, uint32_t movk)
{
	uint32_t words[9], n = 0;
	struct buffer flag;

	program("runtime.load_g");
	w.elf.machine = EM_AARCH64;
	words[n++] = 0xd000107b; /* adrp x27,0x20e pages on: 0x60f000 */
	if (add)
		words[n++] = 0x913fc37b; /* add x27,x27,#0xff0 */
	words[n++] = add ? 0x39800360 : 0x39bfc360; /* ldrsb x0,[x27{,#0xff0}] */
	words[n++] = 0xb4000080;
	words[n++] = 0xd53bd040;
	words[n++] = movz;
	if (movk)
		words[n++] = movk;
	words[n++] = 0xf87b681c;
	memcpy(text + TEXT_CODE, words, n * sizeof(words[0]));
	version("go1.26.1");
	buffer_init(&flag, LIMIT);
	put_u8(&flag, iscgo);
	data(".noptrbss", BUILDINFO - 16, &flag);
	buffer_deinit(&flag);
}

static void arm_program(uint8_t iscgo, bool add, uint32_t movz)
{
	arm_program_of(iscgo, add, movz, 0);
}

static void arm_position_independent_with_cgo(void **state)
{
	static const struct {
		uint32_t movz, movk;
		int64_t offset; /* 0: refused */
	} cases[] = {
		{ 0xd2a0001b, 0xf280021b, 16 }, /* movz x27,#0,lsl #16; movk x27,#16 */
		{ 0xd2a0003b, 0xf280011b, 0x10008 }, { 0xd2a0001b, 0xd280021b, 0 }, /* movz twice */
		{ 0xd2a0001b, 0xf2a0021b, 0 }, /* movk x27,#16,lsl #16 */
		{ 0xd2c0001b, 0xf280021b, 0 }, /* movz x27,#0,lsl #32 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		arm_program_of(1, false, cases[i].movz, cases[i].movk);
		if (cases[i].offset)
			assert_int_equal(facts().g_tls_offset, cases[i].offset);
		else
			refused(26);
	}
}

static void arm_with_cgo(void **state)
{
	(void)state;
	for (int add = 0; add < 2; add++) {
		struct index_go go;

		arm_program(1, add, 0xd280021b);
		go = facts();
		assert_int_equal(go.supported, 1);
		assert_int_equal(go.g_tls_offset, 16);
	}
}

static void arm_without_cgo_has_g_in_a_register(void **state)
{
	struct index_go go;

	(void)state;
	arm_program(0, true, 0xd280021b);
	go = facts();
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_tls_offset, ABI_GO_G_IN_REGISTER);
}

/* adrp x27,PAGE; ldr x27,[x27,#16] */
static void arm_library(uint32_t adrp, uint32_t ldr)
{
	arm_program_of(1, false, adrp, ldr);
	got();
}

static void arm_shared_library_has_the_offset_in_a_word(void **state)
{
	struct index_go go;

	(void)state;
	arm_library(0xf000117b, 0xf9400b7b);
	go = facts();
	assert_int_equal(go.supported, 1);
	assert_int_equal(go.g_tls_in_word, 1);
	assert_int_equal(go.g_tls_offset, GOT + 16);
}

static void arm_unknown_loads_from_a_word_are_refused(void **state)
{
	(void)state;
	arm_program(1, true, 0xf940037b); /* no adrp before it */
	refused(26);
	arm_library(0xf000117b, 0xf9400b5b); /* ldr x27,[x26,#16] */
	refused(26);
	arm_library(0xf000117b, 0xb9400b7b); /* ldr w27,[x27,#8] */
	refused(26);
	arm_library(0xf000117b, 0xf940137b); /* ldr x27,[x27,#32], behind the GOT */
	refused(26);
}

/* The text of the Go build ID of a file whose note has these fields; NULL: none. */
static void build_id_is(uint32_t name_size, uint32_t size, uint32_t type, const char *expected)
{
	struct elf_writer elf;
	struct elf_image *image = NULL;
	struct cursor id;
	struct buffer b;
	int fd;

	buffer_init(&b, LIMIT);
	put_u32(&b, name_size);
	put_u32(&b, size);
	put_u32(&b, type);
	buffer_append(&b, "Go\0\0abc/def\0", 12);
	elf_writer_init(&elf);
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".note.go.buildid",
					 .type = SHT_NOTE,
					 .flags = SHF_ALLOC,
					 .address = 0x400000,
					 .bytes = b.bytes,
					 .size = b.size });
	elf.no_section_headers = expected && size == 3;
	fd = elf_writer_file(&elf);
	assert_int_equal(elf_image_open(fd, &image), 0);
	id = go_build_id(image);
	assert_int_equal(cursor_left(&id), expected ? strlen(expected) : 0);
	if (expected)
		assert_memory_equal(id.at, expected, strlen(expected));
	elf_image_destroy(image);
	close(fd);
	elf_writer_deinit(&elf);
	buffer_deinit(&b);
}

static void build_ids(void **state)
{
	(void)state;
	build_id_is(4, 7, 4, "abc/def");
	build_id_is(4, 3, 4, "abc"); /* found by the segment */
	build_id_is(4, 7, 3, NULL);
	build_id_is(4, 9, 4, NULL);
	build_id_is(4, UINT32_MAX, 4, NULL);
	build_id_is(UINT32_MAX, 7, 4, NULL);
	build_id_is(0, 7, 4, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_version_of_the_table),
		cmocka_unit_test(version_behind_a_pointer),
		cmocka_unit_test(version_without_section_headers),
		cmocka_unit_test(candidates_are_releases),
		cmocka_unit_test(a_program_without_go),
		cmocka_unit_test(unknown_versions_are_refused),
		cmocka_unit_test(dwarf_and_table_agree),
		cmocka_unit_test(dwarf_that_contradicts_the_table_is_refused),
		cmocka_unit_test(newer_releases_are_refused_in_spite_of_dwarf),
		cmocka_unit_test(development_versions_need_dwarf),
		cmocka_unit_test(broken_build_information),
		cmocka_unit_test(invalid_pointers),
		cmocka_unit_test(load_with_high_registers),
		cmocka_unit_test(unknown_load_instructions),
		cmocka_unit_test(a_shared_library_has_the_offset_in_a_word),
		cmocka_unit_test(words_that_cannot_be_the_linkers_are_refused),
		cmocka_unit_test(symbol_and_code_agree),
		cmocka_unit_test(symbol_and_code_disagree),
		cmocka_unit_test(symbol_alone),
		cmocka_unit_test(symbol_outside_of_its_segment),
		cmocka_unit_test(neither_symbol_nor_code),
		cmocka_unit_test(arm_with_cgo),
		cmocka_unit_test(arm_position_independent_with_cgo),
		cmocka_unit_test(arm_without_cgo_has_g_in_a_register),
		cmocka_unit_test(arm_shared_library_has_the_offset_in_a_word),
		cmocka_unit_test(arm_unknown_loads_from_a_word_are_refused),
		cmocka_unit_test(build_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
