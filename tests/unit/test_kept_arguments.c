/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that were kept in the index cache. This program is its own child: as the sandbox it answers
 * with a plan for each function, which has the number of bytes that the file has for it.
 */
#include "symbolizer/builds/kept_arguments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file_hash.h"
#include "base/file_state.h"
#include "base/io.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/builds/function_arguments.h"
#include "symbolizer/sandbox/arguments_wire.h"
#include "symbolizer/sandboxed/main.h"

enum { FUNCTIONS = 3, PLENTY = 1 << 30, SUM_BYTES = 8 };

static const uint64_t entries[FUNCTIONS] = { 0x1000, 0x1040, 0x2000 };

/* ---- plans ---------------------------------------------------------------------------------- */

/* Of NAMES arguments, each in a register. */
static struct argument_plan *make_plan(const char *const *names, size_t count)
{
	autofree struct argument_builder *b = calloc(1, sizeof(*b));

	argument_builder_init(b, ARGUMENT_PLAN_GO);
	for (size_t i = 0; i < count; i++) {
		const struct abi_fetch fetch = { .origin = (abi_u8)i, .size = 8 };
		uint8_t number = argument_builder_fetch(b, &fetch);
		uint32_t name = argument_builder_name(b, names[i], strlen(names[i]));
		struct argument *item = argument_builder_add(b, 0);

		item->name = name;
		item->kind = ARGUMENT_SIGNED;
		item->size = 8;
		item->first = number;
	}
	return argument_builder_finish(b);
}

static void put_plan(struct buffer *out, const struct argument_plan *plan)
{
	size_t size = plan ? argument_plan_size(plan) : 0;

	if (size)
		buffer_append(out, plan, size);
	buffer_append(out, "\0\0\0\0\0\0\0", -size % 8);
}

/*
 * The first function has arguments and results, the second is in a .dwo file, the third has
 * arguments.
 */
static void put_answers(struct buffer *out)
{
	static const char *const names[] = { "first", "second", "third" };
	autofree struct argument_plan *entry = make_plan(names, 2), *results = make_plan(names, 1);
	autofree struct argument_plan *third = make_plan(names + 2, 1);
	const struct arguments_answer split = { ARGUMENTS_SPLIT_MAGIC, 1, 0, 0 };
	const struct arguments_answer answers[] = {
		{ ARGUMENTS_ANSWER_MAGIC, 0, (uint32_t)argument_plan_size(entry),
			(uint32_t)argument_plan_size(results) },
		{ ARGUMENTS_ANSWER_MAGIC, 2, (uint32_t)argument_plan_size(third), 0 },
	};

	buffer_append(out, &answers[0], sizeof(answers[0]));
	put_plan(out, entry);
	put_plan(out, results);
	buffer_append(out, &split, sizeof(split));
	buffer_append(out, &answers[1], sizeof(answers[1]));
	put_plan(out, third);
}

static void check_items(const struct function_arguments *items)
{
	assert_int_equal(items[0].entry->count, 2);
	assert_string_equal(
		argument_plan_name(items[0].entry, argument_plan_items(items[0].entry)[1].name),
		"second");
	assert_int_equal(argument_plan_fetches(items[0].entry)[1].origin, 1);
	assert_int_equal(items[0].results->count, 1);
	assert_true(items[1].split && !items[0].split && !items[2].split);
	assert_null(items[1].entry);
	assert_null(items[1].results);
	assert_string_equal(
		argument_plan_name(items[2].entry, argument_plan_items(items[2].entry)[0].name),
		"third");
	assert_null(items[2].results);
}

static void free_items(struct function_arguments *items)
{
	for (size_t i = 0; i < FUNCTIONS; i++)
		function_arguments_deinit(&items[i]);
}

static void check_empty(const struct function_arguments *items)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		assert_null(items[i].entry);
		assert_null(items[i].results);
		assert_false(items[i].split);
	}
}

/* ---- the child's side ----------------------------------------------------------------------- */

/* The file's first letter says what it does. */
static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	autocall(buffer_deinit) struct buffer out = { 0 };
	char what = 0;

	(void)ret_result;
	if (io_read_at(files->elf_fd, 0, &what, 1) != 1)
		return -EIO;
	if (what == 'd')
		return -ENOENT;
	buffer_init(&out, PLENTY);
	put_answers(&out);
	if (what == 'b')
		out.bytes[sizeof(struct arguments_answer)] ^= 1;
	if (ftruncate(files->output_fd, 0) || lseek(files->output_fd, 0, SEEK_SET))
		return -errno;
	return io_write_all(files->output_fd, out.bytes, out.size);
}

/* ---- fixture -------------------------------------------------------------------------------- */

struct fixture {
	char directory[64], file[64];
	struct cache *cache;
	struct module_id id;
	struct arguments_wanted wanted;
	struct function_arguments items[FUNCTIONS];
	int fd;
};

