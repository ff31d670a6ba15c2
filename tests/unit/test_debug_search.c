/* SPDX-License-Identifier: Apache-2.0 */
/* Which debug files are found for a module: the names in its sections, and the search path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/builds/debug_search.h"
#include "symbolizer/indexer/elf/debug_names.h"
#include "tests/unit/elf_writer.h"
#include "tests/unit/remove_tree.h"

static const uint8_t id[] = { 0xab, 0xcd, 0xef };
static const char link_bytes[] = "x.debug\0\x78\x56\x34\x12"; /* 8 bytes of name, no padding */
static const char alternate_bytes[] = "/alt.debug\0\x11\x22";

struct module {
	const void *link;
	size_t link_size;
	const void *alternate;
	size_t alternate_size;
	bool dwarf, no_build_id;
};

static int module_file(const struct module *m)
{
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", 0x1000, 0x10);
	if (!m->no_build_id)
		elf_writer_build_id(&w, 0x300, id, sizeof(id));
	if (m->link)
		elf_writer_section(&w, &(struct elf_section_spec){ ".gnu_debuglink",
					       .bytes = m->link, .size = m->link_size });
	if (m->alternate)
		elf_writer_section(&w, &(struct elf_section_spec){ ".gnu_debugaltlink",
					       .bytes = m->alternate, .size = m->alternate_size });
	if (m->dwarf)
		elf_writer_section(
			&w, &(struct elf_section_spec){ ".debug_info", .bytes = "x", .size = 1 });
	fd = elf_writer_file(&w);
	elf_writer_deinit(&w);
	return fd;
}

static const struct module full = { link_bytes, sizeof(link_bytes) - 1, alternate_bytes,
	sizeof(alternate_bytes) - 1 };

/* ---- names ---------------------------------------------------------------------------------- */

static struct debug_names *names_of(const struct module *m)
{
	autoclose int fd = module_file(m);
	struct debug_names *names = malloc(sizeof(*names));

	assert_non_null(names);
	assert_int_equal(debug_names_read(fd, names), 0);
	return names;
}

static void names_and_ids_are_read(void **state)
{
	autofree struct debug_names *names = names_of(&full);

	(void)state;
	assert_int_equal(names->build_id.size, sizeof(id));
	assert_memory_equal(names->build_id.bytes, id, sizeof(id));
	assert_false(names->has_dwarf);
	assert_string_equal(names->link, "x.debug");
	assert_int_equal(names->link_crc, 0x12345678);
	assert_string_equal(names->alternate, "/alt.debug");
	assert_int_equal(names->alternate_id.size, 2);
	assert_int_equal(names->alternate_id.bytes[1], 0x22);
}

static void the_crc_follows_the_padding(void **state)
{
	static const char bytes[] = "ab\0\0\1\2\3\4";
	autofree struct debug_names *names = names_of(&(struct module){ bytes, sizeof(bytes) - 1 });

	(void)state;
	assert_string_equal(names->link, "ab");
	assert_int_equal(names->link_crc, 0x04030201);
}

static void own_dwarf_is_detected(void **state)
{
	autofree struct debug_names *names = names_of(&(struct module){ .dwarf = true });

	(void)state;
	assert_true(names->has_dwarf);
	assert_string_equal(names->link, "");
}

/* Each is ignored without affecting the others. */
static void broken_sections_yield_no_names(void **state)
{
	static char endless[DEBUG_NAME_BYTES + 32];
	static const struct module modules[] = {
		{ "x.debug", 7, "/alt", 4 }, /* no end of the name */
		{ "x.debug\0\1\2\3", 11, "/alt\0", 5 }, /* no CRC, no build ID */
		{ "\0\0\0\0\1\2\3\4", 8, "\0\1", 2 }, /* no name */
		{ "../x.debug\0\0\1\2\3\4", 16, NULL, 0 }, /* a path */
		{ endless, sizeof(endless), endless, sizeof(endless) },
		{ "", 0, "", 0 },
	};

	(void)state;
	memset(endless, 'a', DEBUG_NAME_BYTES);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		autofree struct debug_names *names = names_of(&modules[i]);

		assert_string_equal(names->link, "");
		assert_string_equal(names->alternate, "");
		assert_int_equal(names->build_id.size, sizeof(id));
	}
}

static int read_bytes(const void *bytes, size_t size)
{
	autoclose int fd = memory_file(bytes, size);
	struct debug_names *names = malloc(sizeof(*names));
	int err = debug_names_read(fd, names);

	free(names);
	return err;
}

