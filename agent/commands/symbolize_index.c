/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/settings/cache_directory.h"
#include "agent/commands/symbolize.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/file_state.h"
#include "base/foreign.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/builds/debug_search.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/sandbox/sandbox.h"

/* One build with a waiting user: more than the agent allows for a module. */
static const struct sandbox_limits limits = {
	.memory_bytes = 8UL << 30,
	.cpu_seconds = 300,
	.output_bytes = 4UL << 30,
};

enum { LOOK_MS = 1000, MAX_IDLE_LOOKS = 10 };

DEFINE_AUTO(index);

int symbolize_open(const char *path, int *ret_fd, struct module_id *ret_id)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* Without the build ID: a stripped file and its unstripped twin share it. */
	struct module_id id = { 0 };
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
		fprintf(stderr, "fathom symbolize: cannot open %s: %s\n", path, strerror(-err));
		return err;
	}
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "fathom symbolize: %s is not a regular file\n", path);
		return -EBADMSG;
	}
	err = file_state_read(fd, &id.file);
	if (err)
		return err;
	*ret_id = id;
	*ret_fd = take_fd(&fd);
	return 0;
}

static void create_cache(struct symbolize_indexes *indexes, const struct config *config)
{
	autofree char *path = NULL;

	indexes->cache = NULL;
	if (cache_directory(config, &path))
		return;
	if (cache_create(path, config_number(config, SETTING_cache_max_bytes), &indexes->cache))
		indexes->cache = NULL;
}

static void symbolize_index_create_debuginfod(
	struct symbolize_indexes *indexes, const struct config *config)
{
	const char *urls = config_text(config, SETTING_debuginfod_urls);
	const struct debuginfod_options options = {
		.urls = urls ? urls : "",
		.cache = indexes->cache,
		.limit_bytes = config_number(config, SETTING_cache_max_bytes) / 2 + 1,
	};

	if (debuginfod_create(&options, &indexes->debuginfod))
		indexes->debuginfod = NULL;
}

void symbolize_indexes_init(struct symbolize_indexes *indexes, const struct config *config)
{
	indexes->debug_directories = config_text(config, SETTING_debuginfo_directories);
	indexes->wants_functions = config_flag(config, SETTING_test_functions);
	indexes->kernel_debuginfo = config_flag(config, SETTING_kernel_debuginfo);
	create_cache(indexes, config);
	symbolize_index_create_debuginfod(indexes, config);
}

void symbolize_indexes_deinit(struct symbolize_indexes *indexes)
{
	debuginfod_destroy(indexes->debuginfod);
	cache_destroy(indexes->cache);
}

static void say_why(const char *path, enum sandbox_outcome outcome, int error)
{
	if (outcome == SANDBOX_LIMIT)
		fprintf(stderr,
			"fathom symbolize: indexing %s exceeded the limit of memory or time\n",
			path);
	else if (outcome == SANDBOX_CRASH)
		fprintf(stderr,
			"fathom symbolize: the indexer crashed on %s: the file is malformed, or "
			"fathom has a bug\n",
			path);
	else if (outcome == SANDBOX_INTERRUPTED)
		fprintf(stderr,
			"fathom symbolize: the indexer was killed while reading %s: memory may be "
			"short, try again\n",
			path);
	else if (error == -EOPNOTSUPP)
		fprintf(stderr,
			"fathom symbolize: %s is not a program, library, object or kernel module "
			"for 64-bit x86 or Arm\n",
			path);
	else if (error == -EBADMSG)
		fprintf(stderr, "fathom symbolize: %s is not a readable ELF file\n", path);
	else
		fprintf(stderr, "fathom symbolize: cannot index %s: %s\n", path, strerror(-error));
}

static struct debug_search search_for(
	const struct symbolize_indexes *indexes, const struct symbolize_file *file)
{
	return (struct debug_search){
		.directories = indexes->debug_directories ? indexes->debug_directories : "",
		.root_fd = file->root_fd,
		.path = file->path,
		.also = file->also,
	};
}

/* One index build. */
struct job {
	const struct symbolize_indexes *indexes;
	const struct module_id *id; /* NULL = do not cache */
	const struct symbolize_file *file;
	struct debug_files *debug_files; /* given to the child: at the start, then on demand */
	/*
	 * Origin of debug files: JOB_DEBUG_FETCHED: the first of DEBUG_FILES is a server's;
	 * JOB_FILE_FETCHED: the file itself is.
	 */
	enum { JOB_SEARCHES, JOB_DEBUG_FETCHED, JOB_FILE_FETCHED } kind;
	bool has_lines; /* the index must have lines, or the build fails */
	bool wants_functions;
};

