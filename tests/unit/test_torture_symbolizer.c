/* SPDX-License-Identifier: Apache-2.0 */
/* symbolizer/ while each allocation and each system call fails in turn. */
#include "tests/unit/remove_tree.h"
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/elf/debug_names.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/kallsyms/kallsyms.h"
#include "symbolizer/perf_map/perf_map.h"
#include "symbolizer/sandbox/note_reader.h"
#include "symbolizer/sandbox/note_wire.h"
#include "symbolizer/sandboxed/note_child.h"
#include "tests/unit/elf_writer.h"

enum { FUNCTION = 0x1000, PLENTY = 1 << 30 };

static int text_file(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* ---- writing and opening an index ----------------------------------------------------------- */

static int write_index(int fd, const char *name, const struct file_hash *content)
{
	const struct writer_segment segment = {
		.address = FUNCTION, .size = 0x1000, .file_off = FUNCTION
	};
	struct index_writer *w = index_writer_create();
	uint32_t string = 0;
	int err = w ? writer_segment(w, &segment) : -ENOMEM;

	if (!err)
		err = writer_string(w, name, strlen(name), &string);
	if (!err)
		err = writer_symbol(
			w, FUNCTION, 16, FUNCTION + 0x1000, string, WRITER_SYMBOL_GLOBAL);
	if (!err && content)
		writer_file_hash(w, content);
	if (!err)
		err = writer_finish(w, fd);
	index_writer_destroy(w);
	return err;
}

struct indexing {
	int fd;
	struct index *index;
};

static void begin_indexing(void *context)
{
	struct indexing *i = context;

	*i = (struct indexing){ .fd = memfd_create("index", MFD_CLOEXEC) };
	assert_true(i->fd >= 0);
}

static int write_and_open(void *context)
{
	struct indexing *i = context;
	int err = write_index(i->fd, "function", NULL);

	return err ? err : index_open(i->fd, &i->index);
}

static void expect_function(const struct index *index, const char *name)
{
	struct index_frame frame;

	assert_int_equal(index_lookup(index, FUNCTION, &frame, 1), 1);
	assert_string_equal(frame.name, name);
}

static void end_indexing(void *context, int result)
{
	struct indexing *i = context;

	if (result)
		assert_null(i->index);
	else
		expect_function(i->index, "function");
	index_destroy(i->index);
	close(i->fd);
}

static void an_index_is_written_and_opened_or_the_error_is_reported(void **state)
{
	struct indexing i;
	struct torture t = { .begin = begin_indexing,
		.operation = write_and_open,
		.end = end_indexing,
		.context = &i,
		.optional = "madvise" };

	(void)state;
	torture_run(&t);
}

/* ---- building one --------------------------------------------------------------------------- */

static const uint8_t build_id[] = { 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5 };

static int program_file(void)
{
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", FUNCTION, 0x100);
	elf_writer_build_id(&w, 0x300, build_id, sizeof(build_id));
	fd = elf_writer_file(&w);
	elf_writer_deinit(&w);
	assert_true(fd >= 0);
	return fd;
}

static struct {
	int elf_fd, output_fd;
} building;

static void begin_building(void *context)
{
	(void)context;
	building.elf_fd = program_file();
	building.output_fd = memfd_create("index", MFD_CLOEXEC);
}

static int build(void *context)
{
	struct sandbox_result result = { 0 };

	(void)context;
	return builder_run(building.elf_fd, building.output_fd, &result);
}

/* Without an error the result is the complete index of that file. */
static void end_building(void *context, int result)
{
	struct index *index = NULL;

	(void)context;
	if (!result) {
		assert_int_equal(index_open(building.output_fd, &index), 0);
		assert_int_equal(index_build_id(index)->size, sizeof(build_id));
		assert_memory_equal(index_build_id(index)->bytes, build_id, sizeof(build_id));
		index_destroy(index);
	}
	close(building.elf_fd);
	close(building.output_fd);
}

static void a_build_is_whole_or_fails(void **state)
{
	struct torture t = { .begin = begin_building, .operation = build, .end = end_building };

	(void)state;
	torture_run(&t);
}

/* ---- reading notes in a child ---------------------------------------------------------------- */

static struct {
	struct note_reader reader;
	struct metrics metrics;
	int fd;
} reading;

static void begin_reading(void *context)
{
	(void)context;
	reading.metrics = (struct metrics){ 0 };
	note_reader_init(&reading.reader, &reading.metrics);
	reading.fd = program_file();
}

static void expect_build_id(const struct build_id *id)
{
	assert_int_equal(id->size, sizeof(build_id));
	assert_memory_equal(id->bytes, build_id, sizeof(build_id));
}

static int read_notes(void *context)
{
	struct build_id id;
	int err = note_reader_read(&reading.reader, reading.fd, &id);

	(void)context;
	if (!err)
		expect_build_id(&id);
	return err;
}

/* After any failure the same reader reads the same file. */
static void end_reading(void *context, int result)
{
	struct build_id id;

	(void)context;
	(void)result;
	assert_int_equal(note_reader_read(&reading.reader, reading.fd, &id), 0);
	expect_build_id(&id);
	note_reader_deinit(&reading.reader);
	for (size_t i = 0; i < reading.reader.dying_count; i++)
		(void)waitpid(reading.reader.dying[i], NULL, 0);
	close(reading.fd);
}

static void notes_are_read_or_the_error_is_reported(void **state)
{
	struct torture t = { .begin = begin_reading,
		.operation = read_notes,
		.end = end_reading,
		.optional = "open" }; /* /dev/null */

	(void)state;
	torture_run(&t);
}

/* ---- cache ---------------------------------------------------------------------------------- */

struct caching {
	char directory[64];
	struct cache *cache;
	struct index *index;
	struct module_id ids[2];
};

static int put(struct caching *c, const struct module_id *id, const char *name)
{
	struct cache_entry entry = { .fd = -1 };
	int err = cache_begin(c->cache, &entry);

	if (!err)
		err = write_index(entry.fd, name, &id->content);
	if (err) {
		if (entry.fd >= 0)
			cache_abandon(c->cache, &entry);
		return err;
	}
	err = cache_commit(c->cache, &entry, id);
	assert_int_equal(entry.fd, -1);
	return err;
}

/* Two files with one build ID and different contents. */
static void begin_caching(void *context)
{
	struct caching *c = context;

	*c = (struct caching){ .directory = "/tmp/fathom-cache-XXXXXX" };
	assert_non_null(mkdtemp(c->directory));
	assert_int_equal(cache_create(c->directory, PLENTY, &c->cache), 0);
	for (int i = 0; i < 2; i++) {
		c->ids[i].build_id.size = 20;
		memset(c->ids[i].build_id.bytes, 7, 20);
		memset(c->ids[i].content.bytes, i + 1, sizeof(c->ids[i].content.bytes));
		c->ids[i].file.inode = (uint64_t)i + 1;
	}
	assert_int_equal(put(c, &c->ids[0], "first"), 0);
}

static void end_caching(struct caching *c)
{
	index_destroy(take(c->index));
	cache_destroy(c->cache);
	remove_tree(c->directory);
}

static int open_cached(void *context)
{
	struct caching *c = context;

	return cache_open(c->cache, &c->ids[0], &c->index);
}

/* An entry that could not be read for a moment is still there afterwards. */
static void it_is_still_cached(void *context, int result)
{
	struct caching *c = context;

	if (result)
		assert_null(c->index);
	index_destroy(take(c->index));
	assert_int_equal(open_cached(c), 0);
	expect_function(c->index, "first");
	end_caching(c);
}

static void a_cached_index_survives_a_failed_look(void **state)
{
	struct caching c;
	struct torture t = { .begin = begin_caching,
		.operation = open_cached,
		.end = it_is_still_cached,
		.context = &c,
		.optional = "futimens madvise" };

	(void)state;
	torture_run(&t);
}

static int put_second(void *context)
{
	struct caching *c = context;

	return put(c, &c->ids[1], "second");
}

static void it_is_cached_or_not(void *context, int result)
{
	struct caching *c = context;

	assert_int_equal(cache_open(c->cache, &c->ids[1], &c->index), result ? -ENOENT : 0);
	if (!result)
		expect_function(c->index, "second");
	index_destroy(take(c->index));
	assert_int_equal(open_cached(c), 0);
	expect_function(c->index, "first");
	end_caching(c);
}

static void an_index_is_cached_whole_or_not_at_all(void **state)
{
	struct caching c;
	struct torture t = { .begin = begin_caching,
		.operation = put_second,
		.end = it_is_cached_or_not,
		.context = &c,
		/* A stale mark of an interrupted build costs one more pause. */
		.optional = "unlinkat flock fstat" }; /* another name is tried */

	(void)state;
	torture_run(&t);
}

static void begin_two(void *context)
{
	begin_caching(context);
	assert_int_equal(put_second(context), 0);
}

static int open_by_build_id(void *context)
{
	struct caching *c = context;
	int err = cache_open_by_build_id(c->cache, &c->ids[0].build_id, &c->index);

	return err == -ENOTUNIQ ? 0 : err;
}

static void nobody_is_given_one_of_two(void *context, int result)
{
	struct caching *c = context;

	(void)result;
	assert_null(c->index);
	end_caching(c);
}

static void two_files_of_a_build_id_are_never_taken_for_one(void **state)
{
	struct caching c;
	struct torture t = { .begin = begin_two,
		.operation = open_by_build_id,
		.end = nobody_is_given_one_of_two,
		.context = &c,
		.optional = "fstatat" }; /* names of unknown files count as two files */

	(void)state;
	torture_run(&t);
}

static int trim(void *context)
{
	struct caching *c = context;

	return cache_trim(c->cache);
}

static void both_are_there(void *context, int result)
{
	struct caching *c = context;

	(void)result;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cache_open(c->cache, &c->ids[i], &c->index), 0);
		index_destroy(take(c->index));
	}
	end_caching(c);
}