static void broken_headers_are_refused(void **state)
{
	struct elf_writer w;
	Elf64_Ehdr *header;

	(void)state;
	elf_writer_init(&w);
	elf_writer_code(&w, ".text", 0x1000, 0x10);
	elf_writer_finish(&w);
	header = (void *)w.file.bytes;
	assert_int_equal(read_bytes(w.file.bytes, w.file.size), 0);
	assert_int_equal(read_bytes(w.file.bytes, 40), -EBADMSG);
	assert_int_equal(read_bytes("#!/bin/sh\n", 10), -EBADMSG);
	header->e_shstrndx = header->e_shnum;
	assert_int_equal(read_bytes(w.file.bytes, w.file.size), -EBADMSG);
	header->e_shstrndx = 0;
	assert_int_equal(read_bytes(w.file.bytes, w.file.size), -EBADMSG);
	header->e_shentsize = 32;
	assert_int_equal(read_bytes(w.file.bytes, w.file.size), -EBADMSG);
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shoff = UINT64_MAX - 8;
	assert_int_equal(read_bytes(w.file.bytes, w.file.size), -EBADMSG);
	header->e_shnum = 0;
	assert_int_equal(read_bytes(w.file.bytes, w.file.size), -EBADMSG);
	elf_writer_deinit(&w);
}

/* ---- places --------------------------------------------------------------------------------- */

struct root {
	char path[64];
	int fd;
};

static void root_make(struct root *root)
{
	snprintf(root->path, sizeof(root->path), "/tmp/fathom-test-XXXXXX");
	assert_non_null(mkdtemp(root->path));
	root->fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root->fd >= 0);
}

static void root_remove(struct root *root)
{
	close(root->fd);
	remove_tree(root->path);
}

/* Creates a file with some bytes, and its folders. */
static void put(const struct root *root, const char *path, const char *text)
{
	char whole[256], folder[256];

	snprintf(whole, sizeof(whole), "%s%s", root->path, path);
	snprintf(folder, sizeof(folder), "%s", whole);
	*strrchr(folder, '/') = 0;
	assert_int_equal(io_make_directories(folder, 0755), 0);
	assert_int_equal(io_replace_file(AT_FDCWD, whole, text, strlen(text), 0600), 0);
}

static char first_byte(const struct debug_file *c)
{
	char byte = 0;

	assert_int_equal(pread(c->fd, &byte, 1, 0), 1);
	return byte;
}

/* The files offered for the module of FD, whose names are read as in the sandbox. */
static int offer(const struct debug_search *search, int fd, struct debug_files *found)
{
	autofree struct debug_names *names = malloc(sizeof(*names));

	assert_int_equal(debug_names_read(fd, names), 0);
	return debug_search_find(search, fd, names, found);
}

/* The first bytes of each file that is found, in order. */
static const char *find(const struct root *root, const struct module *m, struct debug_files *found)
{
	static char text[DEBUG_FILES_MAX + 1];
	const struct debug_search search = {
		.directories = "/dbg,relative,/more\\,dbg",
		.root_fd = root->fd,
		.path = "/bin/x",
	};
	autoclose int fd = module_file(m);

	offer(&search, fd, found);
	for (size_t i = 0; i < found->count; i++)
		text[i] = first_byte(&found->items[i]);
	text[found->count] = 0;
	return text;
}

static void assert_finds(const struct root *root, const struct module *m, const char *wanted)
{
	autocall(debug_files_close) struct debug_files found;

	assert_string_equal(find(root, m, &found), wanted);
}

static void each_place_is_searched(void **state)
{
	autocall(root_remove) struct root root;
	autocall(debug_files_close) struct debug_files found;

	(void)state;
	root_make(&root);
	put(&root, "/more,dbg/.build-id/ab/cdef.debug", "1");
	put(&root, "/bin/x.debug", "2");
	put(&root, "/bin/.debug/x.debug", "3");
	put(&root, "/dbg/bin/x.debug", "4");
	put(&root, "/alt.debug", "5");
	put(&root, "/dbg/.build-id/11/22.debug", "6");
	assert_string_equal(find(&root, &full, &found), "123465");
	assert_int_equal(found.items[0].role, DEBUG_FILE_SEPARATE);
	assert_int_equal(found.items[1].role, DEBUG_FILE_LINKED);
	assert_int_equal(found.items[1].crc, 0x12345678);
	assert_int_equal(found.items[4].role, DEBUG_FILE_SUPPLEMENTARY);
}

static void with_dwarf_only_the_supplementary_file_is_wanted(void **state)
{
	autocall(root_remove) struct root root;
	struct module m = full;

	(void)state;
	root_make(&root);
	put(&root, "/bin/x.debug", "2");
	put(&root, "/alt.debug", "5");
	m.dwarf = true;
	assert_finds(&root, &m, "5");
}

static void a_relative_name_is_relative_to_its_file(void **state)
{
	static const char relative[] = "../alt/y\0\x11\x22";
	autocall(root_remove) struct root root;
	const struct module m = { .alternate = relative, .alternate_size = sizeof(relative) - 1 };

	(void)state;
	root_make(&root);
	put(&root, "/bin/x", "");
	put(&root, "/alt/y", "7");
	assert_finds(&root, &m, "7");
}