static void write_file(struct fixture *f, const char *text)
{
	autoclose int fd = open(f->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
}

static void identify(struct fixture *f)
{
	f->id = (struct module_id){ .build_id.size = 4 };
	assert_int_equal(file_hash_read(f->fd, &f->id.content), 0);
	assert_int_equal(file_state_read(f->fd, &f->id.file), 0);
	f->id.file.claimed = 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-kept-XXXXXX");
	snprintf(f->file, sizeof(f->file), "/tmp/fathom-kept-file-%d", getpid());
	if (!mkdtemp(f->directory) || cache_create(f->directory, PLENTY, &f->cache))
		return -1;
	write_file(f, "answer");
	f->fd = open(f->file, O_RDONLY | O_CLOEXEC);
	identify(f);
	f->wanted = (struct arguments_wanted){
		.cache = f->cache,
		.id = &f->id,
		.entries = entries,
		.count = FUNCTIONS,
	};
	*state = f;
	return 0;
}

/* The path of the file of plans; there is at most one. Returns how many there are. */
static size_t kept_files(const struct fixture *f, char *path, size_t size)
{
	autoclosedir DIR *d = opendir(f->directory);
	const struct dirent *entry;
	size_t count = 0;

	while ((entry = readdir(d)))
		if (strstr(entry->d_name, ".arguments-")) {
			snprintf(path, size, "%s/%s", f->directory, entry->d_name);
			count++;
		}
	return count;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[192];
	int err;

	cache_destroy(f->cache);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", f->directory, f->file);
	err = system(command);
	close(f->fd);
	free(f);
	return err;
}

static void keep(const struct fixture *f)
{
	autocall(buffer_deinit) struct buffer answers;

	buffer_init(&answers, PLENTY);
	put_answers(&answers);
	assert_int_equal(kept_arguments_write(&f->wanted, answers.bytes, answers.size), 0);
}

/* What the file of plans has, in RET_BYTES of MAX. */
static size_t read_kept(const struct fixture *f, uint8_t *ret_bytes, size_t max)
{
	char path[512];
	autoclose int fd = -1;
	ssize_t size;

	assert_int_equal(kept_files(f, path, sizeof(path)), 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = io_read_at(fd, 0, ret_bytes, max);
	assert_in_range(size, 1, max - 1);
	return (size_t)size;
}

static void overwrite_kept(const struct fixture *f, const uint8_t *bytes, size_t size)
{
	char path[512];
	autoclose int fd = -1;

	assert_int_equal(kept_files(f, path, sizeof(path)), 1);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(io_write_all(fd, bytes, size), 0);
}

/* ---- keeping -------------------------------------------------------------------------------- */

static void what_was_kept_is_found(void **state)
{
	struct fixture *f = *state;
	char path[512];

	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -ENOENT);
	keep(f);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), 0);
	check_items(f->items);
	free_items(f->items);
	keep(f); /* again: replaces it */
	assert_int_equal(kept_files(f, path, sizeof(path)), 1);
}

static void another_question_has_its_own(void **state)
{
	struct fixture *f = *state;
	struct arguments_wanted fewer = f->wanted;
	struct module_id id = f->id;
	char path[512];

	keep(f);
	fewer.count--;
	assert_int_equal(kept_arguments_read(&fewer, f->items), -ENOENT);
	assert_int_equal(kept_arguments_write(&fewer, NULL, 0), 0);
	assert_int_equal(kept_arguments_read(&fewer, f->items), 0);
	check_empty(f->items);
	assert_int_equal(kept_files(f, path, sizeof(path)), 2);
	/* Another inode, the same bytes. */
	id.file.inode++;
	f->wanted.id = &id;
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -ENOENT);
}