static void trimming_what_fits_removes_nothing(void **state)
{
	struct caching c;
	struct torture t = { .begin = begin_two,
		.operation = trim,
		.end = both_are_there,
		.context = &c,
		.optional = "fstatat" };

	(void)state;
	torture_run(&t);
}

/* ---- kernel names and perf maps ------------------------------------------------------------- */

static const char kernel_text[] = "ffffffff81000000 T _stext\n"
				  "ffffffff81000000 T startup\n"
				  "ffffffff81000010 t schedule\n"
				  "ffffffff81005000 T _etext\n"
				  "ffffffffc0000000 t module_one\t[one]\n"
				  "ffffffffc0000100 t module_two\t[one]\n";

struct kernel {
	int fd;
	struct kallsyms *kallsyms;
};

static void begin_kernel(void *context)
{
	struct kernel *k = context;

	*k = (struct kernel){ .fd = text_file(kernel_text) };
}

static int load_kernel(void *context)
{
	struct kernel *k = context;

	return kallsyms_create(k->fd, &k->kallsyms);
}

static void end_kernel(void *context, int result)
{
	struct kernel *k = context;
	struct ksymbol symbol;

	if (result) {
		assert_null(k->kallsyms);
	} else {
		assert_true(kallsyms_lookup(k->kallsyms, 0xffffffff81000012, &symbol));
		assert_string_equal(symbol.name, "schedule");
		assert_true(kallsyms_lookup(k->kallsyms, 0xffffffffc0000010, &symbol));
		assert_string_equal(symbol.module, "one");
	}
	kallsyms_destroy(k->kallsyms);
	close(k->fd);
}

