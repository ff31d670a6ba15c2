/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbolizer/indexer/writer/writer.h"

enum { PLENTY = 1 << 30, FUNCTION = 0x1000 };

struct fixture {
	char directory[64];
	struct cache *cache;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-cache-XXXXXX");
	if (!mkdtemp(f->directory) || cache_create(f->directory, PLENTY, &f->cache))
		return -1;
	*state = f;
	return 0;
}

static size_t count_files(const char *directory, const char *part, bool remove)
{
	autoclosedir DIR *d = opendir(directory);
	size_t count = 0;
	const struct dirent *entry;

	while ((entry = readdir(d))) {
		if (remove)
			unlinkat(dirfd(d), entry->d_name, 0);
		if (entry->d_name[0] == '.' && strncmp(entry->d_name, ".tmp", 4))
			continue;
		count += strstr(entry->d_name, part) != NULL;
	}
	return count;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int err;

	cache_destroy(f->cache);
	chmod(f->directory, 0700);
	count_files(f->directory, "", true);
	err = rmdir(f->directory);
	free(f);
	return err;
}

static struct module_id make_id(uint8_t number)
{
	struct module_id id = { .build_id.size = 20 };

	memset(id.build_id.bytes, number, 20);
	return id;
}

/* An index of one function; longer with the length of its name. */
static void write_index(int fd, const char *name)
{
	struct index_writer *w = index_writer_create();
	uint32_t string;

	assert_non_null(w);
	assert_int_equal(writer_segment(w, &(struct writer_segment){ .address = FUNCTION,
						   .size = 0x1000,
						   .file_off = FUNCTION }),
		0);
	assert_int_equal(writer_string(w, name, strlen(name), &string), 0);
	assert_int_equal(
		writer_symbol(w, FUNCTION, 16, FUNCTION + 0x1000, string, WRITER_SYMBOL_GLOBAL), 0);
	assert_int_equal(writer_finish(w, fd), 0);
	index_writer_destroy(w);
}

static void put(struct cache *cache, const struct module_id *id, const char *name)
{
	struct cache_entry entry;

	assert_int_equal(cache_begin(cache, &entry), 0);
	write_index(entry.fd, name);
	assert_int_equal(cache_commit(cache, &entry, id), 0);
	assert_int_equal(entry.fd, -1);
}

/* As put(), for a file whose index may be a copy's. */
static void put_shared(struct cache *cache, const struct module_id *id, const char *name)
{
	struct cache_entry entry;

	assert_int_equal(cache_begin(cache, &entry), 0);
	write_index(entry.fd, name);
	cache_share(cache, &entry, id);
	assert_int_equal(cache_commit(cache, &entry, id), 0);
	assert_int_equal(entry.fd, -1);
}

/* A file that was read, with a content hash that the index does not have. */
static struct module_id make_copy(uint8_t number, uint64_t inode)
{
	struct module_id id = make_id(number);

	id.content.bytes[0] = 1;
	id.file.inode = inode;
	return id;
}

static void check_name(struct cache *cache, const struct module_id *id, const char *name)
{
	struct index_frame frame;
	struct index *index;

	assert_int_equal(cache_open(cache, id, &index), 0);
	assert_int_equal(index_lookup(index, FUNCTION, &frame, 1), 1);
	assert_string_equal(frame.name, name);
	index_destroy(index);
}

static int open_result(struct cache *cache, const struct module_id *id)
{
	struct index *index;
	int err = cache_open(cache, id, &index);

	if (!err)
		index_destroy(index);
	return err;
}

/* The one file whose name has PART. */
static void find_file(const struct fixture *f, const char *part, char *path, size_t size)
{
	autoclosedir DIR *d = opendir(f->directory);
	const struct dirent *entry;

	while ((entry = readdir(d)) && !strstr(entry->d_name, part))
		;
	assert_non_null(entry);
	snprintf(path, size, "%s/%s", f->directory, entry->d_name);
}

static void set_age(const struct fixture *f, const char *part, time_t seconds)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - seconds },
		{ .tv_sec = time(NULL) - seconds } };
	char path[512];

	find_file(f, part, path, sizeof(path));
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_round_trip(void **state)
{
	struct fixture *f = *state;
	struct module_id one = make_id(1), two = make_id(2);
	struct module_id by_file = { .file = { .device = 1, .inode = 2, .size_bytes = 3 } };

	assert_int_equal(open_result(f->cache, &one), -ENOENT);
	put(f->cache, &one, "first");
	put(f->cache, &by_file, "by_file");
	check_name(f->cache, &one, "first");
	check_name(f->cache, &by_file, "by_file");
	assert_int_equal(open_result(f->cache, &two), -ENOENT);
	by_file.file.mtime_ns = 9;
	assert_int_equal(open_result(f->cache, &by_file), -ENOENT);
}

