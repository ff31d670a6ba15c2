/* SPDX-License-Identifier: Apache-2.0 */
/* agent/server/store while each allocation and each system call fails in turn. */
#include "tests/unit/remove_tree.h"
#include "tests/unit/torture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/store/store.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { FILES = 3, CONTENT_BYTES = 3000 };

static const int64_t SECOND = 1000000000;
static const int64_t NOON = INT64_C(1795262400000000000); /* 2026-11-21T12:00:00Z */

struct fixture {
	char directory[64];
	struct metrics metrics;
	struct store *store;
	char content[CONTENT_BYTES];
};

static int open_store(struct fixture *f)
{
	const struct store_options options = { .directory = f->directory,
		.limit_bytes = 1 << 20,
		.metrics = &f->metrics,
		.now = { .real_ns = NOON, .boot_ns = 1 } };

	return store_create(&options, &f->store);
}

static int put(struct fixture *f, int number)
{
	return store_put(f->store, "shop", NOON + number * 10 * SECOND, 10 * SECOND, f->content,
		sizeof(f->content));
}

static void begin_empty(void *context)
{
	struct fixture *f = context;

	*f = (struct fixture){ .directory = "/tmp/fathom-store-XXXXXX" };
	memset(f->content, 'x', sizeof(f->content));
	assert_non_null(mkdtemp(f->directory));
}

static void begin_with_files(void *context)
{
	struct fixture *f = context;

	begin_empty(f);
	assert_int_equal(open_store(f), 0);
	for (int i = 0; i < FILES; i++)
		assert_int_equal(put(f, i), 0);
}

static void begin_closed(void *context)
{
	struct fixture *f = context;

	begin_with_files(f);
	store_destroy(take(f->store));
}

static void end(struct fixture *f)
{
	store_destroy(take(f->store));
	remove_tree(f->directory);
}

/* Returns how many files the store lists; each of them is complete on disk. */
static size_t whole_files(struct fixture *f)
{
	struct store_file file;
	size_t iterator = 0, count = 0;

	while (store_next(f->store, &iterator, 0, INT64_MAX, &file)) {
		autoclose int fd = -1;
		struct stat st;

		assert_int_equal(store_open(f->store, file.path, &fd), 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, CONTENT_BYTES);
		count++;
	}
	assert_int_equal(store_count(f->store), count);
	return count;
}

static unsigned int files_below;

static int count_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)path;
	(void)st;
	(void)ftw;
	files_below += flag == FTW_F;
	return 0;
}

static unsigned int files_on_disk(const struct fixture *f)
{
	files_below = 0;
	assert_int_equal(nftw(f->directory, count_one, 16, FTW_PHYS), 0);
	return files_below;
}

/* ---- putting -------------------------------------------------------------------------------- */

static int put_another(void *context)
{
	return put(context, FILES);
}

static void the_new_file_is_whole_or_not_there(void *context, int result)
{
	struct fixture *f = context;
	/* On a full disk, the oldest file is dropped for the new one. */
	bool full = torture_failed() && !strcmp(torture_failed(), "write");
	unsigned int wanted = FILES + !result - full;

	assert_int_equal(whole_files(f), wanted);
	/* The next start removes a temporary file that remained. */
	store_destroy(take(f->store));
	assert_int_equal(open_store(f), 0);
	assert_int_equal(whole_files(f), wanted);
	assert_int_equal(files_on_disk(f), wanted);
	assert_int_equal(put(f, FILES + 1), 0);
	end(f);
}

static void a_file_is_put_whole_or_not_at_all(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin_with_files,
		.operation = put_another,
		.end = the_new_file_is_whole_or_not_there,
		.context = &f,
		.optional = "write" };

	(void)state;
	torture_run(&t);
}

static int put_first(void *context)
{
	return put(context, 0);
}

static void begin_open(void *context)
{
	begin_empty(context);
	assert_int_equal(open_store(context), 0);
}

static void the_first_is_whole_or_not_there(void *context, int result)
{
	assert_int_equal(whole_files(context), !result);
	assert_int_equal(put(context, 1), 0);
	assert_int_equal(whole_files(context), 1 + !result);
	end(context);
}

static void the_first_file_of_a_day_makes_its_directory(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin_open,
		.operation = put_first,
		.end = the_first_is_whole_or_not_there,
		.context = &f };

	(void)state;
	torture_run(&t);
}

/* ---- starting ------------------------------------------------------------------------------- */

static int start(void *context)
{
	return open_store(context);
}

/*
 * A started store knows all its files, and the limit counts them. A file that cannot be examined is
 * left alone.
 */
static void it_knows_all_files(void *context, int result)
{
	struct fixture *f = context;
	bool left_out = torture_failed() && !strcmp(torture_failed(), "fstatat");

	if (result)
		assert_null(f->store);
	else
		assert_int_equal(whole_files(f), FILES - left_out);
	assert_int_equal(files_on_disk(f), FILES);
	store_destroy(take(f->store));
	assert_int_equal(open_store(f), 0);
	assert_int_equal(whole_files(f), FILES);
	end(f);
}

