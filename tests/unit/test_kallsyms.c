/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kallsyms/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/io.h"

static int create_from(const void *text, size_t size, struct kallsyms **ret_kallsyms)
{
	autoclose int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, size), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return kallsyms_create(fd, ret_kallsyms);
}

static struct kallsyms *load(const char *text)
{
	struct kallsyms *k = NULL;

	assert_int_equal(create_from(text, strlen(text), &k), 0);
	return k;
}

static void expect(const struct kallsyms *k, uint64_t kaddr, const char *name, const char *module)
{
	struct ksymbol symbol;

	assert_true(kallsyms_lookup(k, kaddr, &symbol));
	assert_string_equal(symbol.name, name);
	assert_string_equal(symbol.module, module);
	assert_true(symbol.start <= kaddr);
}

static void expect_none(const struct kallsyms *k, uint64_t kaddr)
{
	struct ksymbol symbol;

	assert_false(kallsyms_lookup(k, kaddr, &symbol));
}

static const char kernel_text[] = "ffffffff81000000 T _stext\n"
				  "ffffffff81000000 T _text\n"
				  "ffffffff81000000 T startup\n"
				  "ffffffff81000010 t schedule\n"
				  "ffffffff81000800 D jiffies\n"
				  "ffffffff81001000 W weak_one\n"
				  "ffffffff81005000 T _etext\n"
				  "ffffffff82000000 T _sinittext\n"
				  "ffffffff82000000 t init_one\n"
				  "ffffffff82000100 T _einittext\n"
				  "ffffffff82400000 R rodata\n";

static void test_kernel_functions(void **state)
{
	struct kallsyms *k = load(kernel_text);
	uint64_t start, end;
	struct ksymbol symbol;

	(void)state;
	expect(k, 0xffffffff81000000, "startup", "");
	expect(k, 0xffffffff8100000f, "startup", "");
	expect(k, 0xffffffff81000010, "schedule", "");
	expect(k, 0xffffffff81000800, "schedule", ""); /* data is no function */
	expect(k, 0xffffffff81004fff, "weak_one", "");
	expect(k, 0xffffffff820000ff, "init_one", "");
	assert_true(kallsyms_lookup(k, 0xffffffff81000123, &symbol));
	assert_int_equal(symbol.start, 0xffffffff81000010);
	kallsyms_text(k, &start, &end);
	assert_int_equal(start, 0xffffffff81000000);
	assert_int_equal(end, 0xffffffff81005000);
	kallsyms_destroy(k);
}

static void test_marks_are_found_whatever_their_type(void **state)
{
	struct kallsyms *k = load("ffffffff81000000 T _stext\n"
				  "ffffffff81000010 t schedule\n"
				  "ffffffff81000100 T return_to_handler\n"
				  "ffffffff81000200 T arch_rethook_trampoline\n"
				  "ffffffff81005000 R _etext\n"
				  "ffffffff83000000 R __start_orc_unwind_ip\n"
				  "ffffffff83000400 R __stop_orc_unwind_ip\n"
				  "ffffffff83000400 R __start_orc_unwind\n"
				  "ffffffff83000a00 R __stop_orc_unwind\n"
				  "ffffffffc0000000 t return_to_handler\t[tracer]\n");
	const struct kallsyms_marks *m = kallsyms_marks(k);

	(void)state;
	assert_int_equal(m->stext, 0xffffffff81000000);
	assert_int_equal(m->etext, 0xffffffff81005000);
	assert_int_equal(m->orc_addresses, 0xffffffff83000000);
	assert_int_equal(m->orc_addresses_end, 0xffffffff83000400);
	assert_int_equal(m->orc_rules, 0xffffffff83000400);
	assert_int_equal(m->orc_rules_end, 0xffffffff83000a00);
	assert_int_equal(m->trampolines[0], 0xffffffff81000100);
	assert_int_equal(m->trampolines[1], 0xffffffff81000200);
	assert_int_equal(m->trampolines[2], 0);
	/* A table is no function. */
	expect_none(k, 0xffffffff83000010);
	kallsyms_destroy(k);
}

static void test_outside_of_all_code_there_is_no_name(void **state)
{
	struct kallsyms *k = load(kernel_text);

	(void)state;
	expect_none(k, 0);
	expect_none(k, 0x401000);
	expect_none(k, 0xffffffff80ffffff);
	expect_none(k, 0xffffffff81005000); /* _etext itself */
	expect_none(k, 0xffffffff81fffff0);
	expect_none(k, 0xffffffff82000100);
	expect_none(k, 0xffffffff82400000);
	expect_none(k, UINT64_MAX);
	kallsyms_destroy(k);
}

