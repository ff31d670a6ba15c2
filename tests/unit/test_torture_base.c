/* SPDX-License-Identifier: Apache-2.0 */
/* base/ while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/file_hash.h"
#include "base/gzip.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/map.h"
#include "base/open_regular.h"

static int enter_directory(void **state)
{
	char *path = strdup("/tmp/fathom-test-XXXXXX");

	if (!path || !mkdtemp(path) || chdir(path))
		return -1;
	*state = path;
	return 0;
}

static int leave_directory(void **state)
{
	autofree char *path = *state;
	autofree char *command = NULL;

	if (chdir("/") || asprintf(&command, "rm -rf %s", path) < 0)
		return -1;
	return system(command); /* NOLINT: a path of our own making */
}

/* ---- files ---------------------------------------------------------------------------------- */

static void begin_with_old_file(void *context)
{
	(void)context;
	assert_int_equal(io_replace_file(AT_FDCWD, "file", "old", 3, 0600), 0);
}

static int replace_file(void *context)
{
	(void)context;
	return io_replace_file(AT_FDCWD, "file", "newer", 5, 0600);
}

static unsigned int entries_here(void)
{
	autoclosedir DIR *dir = opendir(".");
	unsigned int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	return count - 2; /* . and .. */
}

static void the_file_is_whole(void *context, int result)
{
	const char *wanted = result ? "old" : "newer";
	char line[16];

	(void)context;
	assert_int_equal(io_read_line(AT_FDCWD, "file", line, sizeof(line)), strlen(wanted));
	assert_string_equal(line, wanted);
	assert_int_equal(entries_here(), 1);
}

static void a_file_is_replaced_or_as_before(void **state)
{
	struct torture t = {
		.begin = begin_with_old_file, .operation = replace_file, .end = the_file_is_whole
	};

	(void)state;
	torture_run(&t);
}

static int read_file(void *context)
{
	return io_read_file(AT_FDCWD, "/proc/self/stat", context);
}

static void begin_with_text(void *context)
{
	buffer_init(context, 1 << 20);
	assert_int_equal(buffer_string(context, "before"), 0);
}

static void the_text_is_still_there(void *context, int result)
{
	struct buffer *b = context;

	assert_true(b->size >= 6);
	assert_memory_equal(b->bytes, "before", 6);
	if (!result)
		assert_true(b->size > 6);
	buffer_deinit(b);
}

static void reading_a_file_fails_with_its_error(void **state)
{
	struct buffer b;
	struct torture t = { .begin = begin_with_text,
		.operation = read_file,
		.end = the_text_is_still_there,
		.context = &b };

	(void)state;
	torture_run(&t);
}

static int make_directories(void *context)
{
	(void)context;
	return io_make_directories("a/b", 0700);
}

static void remove_directories(void *context, int result)
{
	(void)context;
	if (!result) {
		assert_int_equal(rmdir("a/b"), 0);
		assert_int_equal(rmdir("a"), 0);
	} else {
		rmdir("a");
	}
}

static void directories_are_made_or_the_error_is_reported(void **state)
{
	struct torture t = { .operation = make_directories, .end = remove_directories };

	(void)state;
	torture_run(&t);
}

static int open_and_hash(void *context)
{
	autoclose int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int fd = -1;
	int err;

	if (root < 0)
		return -errno;
	err = open_regular_below(root, "file", &fd);
	return err ? err : file_hash_read(fd, context);
}

static void begin_without_hash(void *context)
{
	memset(context, 0, sizeof(struct file_hash));
	begin_with_old_file(NULL);
}

static void no_hash_on_failure(void *context, int result)
{
	struct file_hash right = file_hash_of("old", 3);

	if (result)
		assert_true(file_hash_is_none(context));
	else
		assert_true(file_hash_equal(context, &right));
}