static void what_is_not_certain_is_not_kept(void **state)
{
	struct fixture *f = *state;
	struct module_id id = f->id;
	char path[512];

	f->wanted.id = &id;
	id.file.claimed = 1;
	assert_int_equal(kept_arguments_write(&f->wanted, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -ENOENT);
	id = f->id;
	memset(&id.content, 0, sizeof(id.content)); /* the file was not read */
	assert_int_equal(kept_arguments_write(&f->wanted, NULL, 0), -EOPNOTSUPP);
	f->wanted.id = NULL;
	assert_int_equal(kept_arguments_write(&f->wanted, NULL, 0), -EOPNOTSUPP);
	f->wanted.id = &f->id;
	f->wanted.cache = NULL;
	assert_int_equal(kept_arguments_write(&f->wanted, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -ENOENT);
	assert_int_equal(kept_files(f, path, sizeof(path)), 0);
}

static void plans_are_evicted_like_indexes(void **state)
{
	struct fixture *f = *state;
	char path[512];

	keep(f);
	cache_destroy(f->cache);
	assert_int_equal(cache_create(f->directory, 1, &f->cache), 0);
	assert_int_equal(cache_trim(f->cache), 0);
	assert_int_equal(kept_files(f, path, sizeof(path)), 0);
}

/* ---- damage --------------------------------------------------------------------------------- */

static void truncated_files_are_removed(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[4096];
	char path[512];
	size_t size;

	keep(f);
	size = read_kept(f, bytes, sizeof(bytes));
	for (size_t cut = 0; cut < size; cut++) {
		overwrite_kept(f, bytes, cut);
		assert_int_equal(kept_arguments_read(&f->wanted, f->items), -EBADMSG);
		check_empty(f->items);
		assert_int_equal(kept_files(f, path, sizeof(path)), 0);
		keep(f);
	}
	bytes[size] = 0;
	overwrite_kept(f, bytes, size + 1);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -EBADMSG);
}

static void no_changed_bit_goes_unnoticed(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[4096];
	size_t size;

	keep(f);
	size = read_kept(f, bytes, sizeof(bytes));
	for (size_t bit = 0; bit < 8 * size; bit++) {
		bytes[bit / 8] ^= 1 << bit % 8;
		assert_int_equal(kept_arguments_take(&f->wanted, bytes, size, f->items), -EBADMSG);
		check_empty(f->items);
		bytes[bit / 8] ^= 1 << bit % 8;
	}
	assert_int_equal(kept_arguments_take(&f->wanted, bytes, size, f->items), 0);
	check_items(f->items);
	free_items(f->items);
}

/* A file with a right checksum of wrong bytes: all plans are sound, or there are none. */
static void forged_answers_are_sound_or_refused(void **state)
{
	struct fixture *f = *state;
	size_t size, head = sizeof(struct kept_arguments_header) + sizeof(entries), refused = 0;
	uint8_t bytes[4096];

	keep(f);
	size = read_kept(f, bytes, sizeof(bytes));
	for (size_t at = 0; at < size - SUM_BYTES; at++) {
		uint8_t was = bytes[at];
		uint64_t sum;
		int err;

		bytes[at] = (uint8_t)~was;
		sum = XXH3_64bits(bytes, size - SUM_BYTES);
		memcpy(bytes + size - SUM_BYTES, &sum, sizeof(sum));
		err = kept_arguments_take(&f->wanted, bytes, size, f->items);
		bytes[at] = was;
		if (at < head)
			assert_int_equal(err, -EBADMSG);
		refused += err == -EBADMSG;
		if (err)
			check_empty(f->items);
		for (size_t i = 0; i < FUNCTIONS; i++)
			if (f->items[i].entry)
				assert_true(argument_plan_check(
					f->items[i].entry, argument_plan_size(f->items[i].entry)));
		free_items(f->items);
	}
	assert_in_range(refused, head + 100, size);
}

static void files_of_others_are_removed(void **state)
{
	struct fixture *f = *state;
	char path[512], target[600];

	keep(f);
	assert_int_equal(kept_files(f, path, sizeof(path)), 1);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -EBADMSG);
	assert_int_equal(kept_files(f, target, sizeof(target)), 0);
	keep(f);
	snprintf(target, sizeof(target), "%s/elsewhere", f->directory);
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -EBADMSG);
	assert_int_equal(kept_files(f, target, sizeof(target)), 0);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_arguments(struct fixture *f)
{
	const struct debug_search search = { .directories = "", .root_fd = -1, .path = f->file };
	struct arguments_reading *reading;
	int err;

	assert_int_equal(arguments_reading_begin(f->fd, &search, &f->wanted, &reading), 0);
	while (!arguments_reading_step(reading))
		poll(NULL, 0, 1);
	err = arguments_reading_finish(reading, f->items);
	arguments_reading_destroy(reading);
	return err;
}

static void what_was_read_is_kept(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(read_arguments(f), 0);
	check_items(f->items);
	free_items(f->items);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), 0);
	check_items(f->items);
	free_items(f->items);
}

static void failures_are_not_kept(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = { { "debug information is missing", -ENOENT }, { "bad plans", -EBADMSG } };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_file(f, cases[i].text);
		identify(f);
		assert_int_equal(read_arguments(f), cases[i].err);
		check_empty(f->items);
		assert_int_equal(kept_arguments_read(&f->wanted, f->items), -ENOENT);
	}
}

static void plans_of_a_file_that_was_written_to_are_not_kept(void **state)
{
	struct fixture *f = *state;

	/* After it was identified; of another length, so that its time does not matter. */
	write_file(f, "another answer");
	assert_int_equal(read_arguments(f), 0);
	check_items(f->items);
	free_items(f->items);
	assert_int_equal(kept_arguments_read(&f->wanted, f->items), -ENOENT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_kept_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(another_question_has_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_certain_is_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(plans_are_evicted_like_indexes, setup, teardown),
		cmocka_unit_test_setup_teardown(truncated_files_are_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(no_changed_bit_goes_unnoticed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			forged_answers_are_sound_or_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(files_of_others_are_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_read_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(failures_are_not_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			plans_of_a_file_that_was_written_to_are_not_kept, setup, teardown),
	};

	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