/* Indexes of files without contents, since write_index() sets no content hash. */
static void test_an_index_of_another_file_is_rejected(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);

	id.content.bytes[0] = 7;
	put(f->cache, &id, "wrong");
	assert_int_equal(open_result(f->cache, &id), -EBADMSG);
	assert_int_equal(open_result(f->cache, &id), -ENOENT);
}

static void test_lookup_by_build_id_must_be_unambiguous(void **state)
{
	struct fixture *f = *state;
	struct module_id one = make_id(1), other = make_id(1), two = make_id(2);
	struct index *index;

	one.content.bytes[0] = one.file.inode = 7;
	other.content.bytes[0] = other.file.inode = 8;
	assert_int_equal(cache_open_by_build_id(f->cache, &one.build_id, &index), -ENOENT);
	put(f->cache, &two, "two");
	put(f->cache, &one, "one");
	assert_int_equal(cache_open_by_build_id(f->cache, &one.build_id, &index), 0);
	index_destroy(index);
	put(f->cache, &other, "other");
	assert_int_equal(cache_open_by_build_id(f->cache, &one.build_id, &index), -ENOTUNIQ);
	assert_int_equal(cache_open_by_build_id(f->cache, &two.build_id, &index), 0);
	index_destroy(index);
}

static void count_inodes(const struct fixture *f, size_t *ret_inodes)
{
	autoclosedir DIR *d = opendir(f->directory);
	uint64_t seen[8];
	const struct dirent *entry;
	struct stat st;

	*ret_inodes = 0;
	while ((entry = readdir(d))) {
		size_t i = 0;

		if (entry->d_name[0] == '.')
			continue;
		assert_int_equal(fstatat(dirfd(d), entry->d_name, &st, 0), 0);
		while (i < *ret_inodes && seen[i] != st.st_ino)
			i++;
		if (i < *ret_inodes)
			continue;
		seen[(*ret_inodes)++] = st.st_ino;
	}
}

static void test_equal_indexes_of_copies_are_one_file(void **state)
{
	struct fixture *f = *state;
	struct module_id one = make_copy(1, 1), two = make_copy(1, 2), stranger = make_copy(2, 3);
	struct index *index;
	size_t inodes;

	put_shared(f->cache, &one, "function");
	put_shared(f->cache, &two, "function");
	put_shared(f->cache, &two, "function"); /* built again */
	assert_int_equal(count_files(f->directory, "0101", false), 2);
	assert_int_equal(count_files(f->directory, ".tmp", false), 0);
	count_inodes(f, &inodes);
	assert_int_equal(inodes, 1);
	assert_int_equal(cache_open_by_build_id(f->cache, &one.build_id, &index), 0);
	index_destroy(index);
	/* Not of the same build ID: nobody would look for it there. */
	put_shared(f->cache, &stranger, "function");
	count_inodes(f, &inodes);
	assert_int_equal(inodes, 2);
}

/* All that is compared before the build is equal. */
static void test_the_index_of_a_forged_twin_stays_its_own(void **state)
{
	struct fixture *f = *state;
	struct module_id genuine = make_copy(1, 1), forged = make_copy(1, 2);
	struct index *index;
	size_t inodes;

	put_shared(f->cache, &genuine, "genuine");
	put_shared(f->cache, &forged, "forgery"); /* as long */
	count_inodes(f, &inodes);
	assert_int_equal(inodes, 2);
	assert_int_equal(cache_open_by_build_id(f->cache, &genuine.build_id, &index), -ENOTUNIQ);
	/* With debug files that one copy had, and then both. */
	put_shared(f->cache, &forged, "genuine");
	count_inodes(f, &inodes);
	assert_int_equal(inodes, 1);
	put_shared(f->cache, &forged, "changed");
	count_inodes(f, &inodes);
	assert_int_equal(inodes, 2);
	assert_int_equal(count_files(f->directory, "0101", false), 2);
}

static void test_an_index_of_claimed_numbers_is_not_kept(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_copy(1, 1);

	id.file.claimed = 1;
	put_shared(f->cache, &id, "function");
	cache_set_failed(f->cache, &id);
	assert_false(cache_failed(f->cache, &id));
	assert_int_equal(count_files(f->directory, "", false), 0);
}