static void test_symbols_of_any_type_end_functions(void **state)
{
	struct kallsyms *k = load("ffff800010000000 R _stext\n"
				  "ffff800010000000 T first\n"
				  "ffff800010000100 D _etext\n");
	uint64_t start, end;

	(void)state;
	expect(k, 0xffff8000100000ff, "first", "");
	expect_none(k, 0xffff800010000100);
	kallsyms_text(k, &start, &end);
	assert_int_equal(end - start, 0x100);
	kallsyms_destroy(k);
}

static void test_linker_marks_are_no_functions(void **state)
{
	struct kallsyms *k = load("ffffffff81000000 T f\n"
				  "ffffffff81000100 T __sched_text_end\n"
				  "ffffffff81000200 T __entry_text_start\n"
				  "ffffffff81000200 t real_entry\n"
				  "ffffffff81000300 T _etext\n");

	(void)state;
	expect(k, 0xffffffff810000ff, "f", "");
	expect_none(k, 0xffffffff81000100);
	expect(k, 0xffffffff81000200, "real_entry", "");
	kallsyms_destroy(k);
}

static void test_the_best_of_several_names(void **state)
{
	struct kallsyms *k = load("ffffffff81000000 t local\n"
				  "ffffffff81000000 W weak\n"
				  "ffffffff81000000 T global\n"
				  "ffffffff81000010 T __under\n"
				  "ffffffff81000010 T plain\n"
				  "ffffffff81000020 t clone.isra.0\n"
				  "ffffffff81000020 t clone\n"
				  "ffffffff81000028 T __pi___thunk\n"
				  "ffffffff81000028 T __thunk\n"
				  "ffffffff81000030 T b_name\n"
				  "ffffffff81000030 T a_name\n");

	(void)state;
	expect(k, 0xffffffff81000000, "global", "");
	expect(k, 0xffffffff81000010, "plain", "");
	expect(k, 0xffffffff81000020, "clone", "");
	expect(k, 0xffffffff81000028, "__thunk", "");
	expect(k, 0xffffffff81000030, "a_name", "");
	kallsyms_destroy(k);
}

static void test_padding_names(void **state)
{
	struct kallsyms *k = load("ffffffff81000000 t __pfx_f\n"
				  "ffffffff81000010 t f\n"
				  "ffffffff81000020 t __pfx_g\n"
				  "ffffffff81000030 t other\n"
				  "ffffffff81000040 t g\n");

	(void)state;
	expect(k, 0xffffffff81000001, "__pfx_f", "");
	expect(k, 0xffffffff81000011, "f", "");
	expect(k, 0xffffffff81000021, "__pfx_g", "");
	expect(k, 0xffffffff81000031, "other", "");
	expect(k, 0xffffffff81000041, "g", "");
	kallsyms_destroy(k);
}

/* In the order of loading, and far from the kernel: not within 32 bits of it. */
static const char module_text[] = "ffffffff81000000 T _stext\n"
				  "ffffffff81000000 T kernel_one\n"
				  "ffffffff81000100 T _etext\n"
				  "ffff000000008000 t late\t[second]\n"
				  "ffff000000009010 t last\t[second]\n"
				  "ffff000000000000 t early\t[first]\n"
				  "ffff000000000100 T next\t[first]\n"
				  "ffff000000000800 d data\t[first]\n"
				  "ffffffffc0000000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n"
				  "ffffffffc0201000 t ftrace_trampoline\t[__builtin__ftrace]\n";

static void test_modules(void **state)
{
	struct kallsyms *k = load(module_text);
	uint64_t start, end;

	(void)state;
	expect(k, 0xffffffff81000001, "kernel_one", "");
	expect(k, 0xffff000000000001, "early", "first");
	expect(k, 0xffff000000000fff, "next", "first");
	expect(k, 0xffff000000008fff, "late", "second");
	expect(k, 0xffff000000009fff, "last", "second");
	expect(k, 0xffffffffc0000004, "bpf_prog_6deef7357e7b4530_x", "bpf");
	expect(k, 0xffffffffc0201fff, "ftrace_trampoline", "__builtin__ftrace");
	assert_true(kallsyms_module_range(k, "second", &start, &end));
	assert_int_equal(start, 0xffff000000008000);
	assert_int_equal(end, 0xffff00000000a000);
	assert_false(kallsyms_module_range(k, "third", &start, &end));
	kallsyms_destroy(k);
}

