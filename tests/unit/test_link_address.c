/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel addresses as they leave: the same whatever KASLR has chosen, and back again. */
#include "symbolizer/kallsyms/link_address.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"

#define LINKED UINT64_C(0xffffffff81000000)

/* One boot: where the kernel, a module and a BPF program are. */
struct boot {
	uint64_t text, module, program;
};

static const struct boot boots[] = {
	{ LINKED, 0xffffffffc0123000, 0xffffffffc0200a40 },
	{ 0xffffffffb7200000, 0xffffffffc0a51000, 0xffffffffc0311084 },
};

static int text_fd(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static struct kallsyms *load(const char *text)
{
	autoclose int fd = text_fd(text);
	struct kallsyms *k = NULL;

	assert_int_equal(kallsyms_create(fd, &k), 0);
	return k;
}

static struct kallsyms *kernel_of(const struct boot *boot)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"%" PRIx64 " T _text\n%" PRIx64 " T _stext\n%" PRIx64 " T schedule\n%" PRIx64
		" T _etext\n%" PRIx64 " T _sinittext\n%" PRIx64 " t init_one\n%" PRIx64
		" t hook\t[net]\n%" PRIx64 " t last\t[net]\n%" PRIx64 " t bpf_prog_1_x\t[bpf]\n",
		boot->text, boot->text + 0x1000, boot->text + 0x2000, boot->text + 0x4000,
		boot->text + 0x10000, boot->text + 0x10000, boot->module + 0x10,
		boot->module + 0x900, boot->program);
	return load(text);
}

static uint64_t linked(const struct kallsyms *k, uint64_t kaddr, const char *image)
{
	struct ksymbol symbol;

	assert_true(kallsyms_lookup(k, kaddr, &symbol));
	assert_string_equal(symbol.image, image);
	return link_address_of(&symbol, kaddr);
}

static void expect_kaddr(
	const struct kallsyms *k, const char *image, uint64_t address, uint64_t expected)
{
	uint64_t kaddr;

	assert_true(link_address_resolve(k, image, address, &kaddr));
	assert_int_equal(kaddr, expected);
}

static void link_addresses_are_those_of_every_boot(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(boots); i++) {
		const struct boot *boot = &boots[i];
		struct kallsyms *k = kernel_of(boot);
		uint64_t start, end;

		assert_int_equal(linked(k, boot->text + 0x2008, ""), LINKED + 0x2008);
		assert_int_equal(linked(k, boot->text + 0x10004, ""), LINKED + 0x10004);
		assert_int_equal(linked(k, boot->module + 0x904, "net"), LINK_IMAGES + 0x904);
		assert_int_equal(linked(k, boot->program + 4, "bpf_prog_1_x"), LINK_IMAGES + 4);
		assert_true(link_address_text(k, &start, &end));
		assert_int_equal(start, LINKED + 0x1000);
		assert_int_equal(end, LINKED + 0x4000);
		kallsyms_destroy(k);
	}
}

static void link_addresses_find_the_running_kernels(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(boots); i++) {
		const struct boot *boot = &boots[i];
		struct kallsyms *k = kernel_of(boot);
		uint64_t kaddr;

		expect_kaddr(k, "", LINKED + 0x2008, boot->text + 0x2008);
		expect_kaddr(k, "net", LINK_IMAGES + 0x904, boot->module + 0x904);
		expect_kaddr(k, "bpf_prog_1_x", LINK_IMAGES + 4, boot->program + 4);
		assert_false(link_address_resolve(k, "", LINKED - 1, &kaddr));
		assert_false(link_address_resolve(k, "", LINK_UNKNOWN, &kaddr));
		assert_false(link_address_resolve(k, "net", LINK_IMAGES_END, &kaddr));
		assert_false(link_address_resolve(k, "other", LINK_IMAGES, &kaddr));
		assert_false(link_address_resolve(k, "bpf", LINK_IMAGES, &kaddr));
		assert_false(link_address_resolve(k, "schedule", LINK_IMAGES, &kaddr));
		kallsyms_destroy(k);
	}
}

static void aarch64_has_a_base_of_its_own(void **state)
{
	struct kallsyms *k = load("ffffb5c2d1400000 T _text\nffffb5c2d1410000 T _stext\n"
				  "ffffb5c2d1420000 T schedule\nffffb5c2d2000000 T _etext\n");

	(void)state;
	assert_int_equal(linked(k, 0xffffb5c2d1420004, ""), 0xffff800080020004);
	expect_kaddr(k, "", 0xffff800080020004, 0xffffb5c2d1420004);
	kallsyms_destroy(k);
}