/* Room for two files and the pages of four names, but not for four files. */
static void test_a_shared_file_counts_once(void **state)
{
	enum { NAME_LENGTH = 60000 };
	struct fixture *f = *state;
	char *name = malloc(NAME_LENGTH + 1);
	struct cache *small;

	assert_non_null(name);
	memset(name, 'f', NAME_LENGTH);
	name[NAME_LENGTH] = 0;
	assert_int_equal(cache_create(f->directory, 2 * NAME_LENGTH, &small), 0);
	for (uint64_t inode = 1; inode <= 4; inode++) {
		struct module_id id = make_copy(1, inode);

		put_shared(small, &id, name);
	}
	assert_int_equal(count_files(f->directory, "0101", false), 4);
	assert_int_equal(cache_trim(small), 0);
	assert_int_equal(count_files(f->directory, "0101", false), 4);
	/* Now there is too much, and all its names go with it. */
	cache_destroy(small);
	assert_int_equal(cache_create(f->directory, NAME_LENGTH, &small), 0);
	assert_int_equal(cache_trim(small), 0);
	assert_int_equal(count_files(f->directory, "0101", false), 0);
	cache_destroy(small);
	free(name);
}

static void test_a_later_commit_replaces(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);

	put(f->cache, &id, "old");
	put(f->cache, &id, "new");
	check_name(f->cache, &id, "new");
	assert_int_equal(count_files(f->directory, "", false), 1);
}

static void test_bad_file_is_removed(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	char path[512];
	autoclose int fd = -1;

	put(f->cache, &id, "function");
	find_file(f, "0101", path, sizeof(path));
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "garbage", 7, 40), 7);
	assert_int_equal(open_result(f->cache, &id), -EBADMSG);
	assert_int_equal(open_result(f->cache, &id), -ENOENT);
}

