/* SPDX-License-Identifier: Apache-2.0 */
/* The running kernel as a file: what libelf reads in it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/kernel_file.h"
#include "symbolizer/kernel_image.h"

static const uint64_t start = UINT64_C(0xffffffff81000000), end = UINT64_C(0xffffffff81812345);

static void has_the_text_where_it_is_linked(void **state)
{
	struct module_id id;
	struct build_id build_id;
	autoclose int fd = -1;
	GElf_Phdr text;
	const void *note;
	Elf *elf;

	(void)state;
	assert_int_equal(kernel_file_open(start, end, &fd, &id), 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_kind(elf), ELF_K_ELF);
	assert_non_null(gelf_getphdr(elf, 0, &text));
	assert_int_equal(text.p_type, PT_LOAD);
	assert_int_equal(text.p_flags, PF_R | PF_X);
	assert_int_equal(text.p_vaddr, start);
	assert_int_equal(text.p_memsz, end - start);
	assert_int_equal(kernel_build_id(&build_id), 0);
	assert_true(build_id_equal(&id.build_id, &build_id));
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		size_t names;
		GElf_Shdr header;

		assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
		assert_non_null(gelf_getshdr(section, &header));
		note = header.sh_type == SHT_NOTE ? elf_getdata(section, NULL)->d_buf : NULL;
		if (!strcmp(elf_strptr(elf, names, header.sh_name), ".notes"))
			assert_memory_equal((const char *)note + sizeof(Elf64_Nhdr) + 4,
				build_id.bytes, build_id.size);
	}
	assert_int_equal(elf_ndxscn(elf_getscn(elf, 3)), 3);
	elf_end(elf);
}

static void nobody_can_change_it(void **state)
{
	struct module_id id;
	autoclose int fd = -1;

	(void)state;
	assert_int_equal(kernel_file_open(start, end, &fd, &id), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void no_text_is_refused(void **state)
{
	struct module_id id;
	int fd;

	(void)state;
	assert_int_equal(kernel_file_open(end, start, &fd, &id), -EINVAL);
	assert_int_equal(kernel_file_open(start, start, &fd, &id), -EINVAL);
	assert_int_equal(kernel_file_open(start, start + (UINT64_C(2) << 30), &fd, &id), -EINVAL);
}

static void its_debug_file_is_named_after_the_release(void **state)
{
	struct utsname host;

	(void)state;
	assert_int_equal(uname(&host), 0);
	assert_int_equal(strncmp(kernel_file_debug_name(), "/boot/vmlinux-", 14), 0);
	assert_string_equal(kernel_file_debug_name() + 14, host.release);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_text_where_it_is_linked),
		cmocka_unit_test(nobody_can_change_it),
		cmocka_unit_test(no_text_is_refused),
		cmocka_unit_test(its_debug_file_is_named_after_the_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