static void a_foreign_file_is_opened_and_hashed_or_not(void **state)
{
	struct file_hash hash;
	struct torture t = { .begin = begin_without_hash,
		.operation = open_and_hash,
		.end = no_hash_on_failure,
		.context = &hash };

	(void)state;
	torture_run(&t);
}

/* ---- containers ----------------------------------------------------------------------------- */

enum { MANY = 2000 };

struct containers {
	struct map map;
	struct intern intern;
	struct arena arena;
	uint32_t *items;
	size_t count, capacity;
	int intern_error;
};

static void begin_empty(void *context)
{
	struct containers *c = context;

	memset(c, 0, sizeof(*c));
	map_init(&c->map, 100000);
	arena_init(&c->arena, 1 << 24);
}

static int fill_map(void *context)
{
	struct containers *c = context;

	for (uint64_t i = 0; i < MANY; i++) {
		int err = map_set(&c->map, i * 7919, i);

		if (err)
			return err;
	}
	return 0;
}

/* Whatever failed: each key that was taken is found, and the map takes more. */
static void the_map_is_whole(void *context, int result)
{
	struct containers *c = context;
	uint64_t value;

	if (!result)
		assert_int_equal(c->map.count, MANY);
	for (uint64_t i = 0; i < c->map.count; i++) {
		assert_true(map_get(&c->map, i * 7919, &value));
		assert_int_equal(value, i);
	}
	assert_int_equal(map_set(&c->map, 3, 33), 0);
	assert_true(map_get(&c->map, 3, &value));
	map_trim(&c->map);
	map_deinit(&c->map);
}

static void a_map_keeps_its_entries(void **state)
{
	struct containers c;
	struct torture t = {
		.begin = begin_empty, .operation = fill_map, .end = the_map_is_whole, .context = &c
	};

	(void)state;
	torture_run(&t);
}

static int trim_map(void *context)
{
	struct containers *c = context;

	map_trim(&c->map);
	return 0;
}

static void begin_almost_empty(void *context)
{
	struct containers *c = context;

	begin_empty(c);
	assert_int_equal(fill_map(c), 0);
	for (uint64_t i = 10; i < MANY; i++)
		assert_true(map_remove(&c->map, i * 7919));
}

static void ten_are_left(void *context, int result)
{
	struct containers *c = context;
	uint64_t value;

	(void)result;
	assert_int_equal(c->map.count, 10);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(map_get(&c->map, i * 7919, &value) && value == i);
	map_deinit(&c->map);
}

static void a_map_that_cannot_shrink_stays(void **state)
{
	struct containers c;
	struct torture t = { .begin = begin_almost_empty,
		.operation = trim_map,
		.end = ten_are_left,
		.context = &c,
		.optional = "calloc" };

	(void)state;
	torture_run(&t);
}

static int fill_intern(void *context)
{
	struct containers *c = context;
	char text[32];
	uint32_t number;
	int err = 0;

	c->intern_error = intern_init(&c->intern, 100000, 1 << 24);
	if (c->intern_error)
		return c->intern_error;
	for (int i = 0; i < MANY && !err; i++) {
		snprintf(text, sizeof(text), "text %d", i);
		number = UINT32_MAX;
		err = intern_string(&c->intern, text, &number);
		assert_int_equal(number, err ? UINT32_MAX : (uint32_t)i + 1);
	}
	return err;
}

static void the_texts_are_whole(void *context, int result)
{
	struct containers *c = context;
	char text[32];
	uint32_t number;

	(void)result;
	if (c->intern_error)
		return;
	for (uint32_t i = 1; i < c->intern.count; i++) {
		snprintf(text, sizeof(text), "text %u", i - 1);
		assert_string_equal(intern_text(&c->intern, i), text);
	}
	assert_int_equal(intern_string(&c->intern, "one more", &number), 0);
	assert_string_equal(intern_text(&c->intern, number), "one more");
	intern_deinit(&c->intern);
}

