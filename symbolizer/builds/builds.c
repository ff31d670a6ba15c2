/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/builds_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"

enum {
	MAX_TAGS = 1 << 16, /* requests that wait for one module */
	WALL_FACTOR = 4,
	WALL_EXTRA_SECONDS = 5,
};

DEFINE_AUTO(index);

void build_destroy(struct build *build)
{
	if (!build)
		return;
	if (build->elf_fd >= 0)
		close(build->elf_fd);
	companions_close(&build->companions);
	if (build->first_fd >= 0)
		close(build->first_fd);
	free(build->path);
	free(build->directories);
	sandbox_kill(&build->sandbox);
	debuginfod_abandon(&build->debug);
	free(build->tags);
	free(build);
}

int builds_create(const struct builds_options *options, struct builds **ret_builds)
{
	struct builds *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->options = *options;
	b->waiting_end = &b->waiting;
	b->debug.waiting_end = &b->debug.waiting;
	*ret_builds = b;
	return 0;
}

void builds_watch(struct builds *b, int fd, bool on)
{
	if (b->options.watch)
		b->options.watch(b->options.context, fd, on);
}

static void destroy_list(struct builds *b, struct build *list)
{
	while (list) {
		struct build *build = list;

		list = build->next;
		if (build->sandbox.result_fd >= 0)
			builds_watch(b, build->sandbox.result_fd, false);
		sandbox_kill(&build->sandbox);
		if (build->debug.child.result_fd >= 0)
			builds_watch(b, build->debug.child.result_fd, false);
		cache_abandon(b->options.cache, &build->entry);
		build_destroy(build);
	}
}

void builds_destroy(struct builds *b)
{
	if (!b)
		return;
	destroy_list(b, b->running);
	destroy_list(b, b->waiting);
	destroy_list(b, b->postponed);
	destroy_list(b, b->debug.waiting);
	destroy_list(b, b->debug.asking);
	free(b);
}

static void count(struct builds *b, enum metric id)
{
	metrics_add(b->options.metrics, id, 1);
}

static void done(struct builds *b, uint64_t tag, struct index *index)
{
	b->options.done(b->options.context, tag, index);
}

/* ---- the end of a build -------------------------------------------------------------------- */

/*
 * Each waiter gets an index of its own. They come from the descriptor and not from the cache: a
 * full disk or a trimmer must not cost what has just been built.
 */
static void deliver_index(struct builds *b, const struct build *build, int fd)
{
	for (size_t i = 0; i < build->tag_count; i++) {
		struct index *index = NULL;

		if (index_open(fd, &index))
			index = NULL;
		done(b, build->tags[i], index);
	}
}

/* Nothing, or what the first pass made, where they do not have that already. */
static void deliver_rest(struct builds *b, const struct build *build)
{
	if (build->improves)
		return;
	if (build->first_fd >= 0) {
		deliver_index(b, build, build->first_fd);
		return;
	}
	for (size_t i = 0; i < build->tag_count; i++)
		done(b, build->tags[i], NULL);
}

static int start(struct builds *b, struct build *build);

/*
 * Builds again with the .dwo files that INDEX wants. False: there are none, or it cannot be; then
 * what is in FD has to do. That is taken otherwise.
 */
static bool start_second(struct builds *b, struct build *build, const struct index *index, int *fd)
{
	const struct debug_search search = {
		.directories = build->directories,
		.root_fd = -1,
		.path = build->path,
	};

	if (build->first_fd >= 0 || !*build->path || !index_wanted_count(index))
		return false;
	companions_close(&build->companions);
	(void)debug_files_find(&search, build->elf_fd, &build->companions);
	if (!debug_files_add_split(&search, index, &build->companions))
		return false;
	build->first_fd = take_fd(fd);
	build->sandbox = (struct sandbox){ .pid = -1, .result_fd = -1 };
	if (!start(b, build))
		return true;
	*fd = take_fd(&build->first_fd);
	return false;
}

