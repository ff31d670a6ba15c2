/* SPDX-License-Identifier: Apache-2.0 */
/* This kernel's answers about mapped files; skipped on kernels without the query. */
#include "agent/sampler/files/mapped_build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/elf/build_id.h"
#include "tests/unit/elf_writer.h"

enum { PAGE_BYTES = 4096 };

static const uint8_t id_bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
	19, 20 };

static int self_fd(void)
{
	return open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Asks for the page at AT. */
static int ask_page(const void *at, struct build_id *ret_id)
{
	autoclose int task_fd = self_fd();
	uint64_t start = (uint64_t)(uintptr_t)at;
	int err = mapped_build_id_read(task_fd, start, start + PAGE_BYTES, ret_id);

	if (err == -ENOTTY)
		skip();
	return err;
}

/* Maps one page of FD between two inaccessible pages, so that the kernel merges it with none. */
static void *map_page(int fd)
{
	void *at = mmap(NULL, 3 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	at = mmap((char *)at + PAGE_BYTES, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	assert_true(at != MAP_FAILED);
	return at;
}

static int elf_file(void)
{
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", 0x1000, 0x100);
	elf_writer_build_id(&w, 0x300, id_bytes, sizeof(id_bytes));
	fd = elf_writer_file(&w);
	elf_writer_deinit(&w);
	return fd;
}

static void the_build_id_is_that_of_the_mapped_file(void **state)
{
	autoclose int fd = elf_file();
	void *at = map_page(fd);
	struct build_id id, read;

	(void)state;
	assert_int_equal(ask_page(at, &id), 0);
	assert_int_equal(build_id_read(fd, &read), 0);
	assert_int_equal(id.size, sizeof(id_bytes));
	assert_true(build_id_equal(&id, &read));
	munmap((char *)at - PAGE_BYTES, 3 * PAGE_BYTES);
}

static void a_file_that_is_not_elf_has_no_build_id(void **state)
{
	autoclose int fd = memfd_create("plain", MFD_CLOEXEC);
	struct build_id id = { .size = 99 };
	void *at;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGE_BYTES), 0);
	at = map_page(fd);
	assert_int_equal(ask_page(at, &id), -ENOENT);
	assert_int_equal(id.size, 99);
	munmap((char *)at - PAGE_BYTES, 3 * PAGE_BYTES);
}

/* At these addresses is a longer mapping, or none. */
static void only_that_very_mapping_is_asked_for(void **state)
{
	autoclose int fd = elf_file(), task_fd = self_fd();
	void *at = map_page(fd);
	uint64_t start = (uint64_t)(uintptr_t)at;
	struct build_id id = { .size = 99 };

	(void)state;
	assert_int_equal(ask_page(at, &id), 0);
	id.size = 99;
	assert_int_equal(
		mapped_build_id_read(task_fd, start, start + 2 * PAGE_BYTES, &id), -ESTALE);
	assert_int_equal(
		mapped_build_id_read(task_fd, start + 1, start + PAGE_BYTES, &id), -ESTALE);
	munmap((char *)at - PAGE_BYTES, 3 * PAGE_BYTES);
	assert_int_equal(mapped_build_id_read(task_fd, start, start + PAGE_BYTES, &id), -ESTALE);
	assert_int_equal(id.size, 99);
}

static void without_the_process_there_is_an_error(void **state)
{
	struct build_id id;

	(void)state;
	assert_int_equal(mapped_build_id_read(-1, 0x1000, 0x2000, &id), -EBADF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_build_id_is_that_of_the_mapped_file),
		cmocka_unit_test(a_file_that_is_not_elf_has_no_build_id),
		cmocka_unit_test(only_that_very_mapping_is_asked_for),
		cmocka_unit_test(without_the_process_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