static void interned_texts_keep_their_numbers(void **state)
{
	struct containers c;
	struct torture t = { .begin = begin_empty,
		.operation = fill_intern,
		.end = the_texts_are_whole,
		.context = &c };

	(void)state;
	torture_run(&t);
}

static int fill_arena_and_array(void *context)
{
	struct containers *c = context;

	for (uint32_t i = 0; i < MANY; i++) {
		char *copy = arena_strndup(&c->arena, "a text of some length, copied", 20);
		int err = array_reserve(c->items, c->capacity, c->count + 1, MANY);

		if (!copy || err)
			return copy ? err : -ENOMEM;
		assert_string_equal(copy, "a text of some lengt");
		c->items[c->count++] = i;
	}
	return 0;
}

static void the_items_are_whole(void *context, int result)
{
	struct containers *c = context;

	(void)result;
	for (uint32_t i = 0; i < c->count; i++)
		assert_int_equal(c->items[i], i);
	assert_non_null(arena_zalloc(&c->arena, 100));
	arena_reset(&c->arena);
	assert_int_equal(c->arena.total_bytes, 0);
	arena_deinit(&c->arena);
	free(c->items);
}

static void arenas_and_arrays_keep_their_contents(void **state)
{
	struct containers c;
	struct torture t = { .begin = begin_empty,
		.operation = fill_arena_and_array,
		.end = the_items_are_whole,
		.context = &c };

	(void)state;
	torture_run(&t);
}

/* ---- buffers -------------------------------------------------------------------------------- */

struct streams {
	struct buffer packed, plain;
};

static void begin_streams(void *context)
{
	struct streams *s = context;

	buffer_init(&s->packed, 1 << 20);
	buffer_init(&s->plain, 1 << 20);
}

static int pack_and_unpack(void *context)
{
	struct streams *s = context;
	char text[5000];
	int err;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i * i % 23);
	err = gzip_deflate(text, sizeof(text), 1, &s->packed);
	if (!err)
		err = gzip_inflate(s->packed.bytes, s->packed.size, &s->plain);
	if (!err)
		err = buffer_printf(&s->plain, "%5000d", 1);
	return err;
}

static void the_streams_are_whole(void *context, int result)
{
	struct streams *s = context;

	if (!result)
		assert_int_equal(s->plain.size, 10000);
	buffer_deinit(&s->packed);
	buffer_deinit(&s->plain);
}

static void packing_fails_with_its_error(void **state)
{
	struct streams s;
	struct torture t = { .begin = begin_streams,
		.operation = pack_and_unpack,
		.end = the_streams_are_whole,
		.context = &s };

	(void)state;
	torture_run(&t);
}

/* ---- the harness itself --------------------------------------------------------------------- */

struct tried {
	unsigned int tries, failures;
};

static int make_two_things(void *context)
{
	autofree char *first = strdup("first");
	autofree char *second = first ? strdup("second") : NULL;

	(void)context;
	return second ? 0 : -ENOMEM;
}

static void count_try(void *context, int result)
{
	struct tried *tried = context;

	tried->tries++;
	tried->failures += torture_failed() && result == -ENOMEM;
}

static void each_call_fails_once(void **state)
{
	struct tried tried = { 0 };
	struct torture t = { .operation = make_two_things, .end = count_try, .context = &tried };

	(void)state;
	torture_run(&t);
	assert_int_equal(tried.failures, 2);
	assert_int_equal(tried.tries, 4); /* two without a failure */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(each_call_fails_once),
		torture_test(a_file_is_replaced_or_as_before),
		torture_test(reading_a_file_fails_with_its_error),
		torture_test(directories_are_made_or_the_error_is_reported),
		torture_test(a_foreign_file_is_opened_and_hashed_or_not),
		torture_test(a_map_keeps_its_entries),
		torture_test(a_map_that_cannot_shrink_stays),
		torture_test(interned_texts_keep_their_numbers),
		torture_test(arenas_and_arrays_keep_their_contents),
		torture_test(packing_fails_with_its_error),
	};

	return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
