/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/sampler/process/mappings.h"
#include "base/cleanup.h"
#include "tests/unit/bytes.h"
#include "tests/unit/direct_build_ids.h"
#include "tests/unit/elf_writer.h"
#include "tests/unit/fake_proc.h"

enum { PID = 42, START = 0x400000, END = 0x401000 };

/* ---- modules ---- */

static struct module_id id_of(uint8_t byte)
{
	struct module_id id = { .build_id.size = 20 };

	memset(id.build_id.bytes, byte, 20);
	return id;
}

static void one_identity_is_one_module(void **state)
{
	const struct module_id a = id_of(1), b = id_of(2);
	struct module *first, *again, *other;
	struct modules *m;

	(void)state;
	assert_int_equal(modules_create(10, &m), 0);
	assert_int_equal(modules_get(m, MODULE_FILE, &a, "/lib/a", &first), 0);
	assert_int_equal(modules_get(m, MODULE_FILE, &b, "/lib/a", &other), 0);
	assert_int_equal(modules_get(m, MODULE_FILE, &a, "/elsewhere/a", &again), 0);
	assert_ptr_equal(again, first);
	assert_ptr_not_equal(other, first);
	assert_string_equal(first->path, "/lib/a");
	assert_int_equal(first->number, 1);
	assert_ptr_equal(modules_find(m, 2), other);
	assert_null(modules_find(m, 0));
	assert_null(modules_find(m, 3));
	assert_int_equal(modules_count(m), 2);
	modules_destroy(m);
}

static void files_without_a_build_id_differ_by_any_number(void **state)
{
	struct module_id id = { .file = { 1, 2, 3, 4 } };
	struct module *module;
	struct modules *m;

	(void)state;
	assert_int_equal(modules_create(10, &m), 0);
	modules_get(m, MODULE_FILE, &id, "/a", &module);
	id.file.mtime_ns++;
	modules_get(m, MODULE_FILE, &id, "/a", &module);
	id.file.size_bytes++;
	modules_get(m, MODULE_FILE, &id, "/a", &module);
	modules_get(m, MODULE_FILE, &id, "/b", &module);
	assert_int_equal(modules_count(m), 3);
	modules_destroy(m);
}

static void what_is_no_file_is_one_of_its_kind(void **state)
{
	const struct module_id none = { 0 };
	struct module *anon, *vdso, *special, *other, *again;
	struct modules *m;

	(void)state;
	assert_int_equal(modules_create(10, &m), 0);
	modules_get(m, MODULE_ANON, &none, "//anon", &anon);
	modules_get(m, MODULE_ANON, &none, "[heap]", &again);
	assert_ptr_equal(anon, again);
	modules_get(m, MODULE_VDSO, &none, "[vdso]", &vdso);
	assert_ptr_not_equal(vdso, anon);
	modules_get(m, MODULE_SPECIAL, &none, "[vsyscall]", &special);
	modules_get(m, MODULE_SPECIAL, &none, "[uprobes]", &other);
	assert_ptr_not_equal(special, other);
	modules_get(m, MODULE_SPECIAL, &none, "[vsyscall]", &again);
	assert_ptr_equal(special, again);
	modules_destroy(m);
}

static void refuses_modules_over_the_limit(void **state)
{
	struct module *module, *known;
	struct module_id id = id_of(1);
	struct modules *m;

	(void)state;
	assert_int_equal(modules_create(2, &m), 0);
	assert_int_equal(modules_get(m, MODULE_FILE, &id, "/a", &known), 0);
	id = id_of(2);
	assert_int_equal(modules_get(m, MODULE_FILE, &id, "/a", &module), 0);
	id = id_of(3);
	assert_int_equal(modules_get(m, MODULE_FILE, &id, "/a", &module), -E2BIG);
	id = id_of(1);
	assert_int_equal(modules_get(m, MODULE_FILE, &id, "/a", &module), 0);
	assert_ptr_equal(module, known);
	assert_int_equal(modules_count(m), 2);
	modules_destroy(m);
}

