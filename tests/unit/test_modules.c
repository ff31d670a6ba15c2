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

/* What stays is found by number and by identity, what went is made anew under another number. */
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

/* ---- build IDs ---- */

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
	return module_read_build_id(fd, ret_id);
}

/* The build ID of a file whose notes are NOTES (taken), in a segment that says SIZE (0: its own).
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

static void reads_a_build_id_behind_other_notes(void **state)
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

/* GNU property notes of x86_64 stand in a segment that is aligned to 8, and pad to it. */
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

static void other_notes_are_no_build_id(void **state)
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

static void sizes_beyond_the_end_end_the_notes(void **state)
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

static void each_cut_file_is_refused(void **state)
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

/* ---- opening ---- */

static const struct fake_process some_process = { .comm = "program", .maps = "" };

static struct module module_of(const struct fake_file *file, char *path)
{
	struct module module = { .kind = MODULE_FILE, .path = path };

	module.id.build_id = file->build_id;
	if (!file->build_id.size)
		module.id.file = (struct file_id){ .device = file->device, .inode = file->inode };
	return module;
}

static void look_at(const struct fake_file *file, struct module *module)
{
	autoclose int fd = open(file->path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(module_identify(&direct_build_ids, fd, &module->id), 0);
	assert_true(build_id_equal(&module->id.build_id, &file->build_id));
}

static int open_module(struct fake_proc *p, const struct module *module)
{
	const struct module_opener opener = { .proc_fd = p->fd, .build_ids = &direct_build_ids };
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
	/* Another file is mapped there by now. */
	fake_proc_map_file(&p, PID, START, END, other.path);
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_remove(&p, PID);
	assert_int_equal(open_module(&p, &module), -ESRCH);
	fake_proc_deinit(&p);
}

/* The file is there only by its mapping, and each further descriptor lets another step succeed. */
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

/* A longer file says that it is the other one. */
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

/* Its path leads to a file of the same build ID; only its numbers say whether it is the one. */
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
	module.id.file.inode--;
	module.id.file.mtime_ns = 1;
	module.id.file.size_bytes = 1;
	assert_int_equal(open_module(&p, &module), -ESTALE);
	fake_proc_deinit(&p);
}

/* A path that has become a FIFO would block its reader. */
static void refuses_what_is_no_regular_file(void **state)
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
		cmocka_unit_test(reads_a_build_id),
		cmocka_unit_test(reads_a_build_id_behind_other_notes),
		cmocka_unit_test(pads_notes_to_8_where_the_segment_is),
		cmocka_unit_test(reads_32_bit_files),
		cmocka_unit_test(other_notes_are_no_build_id),
		cmocka_unit_test(a_build_id_of_another_size_is_refused),
		cmocka_unit_test(sizes_beyond_the_end_end_the_notes),
		cmocka_unit_test(each_cut_file_is_refused),
		cmocka_unit_test(broken_headers_are_refused),
		cmocka_unit_test(a_file_without_notes_has_none),
		cmocka_unit_test(opens_the_mapped_file_even_when_it_has_gone),
		cmocka_unit_test(opens_by_path_below_the_processes_root),
		cmocka_unit_test(another_file_of_the_same_build_id_is_not_opened),
		cmocka_unit_test(a_file_that_was_never_seen_is_the_one_with_its_numbers),
		cmocka_unit_test(never_leaves_the_processes_root),
		cmocka_unit_test(opens_by_device_and_inode_without_a_build_id),
		cmocka_unit_test(refuses_what_is_no_regular_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