static void test_last_function_of_a_module_ends_with_its_page(void **state)
{
	struct kallsyms *k = load(module_text);

	(void)state;
	expect_none(k, 0xffff000000001000);
	expect_none(k, 0xffff00000000a000);
	expect_none(k, 0xffff800000000000);
	expect_none(k, 0xffffffffc0001000);
	expect_none(k, 0xffffffffc0202000);
	kallsyms_destroy(k);
}

static void test_module_that_begins_in_anothers_page(void **state)
{
	struct kallsyms *k = load("ffffffffc0000000 t a\t[one]\nffffffffc0000800 t b\t[two]\n");

	(void)state;
	expect(k, 0xffffffffc00007ff, "a", "one");
	expect(k, 0xffffffffc0000800, "b", "two");
	kallsyms_destroy(k);
}

static void test_hole_in_a_module(void **state)
{
	struct kallsyms *k = load("ffffffffc0000000 t p\t[bpf]\nffffffffc0800000 t q\t[bpf]\n");

	(void)state;
	expect(k, 0xffffffffc0000fff, "p", "bpf");
	expect_none(k, 0xffffffffc0400000);
	expect(k, 0xffffffffc0800000, "q", "bpf");
	kallsyms_destroy(k);
}

static void test_top_of_the_address_space(void **state)
{
	struct kallsyms *k = load("fffffffffffff800 t top\t[m]\n");

	(void)state;
	expect(k, 0xfffffffffffff900, "top", "m");
	kallsyms_destroy(k);
}

static void test_hidden_addresses(void **state)
{
	static const char text[] = "0000000000000000 T _stext\n0000000000000000 t f\n";
	struct kallsyms *k = NULL;

	(void)state;
	assert_int_equal(create_from(text, strlen(text), &k), -EACCES);
	assert_null(k);
}

static void test_no_symbols(void **state)
{
	struct kallsyms *k = NULL;

	(void)state;
	assert_int_equal(create_from("", 0, &k), -EBADMSG);
	assert_int_equal(create_from("\n\n\n", 3, &k), -EBADMSG);
	assert_int_equal(create_from("ffffffff81000000 D data\n", 24, &k), -EBADMSG);
	assert_null(k);
	assert_int_equal(kallsyms_create(-1, &k), -EBADF);
}

static void test_invalid_lines_are_skipped(void **state)
{
	struct kallsyms *k = load("ffffffff81000000 T good\n"
				  "\n"
				  "zzz T bad_address\n"
				  "ffffffff81000010\n"
				  "ffffffff81000010 \n"
				  "ffffffff81000010 T\n"
				  "ffffffff81000010 T \n"
				  " T no_address\n"
				  "ffffffff8100001000 T long_address\n"
				  "ffffffff81000010 Tname\n"
				  "ffffffff81000010 T name with blanks\n"
				  "ffffffff81000010 T n\xff\n"
				  "ffffffff81000010 T name\t\n"
				  "ffffffff81000010 T name\t[]\n"
				  "ffffffff81000010 T name\t[m\n"
				  "ffffffff81000010 T name\tm]\n"
				  "ffffffff81000020 T last");

	(void)state;
	expect(k, 0xffffffff81000010, "good", "");
	expect(k, 0xffffffff81000020, "last", "");
	kallsyms_destroy(k);
}

static void test_overlong_names(void **state)
{
	autocall(buffer_deinit) struct buffer b;
	struct kallsyms *k = NULL;

	(void)state;
	buffer_init(&b, 1 << 20);
	buffer_string(&b, "ffffffff81000000 T f\nffffffff81000010 T ");
	for (int i = 0; i < 1000; i++)
		buffer_string(&b, "n");
	buffer_printf(&b, "\nffffffff81000020 T g\t[%0100d]\n", 0);
	assert_int_equal(create_from(b.bytes, b.size, &k), 0);
	expect(k, 0xffffffff81000020, "f", "");
	kallsyms_destroy(k);
	for (int i = 0; i < 70000; i++)
		buffer_string(&b, "x");
	assert_int_equal(create_from(b.bytes, b.size, &k), -EBADMSG);
}