/* With a debug file from a server, which was what was asked for if it gave names and lines. */
static bool improve(struct builds *b, struct build *build, const struct index *index, int fd)
{
	bool right = index_sources(index) & INDEX_SOURCE_DWARF;

	builds_debug_over(b, build, right ? BUILDS_FILES_RIGHT : BUILDS_FILES_USELESS);
	if (!right) {
		cache_abandon(b->options.cache, &build->entry);
		return false;
	}
	cache_commit(b->options.cache, &build->entry, &build->id); /* ignoring: as below */
	count(b, METRIC_INDEX_BUILDS_OK);
	deliver_index(b, build, fd);
	return false;
}

/* The child says it wrote an index, and it is none of this file, or we cannot open it now. */
static bool disbelieve(struct builds *b, struct build *build, int err)
{
	bool transient = failure_is_transient(err);

	cache_abandon(b->options.cache, &build->entry);
	if (err == -EBADMSG && build->first_fd < 0 && !build->improves)
		cache_set_failed(b->options.cache, &build->id);
	if (transient)
		count(b, METRIC_INDEX_BUILDS_INTERRUPTED);
	else
		count(b,
			err == -ESTALE ? METRIC_INDEX_BUILDS_BAD_INPUT : METRIC_INDEX_BUILDS_CRASH);
	if (builds_postpone(b, build, err))
		return true;
	deliver_rest(b, build);
	builds_debug_over(b, build, transient ? BUILDS_FILES_UNREAD : BUILDS_FILES_USELESS);
	return false;
}

/* The child says it wrote an index; whether that is one, we see for ourselves. True: it goes on. */
static bool succeed(struct builds *b, struct build *build)
{
	autocall(auto_index_destroy) struct index *index = NULL;
	autoclose int fd = fcntl(build->entry.fd, F_DUPFD_CLOEXEC, 0);
	int err = fd < 0 ? -errno : index_open(fd, &index);

	/* The file was changed after it had been looked at, so it is not the one to be named. */
	if (!err && !index_is_of(index, &build->id))
		err = -ESTALE;
	if (err)
		return disbelieve(b, build, err);
	if (build->improves)
		return improve(b, build, index, fd);
	cache_commit(b->options.cache, &build->entry, &build->id); /* ignoring: see above */
	if (start_second(b, build, index, &fd))
		return true;
	count(b, METRIC_INDEX_BUILDS_OK);
	/* Before they get it, and may ask for the same once more. */
	if (!builds_debug_wants(b, build, index)) {
		deliver_index(b, build, fd);
		return false;
	}
	builds_debug_add(b, build);
	deliver_index(b, build, fd);
	return true;
}

static enum metric outcome_metric(enum sandbox_outcome outcome)
{
	switch (outcome) {
	case SANDBOX_OK:
		return METRIC_INDEX_BUILDS_OK;
	case SANDBOX_BAD_INPUT:
		return METRIC_INDEX_BUILDS_BAD_INPUT;
	case SANDBOX_LIMIT:
		return METRIC_INDEX_BUILDS_LIMIT;
	case SANDBOX_INTERRUPTED:
		return METRIC_INDEX_BUILDS_INTERRUPTED;
	case SANDBOX_CRASH:
		break;
	}
	return METRIC_INDEX_BUILDS_CRASH;
}

static void fail(struct builds *b, struct build *build, enum sandbox_outcome outcome, int error)
{
	/* The disk's fault and not the module's. */
	bool transient = outcome == SANDBOX_BAD_INPUT && failure_is_transient(error);

	cache_abandon(b->options.cache, &build->entry);
	if (build->first_fd < 0 && !build->improves && !transient)
		cache_set_failed(b->options.cache, &build->id);
	count(b, outcome_metric(outcome));
	deliver_rest(b, build);
	builds_debug_over(b, build, transient ? BUILDS_FILES_UNREAD : BUILDS_FILES_USELESS);
}

