/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/commands/cache_directory.h"
#include "agent/commands/symbolize.h"
#include "base/cleanup.h"
#include "symbolizer/cache.h"
#include "symbolizer/debug_files.h"
#include "symbolizer/sandbox.h"

/* One build, and a user who waits for it: more than the agent would allow a module. */
static const struct sandbox_limits limits = {
	.memory_bytes = 8UL << 30,
	.cpu_seconds = 300,
	.output_bytes = 4UL << 30,
};

static int open_file(const char *path, int *ret_fd, struct module_id *ret_id)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		int err = -errno;

		fprintf(stderr, "fathom symbolize: cannot open %s: %s\n", path, strerror(-err));
		return err;
	}
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "fathom symbolize: %s is not a regular file\n", path);
		return -EBADMSG;
	}
	/* Not by build ID: a stripped file and the one with its debug sections share that. */
	*ret_id =
		(struct module_id){ .file = {
					    .device = st.st_dev,
					    .inode = st.st_ino,
					    .mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u +
							(uint64_t)st.st_mtim.tv_nsec,
					    .size_bytes = (uint64_t)st.st_size,
				    } };
	*ret_fd = take_fd(&fd);
	return 0;
}

void symbolize_indexes_init(struct symbolize_indexes *indexes, const struct config *config)
{
	autofree char *path = NULL;

	indexes->cache = NULL;
	indexes->debug_directories = config_text(config, SETTING_debuginfo_directories);
	if (cache_directory(config, &path))
		return;
	if (cache_create(path, config_number(config, SETTING_cache_max_bytes), &indexes->cache))
		indexes->cache = NULL;
}

void symbolize_indexes_deinit(struct symbolize_indexes *indexes)
{
	cache_destroy(indexes->cache);
}

static void say_why(const char *path, enum sandbox_outcome outcome, int error)
{
	if (outcome == SANDBOX_LIMIT)
		fprintf(stderr,
			"fathom symbolize: indexing %s takes more memory or time than is allowed\n",
			path);
	else if (outcome == SANDBOX_CRASH)
		fprintf(stderr,
			"fathom symbolize: the indexer died on %s: the file is broken, or fathom "
			"is\n",
			path);
	else if (error == -EOPNOTSUPP)
		fprintf(stderr,
			"fathom symbolize: %s is no program or library for 64-bit x86 or Arm\n",
			path);
	else if (error == -EBADMSG)
		fprintf(stderr, "fathom symbolize: %s is not a readable ELF file\n", path);
	else
		fprintf(stderr, "fathom symbolize: cannot index %s: %s\n", path, strerror(-error));
}

static int wait_for(struct sandbox *sandbox, const char *path)
{
	struct builder_result result;
	enum sandbox_outcome outcome;

	do {
		struct pollfd waited = { .fd = sandbox->result_fd, .events = POLLIN };

		poll(&waited, 1, -1);
	} while (!sandbox_receive(sandbox));
	outcome = sandbox_finish(sandbox, &result);
	if (outcome == SANDBOX_OK)
		return 0;
	say_why(path, outcome, result.error);
	return result.error ? result.error : -EBADMSG;
}

static void find_debug_files(const struct symbolize_indexes *indexes,
	const struct symbolize_file *file, struct companions *ret_companions)
{
	const struct debug_search search = {
		.directories = indexes->debug_directories ? indexes->debug_directories : "",
		.root_fd = file->root_fd,
		.path = file->path,
	};

	debug_files_find(&search, file->elf_fd, ret_companions);
}

static int build(const struct symbolize_indexes *indexes, const struct symbolize_file *file,
	int output_fd, struct index **ret_index)
{
	struct builder_files files = { .elf_fd = file->elf_fd, .output_fd = output_fd };
	struct sandbox sandbox;
	int err;

	find_debug_files(indexes, file, &files.companions);
	err = sandbox_start_files(&files, &limits, &sandbox);
	companions_close(&files.companions);
	if (err) {
		fprintf(stderr, "fathom symbolize: cannot start the indexer: %s\n", strerror(-err));
		return err;
	}
	err = wait_for(&sandbox, file->path);
	if (err)
		return err;
	err = index_open(output_fd, ret_index);
	if (err)
		fprintf(stderr, "fathom symbolize: the index of %s is broken\n", file->path);
	return err;
}

static int build_in_memory(const struct symbolize_indexes *indexes,
	const struct symbolize_file *file, struct index **ret_index)
{
	autoclose int fd = memfd_create("fathom-index", MFD_CLOEXEC);

	return fd < 0 ? -errno : build(indexes, file, fd, ret_index);
}

static int build_in_cache(struct symbolize_indexes *indexes, const struct module_id *id,
	const struct symbolize_file *file, struct index **ret_index)
{
	struct cache_entry entry;
	int err;

	if (cache_begin(indexes->cache, &entry))
		return build_in_memory(indexes, file, ret_index);
	err = build(indexes, file, entry.fd, ret_index);
	if (err) {
		cache_abandon(indexes->cache, &entry);
		return err;
	}
	/* Ignoring a failure: what was built is open, the next run builds it again. */
	cache_commit(indexes->cache, &entry, id);
	return 0;
}

/* An index that was built before its debug file was installed is not good enough any more. */
static bool is_outdated(const struct symbolize_indexes *indexes, const struct symbolize_file *file,
	const struct index *index)
{
	struct companions found;
	bool any;

	if (!index_lacks_debug(index))
		return false;
	find_debug_files(indexes, file, &found);
	any = found.count > 0;
	companions_close(&found);
	return any;
}

int symbolize_index(struct symbolize_indexes *indexes, const struct module_id *id,
	const struct symbolize_file *file, struct index **ret_index)
{
	struct index *index;

	if (!indexes->cache)
		return build_in_memory(indexes, file, ret_index);
	if (cache_open(indexes->cache, id, &index))
		return build_in_cache(indexes, id, file, ret_index);
	if (is_outdated(indexes, file, index)) {
		index_destroy(index);
		return build_in_cache(indexes, id, file, ret_index);
	}
	*ret_index = index;
	return 0;
}

int symbolize_index_of_file(
	struct symbolize_indexes *indexes, const char *path, struct index **ret_index)
{
	autofree char *whole = realpath(path, NULL);
	autoclose int fd = -1;
	struct module_id id;
	int err = open_file(path, &fd, &id);
	const struct symbolize_file file = {
		.path = whole ? whole : path,
		.elf_fd = fd,
		.root_fd = -1,
	};

	return err ? err : symbolize_index(indexes, &id, &file, ret_index);
}