/* More than one read, so lines are cut anywhere. */
static void test_many_lines(void **state)
{
	autocall(buffer_deinit) struct buffer b;
	struct kallsyms *k = NULL;
	char name[32];

	(void)state;
	buffer_init(&b, 16 << 20);
	for (int i = 0; i < 50000; i++)
		buffer_printf(&b, "%016" PRIx64 " t function_%d\n",
			UINT64_C(0xffffffff81000000) + (uint64_t)i * 16, i);
	assert_int_equal(create_from(b.bytes, b.size, &k), 0);
	for (int i = 0; i < 50000; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		expect(k, UINT64_C(0xffffffff81000000) + (uint64_t)i * 16 + 7, name, "");
	}
	assert_true(kallsyms_bytes(k) < 50000 * 26);
	kallsyms_destroy(k);
}

static int came(struct kallsyms *k, uint64_t start, uint32_t size, const char *name, bool bpf)
{
	return kallsyms_add(k, &(struct kallsyms_event){ start, size, bpf, name, 1000 });
}

static int went(struct kallsyms *k, uint64_t start, const char *name)
{
	return kallsyms_gone(k, &(struct kallsyms_event){ start, 256, true, name, 1000 });
}

static void test_added_programs(void **state)
{
	struct kallsyms *k = load(module_text);
	uint64_t start, end;

	(void)state;
	assert_int_equal(came(k, 0xffffffffc1000000, 256, "bpf_prog_b", true), 0);
	assert_int_equal(came(k, 0xffffffffc0f00000, 256, "bpf_prog_a", true), 0);
	assert_int_equal(came(k, 0xffffffffc2000000, 4096, "kprobe_insn_page", false), 0);
	expect(k, 0xffffffffc0f000ff, "bpf_prog_a", "bpf");
	expect(k, 0xffffffffc1000000, "bpf_prog_b", "bpf");
	expect(k, 0xffffffffc2000001, "kprobe_insn_page", "__builtin__kprobes");
	expect_none(k, 0xffffffffc0f00100);
	assert_true(kallsyms_module_range(k, "bpf", &start, &end));
	assert_int_equal(start, 0xffffffffc0000000);
	assert_int_equal(end, 0xffffffffc1000100);
	assert_int_equal(went(k, 0xffffffffc1000000, "bpf_prog_b"), 0);
	expect(k, 0xffffffffc1000000, "bpf_prog_b", "bpf");
	kallsyms_forget(k, 1001);
	expect_none(k, 0xffffffffc1000000);
	expect(k, 0xffffffffc0f00000, "bpf_prog_a", "bpf");
	kallsyms_destroy(k);
}

static void test_added_replaces_what_it_overlaps(void **state)
{
	struct kallsyms *k = load(module_text);

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(came(k, 0xffffffffc1000000 + i * 64, 64, "bpf_prog_old", true), 0);
	assert_int_equal(came(k, 0xffffffffc1000020, 96, "bpf_prog_new", true), 0);
	expect_none(k, 0xffffffffc1000000);
	expect(k, 0xffffffffc1000020, "bpf_prog_new", "bpf");
	expect(k, 0xffffffffc100007f, "bpf_prog_new", "bpf");
	expect(k, 0xffffffffc1000080, "bpf_prog_old", "bpf");
	kallsyms_destroy(k);
}

static void test_program_loaded_before_the_start_may_be_removed(void **state)
{
	struct kallsyms *k = load(module_text);
	const char *name = "bpf_prog_6deef7357e7b4530_x";

	(void)state;
	went(k, 0xffffffffc0000001, name); /* not its start */
	kallsyms_forget(k, 1001);
	expect(k, 0xffffffffc0000000, name, "bpf");
	went(k, 0xffffffffc0000000, name);
	expect(k, 0xffffffffc0000000, name, "bpf");
	kallsyms_forget(k, 1001);
	expect_none(k, 0xffffffffc0000000);
	went(k, 0xffffffff81000000, "kernel_one"); /* the kernel itself stays */
	kallsyms_forget(k, 1001);
	expect(k, 0xffffffff81000000, "kernel_one", "");
	kallsyms_destroy(k);
}

static const uint64_t PLACE = 0xffffffffc1000000;