/* Of a debug file, builds_debug_over() takes note. */
static void note_interrupted(struct builds *b, const struct build *build)
{
	if (build->first_fd < 0 && !build->improves)
		cache_add_interrupted(b->options.cache, &build->id);
}

/* True: it will be built again. */
static bool interrupt(struct builds *b, struct build *build)
{
	cache_abandon(b->options.cache, &build->entry);
	count(b, METRIC_INDEX_BUILDS_INTERRUPTED);
	b->setbacks.interrupted++;
	note_interrupted(b, build);
	if (builds_postpone(b, build, -EAGAIN))
		return true;
	deliver_rest(b, build);
	builds_debug_over(b, build, BUILDS_FILES_INTERRUPTED);
	return false;
}

static void account(struct builds *b, const struct sandbox *s)
{
	b->running_count--;
	b->cpu_ns += s->cpu_ns;
	b->peak_bytes = MAX(b->peak_bytes, s->peak_bytes);
}

/* True: a second pass has begun, or it is to be tried again. */
static bool finish(struct builds *b, struct build *build)
{
	struct sandbox_result result;
	enum sandbox_outcome outcome;

	builds_watch(b, build->sandbox.result_fd, false);
	outcome = sandbox_finish(&build->sandbox, &result);
	account(b, &build->sandbox);
	if (outcome == SANDBOX_OK)
		return succeed(b, build);
	if (outcome == SANDBOX_INTERRUPTED)
		return interrupt(b, build);
	fail(b, build, outcome, result.error);
	return false;
}

static void expire(struct builds *b, struct build *build)
{
	builds_watch(b, build->sandbox.result_fd, false);
	sandbox_kill(&build->sandbox);
	account(b, &build->sandbox);
	cache_abandon(b->options.cache, &build->entry);
	note_interrupted(b, build);
	count(b, METRIC_INDEX_BUILDS_LIMIT);
	deliver_rest(b, build);
	builds_debug_over(b, build, BUILDS_FILES_INTERRUPTED);
}

/* ---- the start of a build ------------------------------------------------------------------ */

static uint64_t deadline(const struct builds *b)
{
	uint64_t cpu = b->options.limits.cpu_seconds;

	return cpu ? clock_monotonic_ns() + (WALL_FACTOR * cpu + WALL_EXTRA_SECONDS) * 1000000000u
		   : 0;
}

static int start_sandbox(struct builds *b, struct build *build)
{
	const struct sandbox_files files = {
		.elf_fd = build->elf_fd,
		.output_fd = build->entry.fd,
		.companions = build->companions,
	};

	return sandbox_start_files(&files, &b->options.limits, &build->sandbox);
}

static int start(struct builds *b, struct build *build)
{
	int err = cache_begin(b->options.cache, &build->entry);

	if (err)
		return err;
	err = start_sandbox(b, build);
	if (err) {
		cache_abandon(b->options.cache, &build->entry);
		return err;
	}
	build->deadline_ns = deadline(b);
	build->next = b->running;
	b->running = build;
	b->running_count++;
	builds_watch(b, build->sandbox.result_fd, true);
	return 0;
}

void builds_append(struct builds *b, struct build *build)
{
	*b->waiting_end = build;
	b->waiting_end = &build->next;
	b->waiting_count++;
}

void builds_start_waiting(struct builds *b)
{
	struct build *build;

	while ((build = builds_take_next(b)) != NULL) {
		int err = start(b, build);

		if (!err)
			continue;
		count(b, METRIC_INDEX_BUILDS_NOT_STARTED);
		b->setbacks.not_started++;
		b->setbacks.start_error = err;
		if (builds_postpone(b, build, err))
			continue;
		deliver_rest(b, build);
		builds_debug_over(b, build, BUILDS_FILES_UNREAD);
		build_destroy(build);
	}
}

/* ---- requests ------------------------------------------------------------------------------ */

static struct build *find_in(struct build *list, const struct module_id *id)
{
	while (list && !module_id_equal(&list->id, id))
		list = list->next;
	return list;
}