static void a_start_finds_all_files_or_fails(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin_closed,
		.operation = start,
		.end = it_knows_all_files,
		.context = &f,
		.optional = "unlinkat fstatat" };

	(void)state;
	torture_run(&t);
}

/* ---- removing ------------------------------------------------------------------------------- */

static int shrink(void *context)
{
	struct fixture *f = context;

	store_set_limits(f->store, 4096, 0);
	return store_trim(f->store, (struct store_now){ .real_ns = NOON, .boot_ns = 2 });
}

static void what_is_listed_is_there(void *context, int result)
{
	struct fixture *f = context;

	assert_int_equal(whole_files(f), 1);
	assert_int_equal(files_on_disk(f), result ? 2 : 1);
	end(f);
}

static void a_failed_removal_is_reported(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin_with_files,
		.operation = shrink,
		.end = what_is_listed_is_there,
		.context = &f,
		.optional = "unlinkat" }; /* the removal of the day's directory */

	(void)state;
	torture_run(&t);
}

static int put_over_the_limit(void *context)
{
	struct fixture *f = context;

	store_set_limits(f->store, store_bytes(f->store), 0);
	return put(f, FILES);
}

static void what_was_stored_counts_as_stored(void *context, int result)
{
	struct fixture *f = context;
	const struct store_now now = { .real_ns = NOON, .boot_ns = 2 };
	uint64_t kept = metrics_get(&f->metrics, METRIC_STORE_REMOVE_FAILED);

	if (torture_failed() && !strcmp(torture_failed(), "unlinkat"))
		assert_int_equal(result, 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STORE_FAILED), result != 0);
	assert_int_equal(whole_files(f), FILES);
	assert_int_equal(files_on_disk(f), FILES + kept);
	assert_int_equal(kept + metrics_get(&f->metrics, METRIC_STORE_DROPPED_LIMIT) +
				 metrics_get(&f->metrics, METRIC_STORE_DROPPED_DISK_FULL),
		!result);
	assert_int_equal(store_trim(f->store, now), kept ? -torture_errno() : 0);
	assert_int_equal(store_trim(f->store, now), 0);
	end(f);
}

static void a_file_is_stored_though_an_old_one_stays(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin_with_files,
		.operation = put_over_the_limit,
		.end = what_was_stored_counts_as_stored,
		.context = &f,
		.optional = "write unlinkat" };

	(void)state;
	torture_run(&t);
}

/* ---- merging -------------------------------------------------------------------------------- */

static const struct store_now much_later = { .real_ns = NOON + 7200 * SECOND,
	.boot_ns = UINT64_C(7200000000001) };

static void begin_with_old_files(void *context)
{
	struct fixture *f = context;

	begin_empty(f);
	assert_int_equal(open_store(f), 0);
	for (int i = 0; i < FILES; i++)
		assert_int_equal(store_put(f->store, NULL, NOON + i * 10 * SECOND, 10 * SECOND,
					 f->content, sizeof(f->content)),
			0);
	assert_int_equal(store_trim(f->store, much_later), 0);
}

static int merge_them(void *context)
{
	struct fixture *f = context;
	struct store_merge m;
	int fd, err;

	assert_true(store_merge_find(f->store, &m));
	err = store_merge_begin(f->store, &m, &fd);
	if (err)
		return err;
	err = io_write_all(fd, f->content, sizeof(f->content));
	close(fd);
	return store_merge_end(f->store, err, much_later);
}

/* How many files are listed: the windows, or one minute. */
static size_t listed_files(struct fixture *f)
{
	struct store_file file;
	size_t iterator = 0, count = 0;

	while (store_next(f->store, &iterator, 0, INT64_MAX, &file))
		count++;
	return count;
}

static void all_are_merged_or_none(void *context, int result)
{
	struct fixture *f = context;
	bool merged = !result;

	assert_int_equal(listed_files(f), merged ? 1 : FILES);
	store_destroy(take(f->store));
	assert_int_equal(open_store(f), 0);
	assert_int_equal(listed_files(f), merged ? 1 : FILES);
	end(f);
}

static void files_are_merged_or_stay(void **state)
{
	struct fixture f;
	struct torture t = { .begin = begin_with_old_files,
		.operation = merge_them,
		.end = all_are_merged_or_none,
		.context = &f };

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_file_is_put_whole_or_not_at_all),
		torture_test(the_first_file_of_a_day_makes_its_directory),
		torture_test(a_start_finds_all_files_or_fails),
		torture_test(a_failed_removal_is_reported),
		torture_test(a_file_is_stored_though_an_old_one_stays),
		torture_test(files_are_merged_or_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