static void kernel_names_are_all_there_or_none(void **state)
{
	struct kernel k;
	struct torture t = { .begin = begin_kernel,
		.operation = load_kernel,
		.end = end_kernel,
		.context = &k,
		.optional = "realloc" }; /* shrinks the buffer */

	(void)state;
	torture_run(&t);
}

struct jit {
	int fd;
	struct perf_map *map;
};

static void begin_jit(void *context)
{
	struct jit *j = context;

	j->fd = text_file("1000 10 one\n2000 10 two\n3000 20 three\n");
	assert_int_equal(perf_map_create(&j->map), 0);
}

static int update_jit(void *context)
{
	struct jit *j = context;

	return perf_map_update(j->map, j->fd);
}

/* The next update includes what a failed one left out. */
static void the_next_update_has_all(void *context, int result)
{
	struct jit *j = context;
	const char *name;
	uint64_t start;

	(void)result;
	assert_int_equal(update_jit(j), 0);
	assert_int_equal(perf_map_count(j->map), 3);
	assert_true(perf_map_lookup(j->map, 0x3010, &name, &start));
	assert_string_equal(name, "three");
	assert_int_equal(start, 0x3000);
	perf_map_destroy(j->map);
	close(j->fd);
}

static void a_perf_map_that_was_not_read_is_read_again(void **state)
{
	struct jit j;
	struct torture t = { .begin = begin_jit,
		.operation = update_jit,
		.end = the_next_update_has_all,
		.context = &j };

	(void)state;
	torture_run(&t);
}

/* ---- debug files ---------------------------------------------------------------------------- */

static int read_names(void *context)
{
	struct debug_names names;
	int *fd = context;
	int err = debug_names_read(*fd, &names);

	if (!err) {
		assert_int_equal(names.build_id.size, sizeof(build_id));
		assert_memory_equal(names.build_id.bytes, build_id, sizeof(build_id));
	}
	return err;
}

static void the_names_of_a_module_fail_with_their_error(void **state)
{
	int fd = program_file();
	struct torture t = { .operation = read_names, .context = &fd };

	(void)state;
	torture_run(&t);
	close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		torture_test(an_index_is_written_and_opened_or_the_error_is_reported),
		torture_test(a_build_is_whole_or_fails),
		torture_test(notes_are_read_or_the_error_is_reported),
		torture_test(a_cached_index_survives_a_failed_look),
		torture_test(an_index_is_cached_whole_or_not_at_all),
		torture_test(two_files_of_a_build_id_are_never_taken_for_one),
		torture_test(trimming_what_fits_removes_nothing),
		torture_test(kernel_names_are_all_there_or_none),
		torture_test(a_perf_map_that_was_not_read_is_read_again),
		torture_test(the_names_of_a_module_fail_with_their_error),
	};

	if (argc > 1 && !strcmp(argv[1], NOTE_COMMAND))
		return note_child_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