static int add_tag(struct build *build, uint64_t tag)
{
	int err;

	for (size_t i = 0; build->improves && i < build->tag_count; i++)
		if (build->tags[i] == tag)
			return 0;
	err = array_reserve(build->tags, build->tag_capacity, build->tag_count + 1, MAX_TAGS);

	if (err)
		return err;
	build->tags[build->tag_count++] = tag;
	return 0;
}

/* What a request is about. */
struct request {
	const struct module_id *id;
	uint64_t tag;
	const struct debug_search *search; /* NULL: no debug files */
};

/* Of what is no file of a file system, no server knows. */
static bool asks_servers(const struct builds *b, const struct request *r)
{
	return b->options.debuginfod && r->search && r->search->path[0] == '/';
}

/*
 * Where to look for .dwo files later. Not for processes with a root directory of their own, which
 * would have to be kept open; images of containers do not hold such files.
 */
static int keep_place(struct build *build, const struct debug_search *search)
{
	bool wanted = search && debug_files_is_our_root(search->root_fd);

	build->path = strdup(wanted ? search->path : "");
	build->directories = strdup(wanted ? search->directories : "");
	return build->path && build->directories ? 0 : -ENOMEM;
}

/* *FD is taken on success. */
static int new_build(const struct builds *b, const struct request *r, int *fd, struct build **ret)
{
	autocall(auto_build_destroy) struct build *build = calloc(1, sizeof(*build));
	int err;

	if (!build)
		return -ENOMEM;
	*build = (struct build){
		.id = *r->id,
		.elf_fd = -1,
		.first_fd = -1,
		.asks_servers = asks_servers(b, r),
		.debug = { .child = { .pid = -1, .result_fd = -1 }, .fd = -1 },
		.entry.fd = -1,
		.sandbox = { .pid = -1, .result_fd = -1 },
	};
	err = keep_place(build, r->search);
	if (!err)
		err = add_tag(build, r->tag);
	if (err)
		return err;
	build->elf_fd = take_fd(fd);
	*ret = take(build);
	return 0;
}