static void one_file_by_two_names_is_offered_once(void **state)
{
	autocall(root_remove) struct root root;
	char from[128], to[128];

	(void)state;
	root_make(&root);
	put(&root, "/dbg/.build-id/ab/cdef.debug", "1");
	put(&root, "/bin/other", "x");
	snprintf(from, sizeof(from), "%s/dbg/.build-id/ab/cdef.debug", root.path);
	snprintf(to, sizeof(to), "%s/bin/x.debug", root.path);
	assert_int_equal(link(from, to), 0);
	assert_finds(&root, &full, "1");
}

static void links_do_not_escape_the_root(void **state)
{
	autocall(root_remove) struct root root, outside;
	char path[128], target[160];

	(void)state;
	root_make(&root);
	root_make(&outside);
	put(&outside, "/secret", "s");
	put(&root, "/bin/inside", "i");
	snprintf(path, sizeof(path), "%s/bin/x.debug", root.path);
	snprintf(target, sizeof(target), "../../..%s/secret", outside.path);
	assert_int_equal(symlink(target, path), 0);
	assert_finds(&root, &full, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/bin/inside", path), 0);
	assert_finds(&root, &full, "i");
}

static void only_regular_files_are_opened(void **state)
{
	autocall(root_remove) struct root root;
	char path[128];

	(void)state;
	root_make(&root);
	put(&root, "/bin/x", "");
	snprintf(path, sizeof(path), "%s/bin/x.debug", root.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_finds(&root, &full, "");
}

static void without_a_build_id_or_a_path_few_places_are_searched(void **state)
{
	autocall(root_remove) struct root root;
	autocall(debug_files_close) struct debug_files found;
	const struct debug_search nowhere = {
		.directories = "/dbg", .root_fd = -1, .path = "[vdso]"
	};
	struct module m = full;
	autoclose int fd = -1;

	(void)state;
	root_make(&root);
	put(&root, "/bin/x.debug", "2");
	put(&root, "/dbg/.build-id/ab/cdef.debug", "1");
	m.no_build_id = true;
	assert_finds(&root, &m, "2");
	fd = module_file(&m);
	offer(&nowhere, fd, &found);
	assert_int_equal(found.count, 0);
}

static void the_number_of_results_is_bounded(void **state)
{
	autocall(root_remove) struct root root;
	autocall(debug_files_close) struct debug_files found;
	char directories[512] = "/0";
	autoclose int fd = module_file(&full);

	(void)state;
	root_make(&root);
	for (int i = 0; i < 14; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/%d/.build-id/ab/cdef.debug", i);
		put(&root, path, "d");
		snprintf(path, sizeof(path), ",/%d", i + 1);
		strncat(directories, path, sizeof(directories) - strlen(directories) - 1);
	}
	put(&root, "/alt.debug", "a");
	offer(&(struct debug_search){ directories, root.fd, "/bin/x" }, fd, &found);
	assert_true(found.count <= DEBUG_FILES_MAX && found.count >= 2);
	/* The list keeps room for the files that debug files refer to. */
	assert_int_equal(first_byte(&found.items[found.count - 1]), 'a');
}

/* With each further descriptor, one more place can be searched. */
static void a_place_that_could_not_be_searched_is_not_absent(void **state)
{
	autocall(root_remove) struct root root;
	const struct debug_search search = {
		.directories = "/dbg", .root_fd = -1, .path = "/bin/x"
	};
	autoclose int fd = module_file(&full);
	struct rlimit whole, few;
	int lowest, err = -1;

	(void)state;
	root_make(&root);
	put(&root, "/dbg/.build-id/ab/cdef.debug", "d");
	lowest = dup(fd);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	few = whole;
	for (int more = 0; err && more < 8; more++) {
		struct debug_search below = search;
		struct debug_files found;

		below.root_fd = root.fd;
		few.rlim_cur = (rlim_t)(lowest + more);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		err = offer(&below, fd, &found);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
		assert_int_equal(err, err ? -EMFILE : 0);
		assert_int_equal(found.count, err ? 0 : 1);
		debug_files_close(&found);
	}
	assert_int_equal(err, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_ids_are_read),
		cmocka_unit_test(the_crc_follows_the_padding),
		cmocka_unit_test(own_dwarf_is_detected),
		cmocka_unit_test(broken_sections_yield_no_names),
		cmocka_unit_test(broken_headers_are_refused),
		cmocka_unit_test(each_place_is_searched),
		cmocka_unit_test(with_dwarf_only_the_supplementary_file_is_wanted),
		cmocka_unit_test(a_relative_name_is_relative_to_its_file),
		cmocka_unit_test(one_file_by_two_names_is_offered_once),
		cmocka_unit_test(links_do_not_escape_the_root),
		cmocka_unit_test(only_regular_files_are_opened),
		cmocka_unit_test(without_a_build_id_or_a_path_few_places_are_searched),
		cmocka_unit_test(the_number_of_results_is_bounded),
		cmocka_unit_test(a_place_that_could_not_be_searched_is_not_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