static bool is_even(void *context, struct module *module)
{
	(void)context;
	return module->id.file.inode % 2 == 0;
}

/* A module that stays is found by number and identity; a removed one gets a new number. */
static void swept_modules_are_gone_and_the_others_found(void **state)
{
	enum { COUNT = 1000 };
	struct module_id id = { .file = { 1, 0, 3, 4 } };
	uint32_t numbers[COUNT];
	struct module *module;
	struct modules *m;
	size_t i = 0, walked = 0;

	(void)state;
	assert_int_equal(modules_create(COUNT, &m), 0);
	for (id.file.inode = 0; id.file.inode < COUNT; id.file.inode++) {
		assert_int_equal(modules_get(m, MODULE_FILE, &id, "/a", &module), 0);
		numbers[id.file.inode] = module->number;
	}
	assert_int_equal(modules_sweep(m, is_even, NULL), COUNT / 2);
	assert_int_equal(modules_count(m), COUNT / 2);
	while (modules_next(m, &i))
		walked++;
	assert_int_equal(walked, COUNT / 2);
	for (id.file.inode = 0; id.file.inode < COUNT; id.file.inode++) {
		bool stays = id.file.inode % 2;

		module = modules_find(m, numbers[id.file.inode]);
		assert_int_equal(!!module, stays);
		assert_int_equal(modules_get(m, MODULE_FILE, &id, "/a", &module), 0);
		assert_int_equal(module->number == numbers[id.file.inode], stays);
		assert_int_equal(module->number > COUNT, !stays);
	}
	modules_destroy(m);
}

/* ---- opening ---- */

static const struct fake_process some_process = { .comm = "program", .maps = "" };

static struct module module_of(const struct fake_file *file, char *path)
{
	struct module module = { .kind = MODULE_FILE, .path = path };

	module.id.build_id = file->build_id;
	module.id.file = (struct file_id){ .device = file->device, .inode = file->inode };
	return module;
}