static void unknown_places_are_all_one(void **state)
{
	struct kallsyms *k = kernel_of(&boots[1]);
	uint64_t text = boots[1].text;

	(void)state;
	assert_int_equal(link_address_in_text(k, text + 0x1800), LINKED + 0x1800);
	assert_int_equal(link_address_in_text(k, text + 0x800), LINK_UNKNOWN);
	assert_int_equal(link_address_in_text(k, text + 0x4000), LINK_UNKNOWN);
	assert_int_equal(link_address_in_text(k, 0xffff888000001000), LINK_UNKNOWN);
	kallsyms_destroy(k);
}

/* The kernel lists it with its image, but it is not a part that KASLR has moved. */
static void a_symbol_outside_of_the_kernels_image(void **state)
{
	struct kallsyms *k = load("fffffe0000002000 T entry_trampoline\n"
				  "ffffffffb7200000 T _text\nffffffffb7200000 T _stext\n"
				  "ffffffffb7201000 T _etext\n");

	(void)state;
	assert_int_equal(linked(k, 0xfffffe0000002004, ""), LINK_UNKNOWN);
	kallsyms_destroy(k);
}

static void without_text_nothing_of_the_kernel_has_an_address(void **state)
{
	struct kallsyms *k = load("ffffffffb7201000 T schedule\nffffffffb7202000 t x\t[net]\n");
	uint64_t start, end, kaddr;

	(void)state;
	assert_int_equal(linked(k, 0xffffffffb7201004, ""), LINK_UNKNOWN);
	assert_int_equal(linked(k, 0xffffffffb7202004, "net"), LINK_IMAGES + 4);
	assert_false(link_address_text(k, &start, &end));
	assert_int_equal(link_address_in_text(k, 0xffffffffb7201004), LINK_UNKNOWN);
	assert_false(link_address_resolve(k, "", LINKED, &kaddr));
	kallsyms_destroy(k);
}

static void stext_stands_in_for_text(void **state)
{
	struct kallsyms *k = load("ffffffffb7200000 T _stext\nffffffffb7200100 T schedule\n"
				  "ffffffffb7201000 T _etext\n");

	(void)state;
	assert_int_equal(linked(k, 0xffffffffb7200104, ""), LINKED + 0x104);
	kallsyms_destroy(k);
}

/* ---- /proc/modules ----------------------------------------------------------------------------
 */

static const char loading[] = "ffffffffb7200000 T _text\nffffffffb7201000 T _etext\n"
			      "ffffffffc0100000 t init_net\t[net]\n"
			      "ffffffffc0500010 t hook\t[net]\n"
			      "ffffffffc0900000 t other\t[other]\n";

static void place(struct kallsyms *k, const char *modules)
{
	autoclose int fd = text_fd(modules);

	assert_int_equal(kallsyms_place_modules(k, fd), 0);
}

/* While a module is loaded, kallsyms has its functions that run once, anywhere. */
static void a_module_begins_where_the_kernel_says(void **state)
{
	struct kallsyms *k = load(loading);

	(void)state;
	assert_int_equal(linked(k, 0xffffffffc0500014, "net"), LINK_IMAGES + 0x400014);
	place(k, "other 4096 0 - Live 0xffffffffc0900000\n"
		 "net 16384 2 a,b, Live 0xffffffffc0500000 (OE)\n");
	assert_int_equal(linked(k, 0xffffffffc0500014, "net"), LINK_IMAGES + 0x14);
	assert_int_equal(linked(k, 0xffffffffc0100004, "init_net"), LINK_IMAGES + 4);
	assert_int_equal(linked(k, 0xffffffffc0900004, "other"), LINK_IMAGES + 4);
	kallsyms_destroy(k);
}

static void hidden_and_malformed_lines_change_nothing(void **state)
{
	struct kallsyms *k = load(loading);
	char line[512];

	(void)state;
	place(k, "");
	place(k, "net 16384 2 - Live 0x0000000000000000\n");
	place(k, "net 0 2 - Live 0xffffffffc0500000\n");
	place(k, "net\n\nnet x 2 - Live 0xffffffffc0500000\nnet 1 2 - Live\n");
	snprintf(line, sizeof(line), "%0400d 16384 2 - Live 0xffffffffc0500000\nnet", 1);
	place(k, line);
	place(k, "nobody 16384 2 - Live 0xffffffffc0500000\n");
	assert_int_equal(linked(k, 0xffffffffc0500014, "net"), LINK_IMAGES + 0x400014);
	assert_true(kallsyms_place_modules(k, -1) < 0);
	kallsyms_destroy(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_addresses_are_those_of_every_boot),
		cmocka_unit_test(link_addresses_find_the_running_kernels),
		cmocka_unit_test(aarch64_has_a_base_of_its_own),
		cmocka_unit_test(unknown_places_are_all_one),
		cmocka_unit_test(a_symbol_outside_of_the_kernels_image),
		cmocka_unit_test(without_text_nothing_of_the_kernel_has_an_address),
		cmocka_unit_test(stext_stands_in_for_text),
		cmocka_unit_test(a_module_begins_where_the_kernel_says),
		cmocka_unit_test(hidden_and_malformed_lines_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