static uint64_t file_bytes(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

static uint64_t bytes_of(const struct build *build)
{
	uint64_t bytes = file_bytes(build->elf_fd);

	for (size_t i = 0; i < build->companions.count; i++)
		bytes += file_bytes(build->companions.items[i].fd);
	return bytes;
}

/* *FD is taken on success. */
static int enqueue(struct builds *b, const struct request *r, int *fd)
{
	uint64_t pause_ns = builds_pause_ns(b, r->id);
	struct build *build;
	int err;

	if (b->waiting_count >= b->options.max_waiting &&
		b->running_count >= b->options.max_children)
		return -EAGAIN;
	err = new_build(b, r, fd, &build);
	if (err)
		return err;
	/* What is built without them is kept, and has no lines. */
	err = r->search ? debug_files_find(r->search, build->elf_fd, &build->companions) : 0;
	if (err) {
		build_destroy(build);
		return err;
	}
	build->bytes = bytes_of(build);
	if (!pause_ns) {
		builds_append(b, build);
		builds_start_waiting(b);
	} else if (!builds_put_off(b, build, pause_ns)) {
		deliver_rest(b, build);
		build_destroy(build);
	}
	return 0;
}

/* Servers may have what INDEX, which was in the cache, lacks. *FD is taken if they are asked. */
static void improve_cached(
	struct builds *b, const struct request *r, int *fd, const struct index *index)
{
	struct build *build;

	if (*fd < 0 || !asks_servers(b, r) || new_build(b, r, fd, &build))
		return;
	if (builds_debug_wants(b, build, index))
		builds_debug_add(b, build);
	else
		build_destroy(build);
}

/* True when the cache settled it. *FD may be taken. */
static bool ask_cache(struct builds *b, const struct request *r, int *fd)
{
	struct index *index;
	int err = cache_open(b->options.cache, r->id, &index);

	if (!err && r->search && *fd >= 0 && debug_files_would_help(r->search, *fd, index)) {
		index_destroy(index);
		return false;
	}
	if (!err) {
		count(b, METRIC_INDEX_CACHE_HITS);
		improve_cached(b, r, fd, index);
		done(b, r->tag, index);
		return true;
	}
	if (err == -EBADMSG)
		count(b, METRIC_INDEX_CACHE_BAD);
	if (!cache_failed(b->options.cache, r->id))
		return false;
	done(b, r->tag, NULL);
	return true;
}

static struct build *find(const struct builds *b, const struct module_id *id)
{
	struct build *build = find_in(b->running, id);

	if (!build)
		build = find_in(b->waiting, id);
	if (!build)
		build = find_in(b->postponed, id);
	if (!build)
		build = find_in(b->debug.waiting, id);
	return build ? build : find_in(b->debug.asking, id);
}

/* What there is while a better one is being made. */
static void deliver_meanwhile(struct builds *b, const struct request *r)
{
	struct index *index;

	done(b, r->tag, cache_open(b->options.cache, r->id, &index) ? NULL : index);
}

int builds_request_debug(struct builds *b, const struct module_id *id, int fd_, uint64_t tag,
	const struct debug_search *search)
{
	const struct request request = { id, tag, search };
	autoclose int fd = fd_;
	struct build *same = find(b, id);
	int err;

	if (same && same->improves)
		deliver_meanwhile(b, &request);
	if (same) {
		err = add_tag(same, tag);
		return same->improves ? 0 : err;
	}
	if (ask_cache(b, &request, &fd))
		return 0;
	if (fd < 0) {
		done(b, tag, NULL);
		return 0;
	}
	return enqueue(b, &request, &fd);
}

int builds_request(struct builds *b, const struct module_id *id, int fd, uint64_t tag)
{
	return builds_request_debug(b, id, fd, tag, NULL);
}

/* ---- the owner's events -------------------------------------------------------------------- */

static void unlink_running(struct builds *b, struct build *build)
{
	struct build **at = &b->running;

	while (*at != build)
		at = &(*at)->next;
	*at = build->next;
	build->next = NULL;
}

void builds_ready(struct builds *b, int fd)
{
	struct build *build = b->running;

	while (build && build->sandbox.result_fd != fd)
		build = build->next;
	if (!build && builds_debug_ready(b, fd))
		return;
	if (!build || !sandbox_receive(&build->sandbox))
		return;
	/* Off the list first: `done` may come back with a request. */
	unlink_running(b, build);
	if (!finish(b, build))
		build_destroy(build);
	builds_start_waiting(b);
}

static struct build *find_expired(const struct builds *b, uint64_t now_ns)
{
	struct build *build = b->running;

	while (build && (!build->deadline_ns || now_ns < build->deadline_ns))
		build = build->next;
	return build;
}

void builds_expire(struct builds *b, uint64_t now_ns)
{
	struct build *build;

	while ((build = find_expired(b, now_ns))) {
		unlink_running(b, build);
		expire(b, build);
		build_destroy(build);
	}
	builds_debug_turn(b, now_ns);
	builds_resume(b, now_ns);
	builds_start_waiting(b);
}

unsigned int builds_pending(const struct builds *b)
{
	return b->waiting_count + b->running_count + b->postponed_count - b->improving_count;
}

struct builds_setbacks builds_setbacks(const struct builds *b)
{
	return b->setbacks;
}

struct builds_improving builds_improving(const struct builds *b)
{
	const struct build *build;
	struct builds_improving now = {
		.modules = b->debug.waiting_count + b->debug.open_count,
	};

	for (build = b->debug.asking; build; build = build->next) {
		struct stat st;

		now.bytes += fstat(build->debug.fd, &st) ? 0 : (uint64_t)st.st_size;
	}
	return now;
}

uint64_t builds_cpu_ns(const struct builds *b)
{
	return b->cpu_ns;
}

uint64_t builds_peak_bytes(const struct builds *b)
{
	return b->peak_bytes;
}