static void look_at(const struct fake_file *file, struct module *module)
{
	autoclose int fd = open(file->path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(module_identify(&direct_build_ids, fd, &module->id), 0);
	assert_true(build_id_equal(&module->id.build_id, &file->build_id));
}

static int open_module_by(
	struct fake_proc *p, const struct module *module, const struct build_id_reader *reader)
{
	const struct module_opener opener = { .proc_fd = p->fd, .build_ids = reader };
	const struct mapping mapping = {
		.start = START, .end = END, .module = (struct module *)module
	};
	int fd = -1, err = module_open(&opener, PID, &mapping, NULL, &fd);

	if (!err) {
		assert_true(fd >= 0);
		close(fd);
	} else {
		assert_int_equal(fd, -1);
	}
	return err;
}

static int open_module(struct fake_proc *p, const struct module *module)
{
	return open_module_by(p, module, &direct_build_ids);
}

static int read_later(
	void *context, const struct build_id_question *question, struct build_id *ret_id)
{
	(void)context;
	(void)question;
	(void)ret_id;
	return -EAGAIN;
}

/* Its path leads to another file, which says nothing about the mapped one. */
static void a_file_whose_build_id_cannot_be_read_now_is_not_another_one(void **state)
{
	const struct build_id_reader later = { .read = read_later };
	struct fake_file file, other;
	struct module module;
	struct fake_proc p;

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_elf(&p, "lib", 1, &file);
	fake_proc_elf(&p, "other", 2, &other);
	fake_proc_map_file(&p, PID, START, END, file.path);
	module = module_of(&file, other.path);
	assert_int_equal(open_module_by(&p, &module, &later), -EAGAIN);
	assert_int_equal(open_module(&p, &module), 0);
	fake_proc_deinit(&p);
}

static void opens_the_mapped_file_even_when_it_has_gone(void **state)
{
	struct fake_file file, other;
	struct module module;
	struct fake_proc p;
	char path[] = "/nowhere";

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_elf(&p, "lib", 1, &file);
	fake_proc_elf(&p, "other", 2, &other);
	module = module_of(&file, path);
	assert_true(open_module(&p, &module) < 0);
	fake_proc_map_file(&p, PID, START, END, file.path);
	assert_int_equal(open_module(&p, &module), 0);
	/* Now another file is mapped there. */
	fake_proc_map_file(&p, PID, START, END, other.path);
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_remove(&p, PID);
	assert_int_equal(open_module(&p, &module), -ESRCH);
	fake_proc_deinit(&p);
}

/* The file exists only as a mapping; each additional descriptor lets one more step succeed. */
static void a_shortage_of_descriptors_is_told_as_such(void **state)
{
	struct rlimit whole, few;
	struct fake_file file;
	struct module module;
	struct fake_proc p;
	char path[] = "/nowhere";
	int lowest, err = -1;

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_elf(&p, "lib", 1, &file);
	fake_proc_map_file(&p, PID, START, END, file.path);
	module = module_of(&file, path);
	lowest = dup(p.fd);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	few = whole;
	for (int more = 0; err && more < 8; more++) {
		few.rlim_cur = (rlim_t)(lowest + more);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = open_module(&p, &module);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
		assert_true(!err || err == -EMFILE);
	}
	assert_int_equal(err, 0);
	fake_proc_deinit(&p);
}

static void opens_by_path_below_the_processes_root(void **state)
{
	struct fake_file file;
	struct fake_proc p;
	struct module module;
	char path[] = "/link/lib", target[128];

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	assert_int_equal(mkdirat(p.fd, "container", 0755), 0);
	assert_int_equal(mkdirat(p.fd, "container/real", 0755), 0);
	/* An absolute link leads to the container's own directory, not to ours. */
	snprintf(target, sizeof(target), "%s/container/link", p.path);
	assert_int_equal(symlink("/real", target), 0);
	snprintf(target, sizeof(target), "%s/container", p.path);
	fake_proc_root(&p, PID, target);
	fake_proc_elf(&p, "container/real/lib", 1, &file);
	module = module_of(&file, path);
	look_at(&file, &module);
	assert_int_equal(open_module(&p, &module), 0);
	module.id.build_id = id_of(9).build_id;
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_deinit(&p);
}

/* A different size shows that it is another file. */
static void another_file_of_the_same_build_id_is_not_opened(void **state)
{
	struct fake_file file, forged;
	struct module module;
	struct fake_proc p;
	char path[] = "/nowhere";
	int fd;

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_elf(&p, "lib", 1, &file);
	fake_proc_elf(&p, "forged", 1, &forged);
	fd = open(forged.path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "code", 4), 4);
	close(fd);
	module = module_of(&file, path);
	look_at(&file, &module);
	fake_proc_map_file(&p, PID, START, END, forged.path);
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_map_file(&p, PID, START, END, file.path);
	assert_int_equal(open_module(&p, &module), 0);
	fake_proc_deinit(&p);
}

/* Equal bytes here, but nothing that is read of a file shows what lies between its ends. */
static void a_copy_is_not_opened_for_the_file_itself(void **state)
{
	struct fake_file file, copy;
	struct module module;
	struct fake_proc p;

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_elf(&p, "lib", 1, &file);
	fake_proc_elf(&p, "copy", 1, &copy);
	fake_proc_root(&p, PID, "/");
	module = module_of(&file, copy.path);
	look_at(&file, &module);
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_map_file(&p, PID, START, END, copy.path);
	assert_int_equal(open_module(&p, &module), -ESTALE);
	module.path = file.path;
	assert_int_equal(open_module(&p, &module), 0);
	fake_proc_deinit(&p);
}

/* A deleted or renamed file has another ctime. */
static void a_file_with_another_name_is_the_same(void **state)
{
	struct fake_file file;
	struct module module;
	struct fake_proc p;
	char path[] = "/nowhere", name[PATH_MAX];

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_elf(&p, "lib", 1, &file);
	module = module_of(&file, path);
	look_at(&file, &module);
	snprintf(name, sizeof(name), "%s/link", p.path);
	assert_int_equal(link(file.path, name), 0);
	assert_int_equal(unlink(file.path), 0);
	fake_proc_map_file(&p, PID, START, END, name);
	assert_int_equal(open_module(&p, &module), 0);
	fake_proc_deinit(&p);
}