static void test_symbolic_link_is_not_followed(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	char path[512], aside[600];

	put(f->cache, &id, "function");
	find_file(f, "0101", path, sizeof(path));
	snprintf(aside, sizeof(aside), "%s/aside", f->directory);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(symlink("aside", path), 0);
	assert_int_equal(open_result(f->cache, &id), -EBADMSG);
	assert_int_equal(access(aside, F_OK), 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_file_writable_by_others_is_rejected(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	char path[512];

	put(f->cache, &id, "function");
	find_file(f, "0101", path, sizeof(path));
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(open_result(f->cache, &id), -EBADMSG);
}

static void test_makes_missing_directories(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct cache *cache;
	struct stat st;

	snprintf(path, sizeof(path), "%s/sub", f->directory);
	assert_int_equal(cache_create(path, PLENTY, &cache), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	cache_destroy(cache);
	rmdir(path);
}

static void test_directory_writable_by_others_is_refused(void **state)
{
	struct fixture *f = *state;
	struct cache *cache = NULL;

	assert_int_equal(chmod(f->directory, 0770), 0);
	assert_int_equal(cache_create(f->directory, PLENTY, &cache), -EPERM);
	assert_int_equal(chmod(f->directory, 0707), 0);
	assert_int_equal(cache_create(f->directory, PLENTY, &cache), -EPERM);
	assert_null(cache);
}

static void test_directory_of_another_user_is_refused(void **state)
{
	struct fixture *f = *state;
	struct cache *cache = NULL;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(f->directory, 12345, 0), 0);
	assert_int_equal(cache_create(f->directory, PLENTY, &cache), -EPERM);
	assert_int_equal(chown(f->directory, 0, 0), 0);
	assert_null(cache);
}

static void test_directory_that_is_a_link_is_refused(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct cache *cache = NULL;

	snprintf(path, sizeof(path), "%s-link", f->directory);
	assert_int_equal(symlink(f->directory, path), 0);
	assert_true(cache_create(path, PLENTY, &cache) < 0);
	unlink(path);
}

static void test_failed_is_remembered(void **state)
{
	struct fixture *f = *state;
	struct module_id one = make_id(1), two = make_id(2);
	struct cache *again;

	assert_false(cache_failed(f->cache, &one));
	cache_set_failed(f->cache, &one);
	cache_set_failed(f->cache, &one);
	assert_true(cache_failed(f->cache, &one));
	assert_false(cache_failed(f->cache, &two));
	assert_int_equal(cache_create(f->directory, PLENTY, &again), 0);
	assert_true(cache_failed(again, &one));
	cache_destroy(again);
}

static void test_each_interruption_costs_a_longer_pause(void **state)
{
	static const uint64_t SECOND_NS = UINT64_C(1000000000);
	struct fixture *f = *state;
	struct module_id one = make_id(1), two = make_id(2);
	uint64_t now_ns = clock_real_ns();

	assert_int_equal(cache_pause_ns(f->cache, &one, now_ns), 0);
	cache_add_interrupted(f->cache, &one);
	now_ns = clock_real_ns();
	assert_true(cache_pause_ns(f->cache, &one, now_ns) <= SECOND_NS);
	assert_int_equal(cache_pause_ns(f->cache, &one, now_ns + SECOND_NS), 0);
	for (int i = 0; i < 3; i++)
		cache_add_interrupted(f->cache, &one);
	now_ns = clock_real_ns();
	assert_true(cache_pause_ns(f->cache, &one, now_ns + 30 * SECOND_NS) > 0);
	assert_int_equal(cache_pause_ns(f->cache, &one, now_ns + 64 * SECOND_NS), 0);
	assert_int_equal(cache_pause_ns(f->cache, &two, now_ns), 0);
	assert_false(cache_failed(f->cache, &one));
	/* A marker from the future, left by a wrong clock, is ignored. */
	assert_int_equal(cache_pause_ns(f->cache, &one, now_ns - 3600 * SECOND_NS), 0);
}

static void test_abandoned_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct cache_entry entry;

	assert_int_equal(cache_begin(f->cache, &entry), 0);
	assert_int_equal(count_files(f->directory, ".tmp", false), 1);
	cache_abandon(f->cache, &entry);
	assert_int_equal(entry.fd, -1);
	assert_int_equal(count_files(f->directory, ".tmp", false), 0);
	cache_abandon(f->cache, &entry);
}

static void test_trim_removes_the_least_recently_used(void **state)
{
	struct fixture *f = *state;
	struct module_id a = make_id(0xaa), b = make_id(0xbb), c = make_id(0xcc);
	struct cache *small;
	struct stat st;
	char path[512];

	put(f->cache, &a, "function");
	put(f->cache, &b, "function");
	put(f->cache, &c, "function");
	set_age(f, "aaaa", 3000);
	set_age(f, "bbbb", 2000);
	set_age(f, "cccc", 1000);
	check_name(f->cache, &a, "function"); /* now the youngest */
	find_file(f, "aaaa", path, sizeof(path));
	assert_int_equal(stat(path, &st), 0);
	/* Room for two and a half; trimming frees an eighth of the limit more than is needed. */
	assert_int_equal(
		cache_create(f->directory, 5 * ((uint64_t)st.st_size + 4096) / 2, &small), 0);
	assert_int_equal(cache_trim(small), 0);
	assert_int_equal(open_result(small, &a), 0);
	assert_int_equal(open_result(small, &b), -ENOENT);
	assert_int_equal(open_result(small, &c), 0);
	cache_destroy(small);
}

/* Entries dated in the future by a wrong clock are evicted first. */
static void test_trim_removes_entries_from_the_future(void **state)
{
	struct fixture *f = *state;
	struct module_id a = make_id(0xaa), b = make_id(0xbb), c = make_id(0xcc);
	struct cache *small;
	struct stat st;
	char path[512];

	put(f->cache, &a, "function");
	put(f->cache, &b, "function");
	put(f->cache, &c, "function");
	set_age(f, "aaaa", 3000);
	set_age(f, "bbbb", -24 * 3600);
	find_file(f, "aaaa", path, sizeof(path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(
		cache_create(f->directory, 5 * ((uint64_t)st.st_size + 4096) / 2, &small), 0);
	assert_int_equal(cache_trim(small), 0);
	assert_int_equal(open_result(small, &a), 0);
	assert_int_equal(open_result(small, &b), -ENOENT);
	assert_int_equal(open_result(small, &c), 0);
	cache_destroy(small);
}

static void test_limit_is_kept_without_a_call_to_trim(void **state)
{
	struct fixture *f = *state;
	struct cache *small;

	assert_int_equal(cache_create(f->directory, 64 << 10, &small), 0);
	for (uint8_t i = 0; i < 40; i++) {
		struct module_id id = make_id(i);

		put(small, &id, "function");
	}
	assert_in_range(count_files(f->directory, ".v", false), 1, 16);
	cache_destroy(small);
}

/* Left there by an earlier run with a larger limit. */
static void test_first_commit_counts_existing_files(void **state)
{
	struct module_id another = make_id(40);
	struct fixture *f = *state;
	struct cache *small;

	for (uint8_t i = 0; i < 40; i++) {
		struct module_id id = make_id(i);

		put(f->cache, &id, "function");
	}
	assert_int_equal(cache_create(f->directory, 64 << 10, &small), 0);
	assert_int_equal(count_files(f->directory, ".v", false), 40);
	put(small, &another, "function");
	assert_in_range(count_files(f->directory, ".v", false), 1, 16);
	cache_destroy(small);
}

static const char *path_of(const struct fixture *f, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	return path;
}

static void make_file(const struct fixture *f, const char *name)
{
	autoclose int fd = open(path_of(f, name), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
}

static bool file_is_there(const struct fixture *f, const char *name)
{
	return !access(path_of(f, name), F_OK);
}

static void test_strange_files_are_left_alone(void **state)
{
	static const char *const names[] = { "notes.txt", "abc123", "v1", ".v1", "README.v1",
		"ABC.v1", "abc.x.v1", "face.video", "face.v", "face.v1x" };
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	struct cache *small;

	put(f->cache, &id, "function");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		make_file(f, names[i]);
	assert_int_equal(cache_create(f->directory, 1, &small), 0);
	assert_int_equal(cache_trim(small), 0);
	assert_int_equal(open_result(small, &id), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(file_is_there(f, names[i]));
	cache_destroy(small);
}

static void test_temporary_in_use_survives_a_trim(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	struct cache_entry entry;
	struct cache *other;

	assert_int_equal(cache_begin(f->cache, &entry), 0);
	assert_int_equal(cache_create(f->directory, PLENTY, &other), 0);
	assert_int_equal(cache_trim(other), 0);
	write_index(entry.fd, "function");
	assert_int_equal(cache_commit(f->cache, &entry, &id), 0);
	check_name(other, &id, "function");
	cache_destroy(other);
}

static void test_temporary_of_a_dead_process_is_removed(void **state)
{
	struct fixture *f = *state;
	pid_t pid = fork();

	if (pid == 0) {
		struct cache_entry entry;

		_exit(cache_begin(f->cache, &entry) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(count_files(f->directory, ".tmp", false), 1);
	assert_int_equal(cache_trim(f->cache), 0);
	assert_int_equal(count_files(f->directory, ".tmp", false), 0);
}

/* Writes, trims and reads at once with another process; every file it opens must be whole. */
static int work_beside_another(const char *directory)
{
	struct cache *cache;

	if (cache_create(directory, 40 << 10, &cache))
		return 1;
	for (int i = 0; i < 200; i++) {
		struct module_id id = make_id((uint8_t)(i % 7));
		struct cache_entry entry;
		int err = open_result(cache, &id);

		if (err && err != -ENOENT)
			return 2;
		if (cache_begin(cache, &entry))
			return 3;
		write_index(entry.fd, "function");
		if (cache_commit(cache, &entry, &id) || cache_trim(cache))
			return 4;
	}
	cache_destroy(cache);
	return 0;
}

static void test_two_processes_share_a_directory(void **state)
{
	struct fixture *f = *state;
	int status, own;
	pid_t pid = fork();

	if (pid == 0)
		_exit(work_beside_another(f->directory));
	own = work_beside_another(f->directory);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(own, 0);
	assert_int_equal(status, 0);
	assert_int_equal(count_files(f->directory, ".tmp", false), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_round_trip),
		TEST(test_equal_indexes_of_copies_are_one_file),
		TEST(test_the_index_of_a_forged_twin_stays_its_own),
		TEST(test_an_index_of_claimed_numbers_is_not_kept),
		TEST(test_a_shared_file_counts_once),
		TEST(test_a_later_commit_replaces),
		TEST(test_an_index_of_another_file_is_rejected),
		TEST(test_lookup_by_build_id_must_be_unambiguous),
		TEST(test_bad_file_is_removed),
		TEST(test_symbolic_link_is_not_followed),
		TEST(test_file_writable_by_others_is_rejected),
		TEST(test_makes_missing_directories),
		TEST(test_directory_writable_by_others_is_refused),
		TEST(test_directory_of_another_user_is_refused),
		TEST(test_directory_that_is_a_link_is_refused),
		TEST(test_failed_is_remembered),
		TEST(test_each_interruption_costs_a_longer_pause),
		TEST(test_abandoned_leaves_nothing),
		TEST(test_trim_removes_the_least_recently_used),
		TEST(test_trim_removes_entries_from_the_future),
		TEST(test_limit_is_kept_without_a_call_to_trim),
		TEST(test_first_commit_counts_existing_files),
		TEST(test_strange_files_are_left_alone),
		TEST(test_temporary_in_use_survives_a_trim),
		TEST(test_temporary_of_a_dead_process_is_removed),
		TEST(test_two_processes_share_a_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