/* Finds the files that QUESTION names and that exist. */
static void find_files(const struct job *job, const struct sandbox_question *question,
	struct debug_files *ret_found)
{
	struct debug_search search = search_for(job->indexes, job->file);
	bool of_module = question->of == SANDBOX_OF_MODULE;

	ret_found->count = 0;
	if (job->kind != JOB_SEARCHES) {
		if (of_module == (job->kind == JOB_FILE_FETCHED))
			symbolize_fetch_alternate(job->indexes, &question->names.alternate_id,
				job->file->path, ret_found);
	} else if (of_module) {
		(void)debug_search_find(&search, job->file->elf_fd, &question->names, ret_found);
	} else if (question->of < job->debug_files->count) {
		(void)debug_search_find_alternate(&search, &job->debug_files->items[question->of],
			&question->names, ret_found);
	}
}

static void answer(const struct job *job, struct sandbox *sandbox)
{
	struct debug_files found;

	find_files(job, sandbox_question(sandbox), &found);
	sandbox_answer(sandbox, &found);
	for (size_t i = 0; i < found.count; i++)
		job->debug_files->items[job->debug_files->count++] = found.items[i];
}

/* A child that cannot be ended now ends when its file answers, or never. */
static int give_up_waiting(const struct job *job, struct sandbox *sandbox)
{
	fprintf(stderr, "fathom symbolize: %s, or a debug file of it, does not answer\n",
		job->file->path);
	(void)sandbox_kill(sandbox);
	return -EAGAIN;
}

static int symbolize_index_wait_for(const struct job *job, struct sandbox *sandbox)
{
	struct sandbox_result result;
	enum sandbox_outcome outcome;

	for (;;) {
		struct pollfd waited = { .fd = sandbox->result_fd, .events = POLLIN };

		if (!poll(&waited, 1, LOOK_MS)) {
			if (sandbox_idle_looks(sandbox) >= MAX_IDLE_LOOKS)
				return give_up_waiting(job, sandbox);
			continue;
		}
		if (sandbox_receive(sandbox) && sandbox_is_gone(sandbox))
			break;
		if (!sandbox->ends && sandbox_question(sandbox))
			answer(job, sandbox);
	}
	outcome = sandbox_finish(sandbox, &result);
	if (outcome == SANDBOX_OK)
		return 0;
	say_why(job->file->path, outcome, result.error);
	return result.error ? result.error : -EBADMSG;
}

static int build_to(int output_fd, const struct job *job, struct index **ret_index)
{
	const char *path = job->file->path;
	struct sandbox_files files = {
		.elf_fd = job->file->elf_fd,
		.output_fd = output_fd,
		.debug_files = *job->debug_files,
		.may_ask = true,
		.wants_functions = job->wants_functions,
		.addresses = job->file->addresses,
		.address_count = job->file->address_count,
	};
	struct sandbox sandbox;
	struct stat st;
	int err = foreign_look(files.elf_fd, &st);

	if (!err) {
		files.elf_bytes = (uint64_t)st.st_size;
		err = sandbox_start_files(&files, &limits, &sandbox);
	}
	if (err) {
		fprintf(stderr, "fathom symbolize: cannot start the indexer: %s\n", strerror(-err));
		return err;
	}
	err = symbolize_index_wait_for(job, &sandbox);
	if (err)
		return err;
	err = index_open(output_fd, ret_index);
	if (err)
		fprintf(stderr, "fathom symbolize: the index of %s is corrupt\n", path);
	return err;
}

static int build_in_memory(const struct job *job, struct index **ret_index)
{
	autoclose int fd = memfd_create("fathom-index", MFD_CLOEXEC);

	return fd < 0 ? -errno : build_to(fd, job, ret_index);
}

static bool symbolize_index_has_lines(const struct index *index)
{
	return index_sources(index) & INDEX_SOURCE_DWARF;
}

static int build_once(
	struct symbolize_indexes *indexes, const struct job *job, struct index **ret_index)
{
	autocall(auto_index_destroy) struct index *index = NULL;
	struct cache_entry entry;
	bool is_kept;
	int err;