/* Its path leads to a file with the same build ID; only device and inode tell them apart. */
static void a_file_that_was_never_seen_is_the_one_with_its_numbers(void **state)
{
	struct fake_file file;
	struct module module;
	struct fake_proc p;
	char path[] = "/lib";

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_root(&p, PID, p.path);
	fake_proc_elf(&p, "lib", 1, &file);
	module = module_of(&file, path);
	module.id.file =
		(struct file_id){ .device = file.device, .inode = file.inode, .generation = 5 };
	assert_int_equal(open_module(&p, &module), 0);
	module.id.file.inode++;
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_deinit(&p);
}

static void never_leaves_the_processes_root(void **state)
{
	struct fake_file file;
	struct fake_proc p;
	struct module module;
	char path[] = "/up/lib", target[128];

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	assert_int_equal(mkdirat(p.fd, "container", 0755), 0);
	snprintf(target, sizeof(target), "%s/container/up", p.path);
	assert_int_equal(symlink("..", target), 0);
	snprintf(target, sizeof(target), "%s/container", p.path);
	fake_proc_root(&p, PID, target);
	fake_proc_elf(&p, "lib", 1, &file);
	module = module_of(&file, path);
	assert_int_equal(open_module(&p, &module), -ENOENT);
	fake_proc_deinit(&p);
}

static void opens_by_device_and_inode_without_a_build_id(void **state)
{
	struct fake_file file;
	struct fake_proc p;
	struct module module;

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_root(&p, PID, "/");
	fake_proc_elf(&p, "program", 0, &file);
	module = module_of(&file, file.path);
	assert_int_equal(open_module(&p, &module), 0);
	module.id.file.inode++;
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_deinit(&p);
}

/* A path that has become a FIFO would block its reader. */
static void refuses_anything_but_regular_files(void **state)
{
	struct fake_file file;
	struct fake_proc p;
	struct module module;

	(void)state;
	fake_proc_init(&p);
	fake_proc_process(&p, PID, &some_process);
	fake_proc_root(&p, PID, "/");
	fake_proc_elf(&p, "lib", 1, &file);
	assert_int_equal(unlink(file.path), 0);
	assert_int_equal(mkfifo(file.path, 0644), 0);
	module = module_of(&file, file.path);
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_map_file(&p, PID, START, END, "/dev/null");
	assert_int_equal(open_module(&p, &module), -ESTALE);
	module.kind = MODULE_ANON;
	assert_int_equal(open_module(&p, &module), -ENOENT);
	fake_proc_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_identity_is_one_module),
		cmocka_unit_test(a_shortage_of_descriptors_is_told_as_such),
		cmocka_unit_test(files_without_a_build_id_differ_by_any_number),
		cmocka_unit_test(what_is_no_file_is_one_of_its_kind),
		cmocka_unit_test(refuses_modules_over_the_limit),
		cmocka_unit_test(swept_modules_are_gone_and_the_others_found),
		cmocka_unit_test(opens_the_mapped_file_even_when_it_has_gone),
		cmocka_unit_test(a_file_whose_build_id_cannot_be_read_now_is_not_another_one),
		cmocka_unit_test(opens_by_path_below_the_processes_root),
		cmocka_unit_test(another_file_of_the_same_build_id_is_not_opened),
		cmocka_unit_test(a_copy_is_not_opened_for_the_file_itself),
		cmocka_unit_test(a_file_with_another_name_is_the_same),
		cmocka_unit_test(a_file_that_was_never_seen_is_the_one_with_its_numbers),
		cmocka_unit_test(never_leaves_the_processes_root),
		cmocka_unit_test(opens_by_device_and_inode_without_a_build_id),
		cmocka_unit_test(refuses_anything_but_regular_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
