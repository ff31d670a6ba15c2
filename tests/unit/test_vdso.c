/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/vdso.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

struct fixture {
	int fd;
	struct module_id id;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return vdso_open(&f->fd, &f->id);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->fd);
	free(f);
	return 0;
}

static bool has_symbol(Elf *elf, const char *wanted)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && i < (int)(header.sh_size / header.sh_entsize); i++) {
			GElf_Sym symbol;
			const char *name;

			if (!gelf_getsym(data, i, &symbol))
				return false;
			name = elf_strptr(elf, header.sh_link, symbol.st_name);
			if (name && !strcmp(name, wanted))
				return true;
		}
	}
	return false;
}

/* libelf checks that it is a complete ELF file. */
static void test_is_an_elf_file_with_the_clock_functions(void **state)
{
	struct fixture *f = *state;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(f->fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_kind(elf), ELF_K_ELF);
	assert_true(has_symbol(elf, "__vdso_clock_gettime") ||
		    has_symbol(elf, "__kernel_clock_gettime"));
	elf_end(elf);
}

static void test_nobody_can_change_it(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(pwrite(f->fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(f->fd, 0), -1);
	assert_true(fcntl(f->fd, F_GETFD) & FD_CLOEXEC);
}

static void test_has_the_same_identity_each_time(void **state)
{
	struct fixture *f = *state;
	struct module_id again;
	autoclose int fd = -1;

	assert_true(f->id.build_id.size >= 8);
	assert_int_equal(vdso_open(&fd, &again), 0);
	assert_true(module_id_equal(&f->id, &again));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_is_an_elf_file_with_the_clock_functions),
		TEST(test_nobody_can_change_it),
		TEST(test_has_the_same_identity_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