	entry.fd = -1;
	if (!indexes->cache || cache_begin(indexes->cache, &entry))
		err = build_in_memory(job, &index);
	else
		err = build_to(entry.fd, job, &index);
	if (!err && job->has_lines && !symbolize_index_has_lines(index))
		err = -ENOENT;
	is_kept = !err && !(index_sources(index) & INDEX_SOURCE_ASKED);
	if (entry.fd >= 0 && !is_kept)
		cache_abandon(indexes->cache, &entry);
	if (err)
		return err;
	/* A failure only means that the next run builds it again. */
	if (entry.fd >= 0 && is_kept) {
		cache_share(indexes->cache, &entry, job->id);
		cache_commit(indexes->cache, &entry, job->id);
	}
	*ret_index = take(index);
	return 0;
}

/*
 * Returns an index with the debug file of a server, if INDEX lacks one and a server has it;
 * otherwise INDEX. Takes ownership of INDEX.
 */
static struct index *improved(
	struct symbolize_indexes *indexes, const struct job *job, struct index *index)
{
	autocall(debug_files_close) struct debug_files debug_files = { .count = 0 };
	struct index *better;
	struct build_id id;
	struct job again = *job;
	int err;

	if (!indexes->debuginfod || job->file->path[0] != '/' ||
		!debuginfod_is_wanted(indexes->debuginfod, index, &id) ||
		!symbolize_fetch(indexes, &id, job->file->path, &debug_files))
		return index;
	again.debug_files = &debug_files;
	again.kind = JOB_DEBUG_FETCHED;
	again.has_lines = true;
	err = build_once(indexes, &again, &better);
	if (failure_is_transient(err))
		return index;
	if (err) {
		debuginfod_is_wrong(indexes->debuginfod, &id);
		fprintf(stderr,
			"fathom symbolize: debuginfod sent a file that is not the debug file of "
			"%s\n",
			job->file->path);
		return index;
	}
	index_destroy(index);
	return better;
}

/* The first index tells which .dwo files there are; if any is found, a second build adds them. */
static int symbolize_index_build(
	struct symbolize_indexes *indexes, const struct job *like, struct index **ret_index)
{
	autocall(debug_files_close) struct debug_files debug_files = { .count = 0 };
	struct debug_search search = search_for(indexes, like->file);
	struct index *index, *second;
	struct job job = *like;
	int err;

	job.debug_files = &debug_files;
	err = build_once(indexes, &job, &index);
	if (err)
		return err;
	debug_files_close(&debug_files);
	if (debug_search_add_split(&search, index, &debug_files) &&
		!build_once(indexes, &job, &second)) {
		index_destroy(index);
		index = second;
	}
	*ret_index = improved(indexes, &job, index);
	return 0;
}

/* True if the cached index lacks functions, or was built before its debug files were installed. */
static bool is_outdated(const struct job *job, const struct index *index)
{
	struct debug_search search = search_for(job->indexes, job->file);

	return (job->wants_functions && !index_has_functions(index)) ||
	       debug_search_would_help(&search, job->file->elf_fd, index);
}

int symbolize_index(struct symbolize_indexes *indexes, const struct module_id *id,
	const struct symbolize_file *file, struct index **ret_index)
{
	struct job job = {
		.indexes = indexes,
		.id = id,
		.file = file,
		.wants_functions = indexes->wants_functions,
	};
	struct index *index;

	if (!indexes->cache || cache_open(indexes->cache, id, &index))
		return symbolize_index_build(indexes, &job, ret_index);
	/* A better one does not lose functions that the agent has asked for. */
	job.wants_functions |= index_has_functions(index);
	if (is_outdated(&job, index)) {
		index_destroy(index);
		return symbolize_index_build(indexes, &job, ret_index);
	}
	*ret_index = improved(indexes, &job, index);
	return 0;
}

int symbolize_index_of_id(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct index **ret_index)
{
	autocall(debug_files_close) struct debug_files fetched = { .count = 0 };
	autocall(debug_files_close) struct debug_files others = { .count = 0 };
	struct symbolize_file file = { .path = name, .root_fd = -1 };
	const struct job job = {
		.indexes = indexes,
		.file = &file,
		.debug_files = &others,
		.kind = JOB_FILE_FETCHED,
	};
	struct index *index;
	int err;

	if (!indexes->debuginfod || debuginfod_is_absent(indexes->debuginfod, id) ||
		!symbolize_fetch(indexes, id, name, &fetched))
		return -ENOENT;
	file.elf_fd = fetched.items[0].fd;
	err = build_in_memory(&job, &index);
	if (err)
		return err;
	if (!symbolize_index_has_lines(index) || !build_id_equal(index_build_id(index), id)) {
		debuginfod_is_wrong(indexes->debuginfod, id);
		index_destroy(index);
		return -ENOENT;
	}
	*ret_index = index;
	return 0;
}