/* Their records say that they have a page, in which others are as well. */
static void test_trampolines_end_where_others_begin(void **state)
{
	struct kallsyms *k = load(module_text);

	(void)state;
	assert_int_equal(came(k, PLACE + 0x200, 64, "bpf_prog_before", true), 0);
	assert_int_equal(came(k, PLACE, 4096, "bpf_trampoline_1", true), 0);
	expect(k, PLACE + 0x1ff, "bpf_trampoline_1", "bpf");
	expect(k, PLACE + 0x200, "bpf_prog_before", "bpf");
	expect_none(k, PLACE + 0x240);
	assert_int_equal(came(k, PLACE + 0x100, 64, "bpf_prog_after", true), 0);
	assert_int_equal(came(k, PLACE + 0x180, 4096, "bpf_trampoline_2", true), 0);
	expect(k, PLACE, "bpf_trampoline_1", "bpf");
	expect(k, PLACE + 0xff, "bpf_trampoline_1", "bpf");
	expect(k, PLACE + 0x100, "bpf_prog_after", "bpf");
	expect_none(k, PLACE + 0x140);
	expect(k, PLACE + 0x180, "bpf_trampoline_2", "bpf");
	expect(k, PLACE + 0x200, "bpf_prog_before", "bpf");
	/* A place that was left is free. */
	assert_int_equal(went(k, PLACE + 0x200, "bpf_prog_before"), 0);
	assert_int_equal(came(k, PLACE + 0x1c0, 4096, "bpf_trampoline_3", true), 0);
	expect(k, PLACE + 0x1bf, "bpf_trampoline_2", "bpf");
	expect(k, PLACE + 0x200, "bpf_trampoline_3", "bpf");
	kallsyms_destroy(k);
}

static void test_trampolines_leave_what_was_there_before_us(void **state)
{
	const struct kallsyms_event event = { UINT64_C(0xffffffffbfffff00), 4096, true,
		"bpf_trampoline_1", 1000 };
	const char *name = "bpf_prog_6deef7357e7b4530_x";
	struct kallsyms *k = load(module_text);

	(void)state;
	assert_int_equal(kallsyms_add(k, &event), 0);
	expect(k, event.start + 0xff, event.name, "bpf");
	expect(k, 0xffffffffc0000000, name, "bpf");
	assert_int_equal(kallsyms_gone(k, &event), 0);
	kallsyms_forget(k, 1001);
	expect(k, 0xffffffffc0000000, name, "bpf");
	expect_none(k, event.start);
	kallsyms_destroy(k);
}

static const char *name_of(const struct kallsyms *k, uint64_t kaddr, uint32_t tenant)
{
	struct ksymbol symbol;

	return kallsyms_lookup_of(k, kaddr, tenant, &symbol) ? symbol.name : "";
}

static void test_tenants_of_an_address_keep_their_names(void **state)
{
	struct kallsyms *k = load(module_text);
	uint32_t first, second;

	(void)state;
	assert_int_equal(kallsyms_tenant(k, PLACE), 0);
	came(k, PLACE, 256, "bpf_prog_first", true);
	first = kallsyms_tenant(k, PLACE + 8);
	assert_int_not_equal(first, 0);
	went(k, PLACE, "bpf_prog_first");
	assert_int_equal(kallsyms_tenant(k, PLACE + 8), first);
	came(k, PLACE - 64, 256, "bpf_prog_second", true);
	second = kallsyms_tenant(k, PLACE + 8);
	assert_int_not_equal(second, first);
	assert_string_equal(name_of(k, PLACE + 8, first), "bpf_prog_first");
	assert_string_equal(name_of(k, PLACE + 8, second), "bpf_prog_second");
	assert_string_equal(name_of(k, PLACE + 250, first), "bpf_prog_first");
	/* Sampled before either of them was loaded. */
	assert_string_equal(name_of(k, PLACE + 8, 0), "");
	kallsyms_forget(k, 1000);
	assert_string_equal(name_of(k, PLACE + 8, first), "bpf_prog_first");
	kallsyms_forget(k, 1001);
	assert_string_equal(name_of(k, PLACE + 8, first), "");
	assert_string_equal(name_of(k, PLACE + 8, second), "bpf_prog_second");
	kallsyms_destroy(k);
}

/* Its record names it even if the table already shows its successor. */
static void test_tenant_from_the_start_is_named_by_the_record_of_its_end(void **state)
{
	struct kallsyms *k = load("ffffffff81000000 T _stext\nffffffff81002000 T _etext\n"
				  "ffffffffc1000000 t bpf_prog_second\t[bpf]\n");

	(void)state;
	went(k, PLACE, "bpf_prog_first");
	assert_int_equal(kallsyms_tenant(k, PLACE), 0);
	assert_string_equal(name_of(k, PLACE, 0), "bpf_prog_first");
	came(k, PLACE, 256, "bpf_prog_second", true);
	assert_string_equal(name_of(k, PLACE, 0), "bpf_prog_first");
	assert_string_equal(name_of(k, PLACE, kallsyms_tenant(k, PLACE)), "bpf_prog_second");
	kallsyms_forget(k, 1001);
	assert_string_equal(name_of(k, PLACE, 0), "");
	kallsyms_destroy(k);
}

static void test_tenants_are_bounded(void **state)
{
	struct kallsyms *k = load(module_text);
	uint32_t first = 0, last = 0;
	size_t bytes = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(came(k, PLACE, 256, "bpf_prog_a", true), 0);
		last = kallsyms_tenant(k, PLACE);
		first = first ?: last;
		went(k, PLACE, "bpf_prog_a");
		if (i == 2000)
			bytes = kallsyms_bytes(k);
	}
	assert_int_equal(kallsyms_bytes(k), bytes);
	assert_int_equal(kallsyms_refused(k), 5000 - 1 - 1024);
	assert_string_equal(name_of(k, PLACE, first), "");
	assert_string_equal(name_of(k, PLACE, last - 1), "bpf_prog_a");
	kallsyms_destroy(k);
}

#define KERNEL_LINES "ffffffff81000000 T _stext\nffffffff81002000 T _etext\n"

static void test_modules_keep_their_names_when_the_table_is_read_again(void **state)
{
	struct kallsyms *k = load(KERNEL_LINES "ffffffffc1000000 t one_work\t[one]\n"
					       "ffffffffc2000000 t two_work\t[two]\n"
					       "ffffffffc3000000 t three_work\t[three]\n");

	(void)state;
	came(k, 0xffffffffc5000000, 256, "bpf_prog_a", true);
	assert_int_equal(kallsyms_replace(&k,
				 load(KERNEL_LINES "ffffffffc2000000 t four_work\t[four]\n"
						   "ffffffffc3000000 t three_work\t[three]\n"
						   "ffffffffc4000000 t five_work\t[five]\n"),
				 500),
		0);
	expect(k, 0xffffffffc1000000, "one_work", "one");
	expect_none(k, 0xffffffffc2000000); /* one's or the other's */
	expect(k, 0xffffffffc3000000, "three_work", "three");
	expect(k, 0xffffffffc4000000, "five_work", "five");
	expect(k, 0xffffffffc5000000, "bpf_prog_a", "bpf");
	kallsyms_forget(k, 500);
	expect(k, 0xffffffffc1000000, "one_work", "one");
	kallsyms_forget(k, 501);
	expect_none(k, 0xffffffffc1000000);
	expect(k, 0xffffffffc2000000, "four_work", "four");
	expect(k, 0xffffffffc5000000, "bpf_prog_a", "bpf");
	kallsyms_destroy(k);
}

static void test_tables_that_are_kept_are_bounded(void **state)
{
	struct kallsyms *k = load(kernel_text), *one_more = load(kernel_text);

	(void)state;
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(kallsyms_replace(&k, load(kernel_text), i), 0);
	assert_int_equal(kallsyms_replace(&k, one_more, 5), -E2BIG);
	kallsyms_forget(k, 2);
	assert_int_equal(kallsyms_replace(&k, one_more, 5), 0);
	kallsyms_destroy(k);
}

static void test_invalid_additions_are_refused(void **state)
{
	struct kallsyms *k = load(kernel_text);

	(void)state;
	assert_int_equal(came(k, 4096, 0, "empty", true), -EBADMSG);
	assert_int_equal(came(k, 4096, 16, "", true), -EBADMSG);
	assert_int_equal(came(k, UINT64_MAX - 8, 16, "wraps", true), -EBADMSG);
	assert_int_equal(came(k, 4096, 16, "b\xff\n", true), 0);
	expect(k, 4096, "b??", "bpf");
	kallsyms_destroy(k);
}

/* ---- this machine's own ------------------------------------------------------------------- */

struct naive {
	uint64_t kaddr;
	char type;
	char name[520];
};

static int compare_naive(const void *a, const void *b)
{
	const struct naive *left = a, *right = b;

	return left->kaddr < right->kaddr ? -1 : left->kaddr > right->kaddr;
}

/* Number of lines up to KADDR. */
static size_t lines_up_to(const struct naive *sorted, size_t count, uint64_t kaddr)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (sorted[middle].kaddr <= kaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* True if NAME is one of the symbols at the highest code address up to KADDR. */
static bool is_right(const struct naive *sorted, size_t count, uint64_t kaddr, const char *name)
{
	size_t end = lines_up_to(sorted, count, kaddr);

	for (size_t i = end; i-- > 0 && sorted[i].kaddr == sorted[end - 1].kaddr;) {
		if (!strcmp(sorted[i].name, name))
			return true;
	}
	return false;
}

/* True if only a linker mark is at that address. */
static bool is_behind_mark(const struct naive *sorted, size_t count, uint64_t kaddr)
{
	size_t end = lines_up_to(sorted, count, kaddr);

	for (size_t i = end; i-- > 0 && sorted[i].kaddr == sorted[end - 1].kaddr;) {
		if (!strstr(sorted[i].name, "text"))
			return false;
	}
	return end > 0;
}

static size_t read_naively(const char *path, struct naive *all, size_t max)
{
	autofclose FILE *file = fopen(path, "r");
	size_t count = 0;
	char line[1024];

	while (file && count < max && fgets(line, sizeof(line), file)) {
		struct naive *n = &all[count];

		if (sscanf(line, "%" SCNx64 " %c %519s", &n->kaddr, &n->type, n->name) == 3 &&
			strchr("tTwW", n->type))
			count++;
	}
	return count;
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void test_this_machines_kallsyms(void **state)
{
	enum { MAX = 500000, ADDRESSES = 10000 };
	struct naive *all = calloc(MAX, sizeof(*all));
	autoclose int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	size_t count, named = 0;
	struct kallsyms *k;
	uint64_t start, end, x = 88172645463325252u;
	int err;

	(void)state;
	assert_non_null(all);
	err = kallsyms_create(fd, &k);
	if (err == -EACCES || fd < 0) {
		free(all);
		skip();
	}
	assert_int_equal(err, 0);
	count = read_naively("/proc/kallsyms", all, MAX);
	qsort(all, count, sizeof(*all), compare_naive);
	kallsyms_text(k, &start, &end);
	assert_true(start < end);
	for (int i = 0; i < ADDRESSES; i++) {
		uint64_t kaddr = start + next_random(&x) % (end - start);
		struct ksymbol symbol;

		if (!kallsyms_lookup(k, kaddr, &symbol)) {
			assert_true(is_behind_mark(all, count, kaddr));
			continue;
		}
		named++;
		assert_true(is_right(all, count, kaddr, symbol.name));
	}
	assert_true(named > ADDRESSES * 80 / 100);
	kallsyms_destroy(k);
	free(all);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_functions),
		cmocka_unit_test(test_marks_are_found_whatever_their_type),
		cmocka_unit_test(test_outside_of_all_code_there_is_no_name),
		cmocka_unit_test(test_symbols_of_any_type_end_functions),
		cmocka_unit_test(test_linker_marks_are_no_functions),
		cmocka_unit_test(test_the_best_of_several_names),
		cmocka_unit_test(test_padding_names),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_last_function_of_a_module_ends_with_its_page),
		cmocka_unit_test(test_module_that_begins_in_anothers_page),
		cmocka_unit_test(test_hole_in_a_module),
		cmocka_unit_test(test_top_of_the_address_space),
		cmocka_unit_test(test_hidden_addresses),
		cmocka_unit_test(test_no_symbols),
		cmocka_unit_test(test_invalid_lines_are_skipped),
		cmocka_unit_test(test_overlong_names),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_added_programs),
		cmocka_unit_test(test_added_replaces_what_it_overlaps),
		cmocka_unit_test(test_trampolines_end_where_others_begin),
		cmocka_unit_test(test_trampolines_leave_what_was_there_before_us),
		cmocka_unit_test(test_program_loaded_before_the_start_may_be_removed),
		cmocka_unit_test(test_tenants_of_an_address_keep_their_names),
		cmocka_unit_test(test_tenant_from_the_start_is_named_by_the_record_of_its_end),
		cmocka_unit_test(test_tenants_are_bounded),
		cmocka_unit_test(test_modules_keep_their_names_when_the_table_is_read_again),
		cmocka_unit_test(test_tables_that_are_kept_are_bounded),
		cmocka_unit_test(test_invalid_additions_are_refused),
		cmocka_unit_test(test_this_machines_kallsyms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
