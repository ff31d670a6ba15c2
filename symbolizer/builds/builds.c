/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/builds_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/foreign.h"
#include "symbolizer/index/functions.h"

enum {
	MAX_TAGS = 1 << 16, /* requests per module */
};

void build_destroy(struct build *build)
{
	if (!build)
		return;
	assert(!build->link);
	if (build->elf_fd >= 0)
		close(build->elf_fd);
	debug_files_close(&build->debug_files);
	if (build->first_fd >= 0)
		close(build->first_fd);
	if (build->root_fd >= 0)
		close(build->root_fd);
	free(build->path);
	free(build->directories);
	/* One that is not gone yet is left behind: only at the owner's end. */
	(void)sandbox_kill(&build->sandbox);
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
	b->calm_fd = -1;
	builds_lists_init(b);
	*ret_builds = b;
	return 0;
}

void builds_watch(struct builds *b, int fd, bool on)
{
	if (b->options.watch)
		b->options.watch(b->options.context, fd, on);
}

static void builds_discard(struct builds *b, struct build *build)
{
	builds_unlink(b, build);
	if (build->sandbox.result_fd >= 0)
		builds_watch(b, build->sandbox.result_fd, false);
	if (build->debug.child.result_fd >= 0)
		builds_watch(b, build->debug.child.result_fd, false);
	/* Kill the child first: it may still write to the entry. */
	(void)sandbox_kill(&build->sandbox);
	cache_abandon(b->options.cache, &build->entry);
	build_destroy(build);
}

void builds_destroy(struct builds *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < BUILD_OVER; i++)
		while (b->lists[i].first)
			builds_discard(b, b->lists[i].first);
	if (b->calm_watched)
		builds_watch(b, b->calm_fd, false);
	if (b->calm_fd >= 0)
		close(b->calm_fd);
	free(b);
}

void builds_count(struct builds *b, enum metric id)
{
	metrics_add(b->options.metrics, id, 1);
}

void builds_done(struct builds *b, uint64_t tag, struct index *index, bool late)
{
	bool outer = b->debug_is_late;

	b->debug_is_late = late;
	b->options.done(b->options.context, tag, index);
	b->debug_is_late = outer;
}

bool builds_debug_is_late(const struct builds *b)
{
	return b->debug_is_late;
}

/* ---- requests ------------------------------------------------------------------------------ */

static bool build_has_id(const struct build *build, const void *context)
{
	return module_id_equal(&build->id, context);
}

static int build_add_tag(struct build *build, uint64_t tag)
{
	int err = array_reserve(build->tags, build->tag_capacity, build->tag_count + 1, MAX_TAGS);

	if (!err)
		build->tags[build->tag_count++] = tag;
	return err;
}

static bool builds_has_tag(const struct build *build, uint64_t tag)
{
	for (size_t i = 0; i < build->tag_count; i++)
		if (build->tags[i] == tag)
			return true;
	return false;
}

struct request {
	const struct module_id *id;
	uint64_t tag;
	const struct debug_search *search; /* NULL: no debug files */
	bool wants_functions;
	bool debug_is_late; /* see builds_debug_is_late() */
};

static uint64_t request_owner(const struct request *r)
{
	return r->search ? r->search->owner : 0;
}

/* Servers know only files that have a path in a file system (no vDSO, no memfd). */
static bool request_asks_servers(const struct builds *b, const struct request *r)
{
	return b->options.debuginfod && r->search && r->search->path[0] == '/';
}

/* Keeps the search for later, when the sandboxed child has read the names of the debug files. */
static int build_keep_search(struct build *build, const struct debug_search *search)
{
	build->path = strdup(search ? search->path : "");
	build->directories = strdup(search ? search->directories : "");
	if (!build->path || !build->directories)
		return -ENOMEM;
	build->searches = search != NULL;
	build->also = search ? search->also : NULL;
	if (!search || debug_search_is_our_root(search->root_fd))
		return 0;
	build->root_fd = fcntl(search->root_fd, F_DUPFD_CLOEXEC, 0);
	return build->root_fd < 0 ? -errno : 0;
}

/* 0 if the file is unreadable, as the builder will find. -EAGAIN: it does not answer. */
static int file_bytes(int fd, uint64_t *ret_bytes)
{
	struct stat st;
	int err = foreign_look(fd, &st);

	if (err == -EAGAIN)
		return err;
	*ret_bytes = err ? 0 : (uint64_t)st.st_size;
	return 0;
}

/* *FD is taken on success. */
static int request_create_build(
	const struct builds *b, const struct request *r, int *fd, struct build **ret)
{
	autocall(auto_build_destroy) struct build *build = calloc(1, sizeof(*build));
	int err;

	if (!build)
		return -ENOMEM;
	*build = (struct build){
		.id = *r->id,
		.owner = request_owner(r),
		.elf_fd = -1,
		.root_fd = -1,
		.first_fd = -1,
		.asks_servers = request_asks_servers(b, r),
		.wants_functions = r->wants_functions,
		.debug = { .child = { .pid = -1, .result_fd = -1 }, .fd = -1 },
		.entry.fd = -1,
		.sandbox = { .pid = -1, .result_fd = -1 },
	};
	err = file_bytes(*fd, &build->elf_bytes);
	if (!err)
		err = build_keep_search(build, r->search);
	if (!err)
		err = build_add_tag(build, r->tag);
	if (err)
		return err;
	build->elf_fd = take_fd(fd);
	*ret = take(build);
	return 0;
}

/* The debug file may be most of the work. Only the one found by build ID is known so far. */
static uint64_t debug_file_bytes(const struct build *build)
{
	autoclose int fd = -1;
	uint64_t bytes;

	if (!build->searches ||
		debug_search_open_by_id(build->directories, &build->id.build_id, &bytes, &fd))
		return 0;
	return bytes;
}

/* Takes BUILD, which is new. */
static int request_start(struct builds *b, struct build *build)
{
	uint64_t pause_ns = builds_pause_ns(b, &build->id);

	build->bytes = build->elf_bytes + debug_file_bytes(build);
	builds_arrive(b, build);
	if (!pause_ns) {
		builds_move(b, build, BUILD_WAITING);
		builds_start_waiting(b);
	} else if (!builds_postpone_for(b, build, pause_ns)) {
		builds_refuse(b, build);
	}
	return 0;
}

/* *FD is taken on success. */
static int request_enqueue(struct builds *b, const struct request *r, int *fd)
{
	struct build *build;
	int err;

	if (builds_is_crowded(b, request_owner(r)) &&
		builds_number(b, BUILDS_RUNNING) >= b->options.max_children)
		return -EAGAIN;
	err = request_create_build(b, r, fd, &build);
	return err ? err : request_start(b, build);
}

/* Servers may have what the cached INDEX lacks. *FD is taken if they are asked. */
static void request_improve_cached(
	struct builds *b, const struct request *r, int *fd, const struct index *index)
{
	struct build *build;

	if (*fd < 0 || !request_asks_servers(b, r) || request_create_build(b, r, fd, &build))
		return;
	build->wants_functions |= index_has_functions(index);
	if (builds_debug_wants(b, build, index))
		builds_debug_queue(b, build);
	else
		build_destroy(build);
}

/* Whether another build would give R more than INDEX, the cached one. */
static bool request_needs_build(struct request *r, int fd, const struct index *index)
{
	struct debug_search search;

	if (fd < 0)
		return false;
	if (r->wants_functions && !index_has_functions(index))
		return true;
	if (!r->search)
		return false;
	search = *r->search;
	search.late = &r->debug_is_late;
	return debug_search_would_help(&search, fd, index);
}

/* Returns true if the request is done. *FD may be taken. */
static bool request_ask_cache(struct builds *b, struct request *r, int *fd)
{
	struct index *index;
	int err = cache_open(b->options.cache, r->id, &index);

	if (!err && request_needs_build(r, *fd, index)) {
		r->wants_functions |= index_has_functions(index);
		index_destroy(index);
		return false;
	}
	if (!err) {
		builds_count(b, METRIC_INDEX_CACHE_HITS);
		request_improve_cached(b, r, fd, index);
		builds_done(b, r->tag, index, r->debug_is_late);
		return true;
	}
	if (err == -EBADMSG)
		builds_count(b, METRIC_INDEX_CACHE_BAD);
	if (!cache_failed(b->options.cache, r->id))
		return false;
	builds_done(b, r->tag, NULL, false);
	return true;
}

/* Delivers the cached index while a better one is being made. */
static void request_deliver_cached(struct builds *b, const struct request *r)
{
	struct index *index;

	builds_done(b, r->tag, cache_open(b->options.cache, r->id, &index) ? NULL : index, false);
}

/*
 * Joins the build of the same module that is already under way. If its child runs without the
 * functions that R wants, the module is built once more before anybody gets an index.
 */
static int request_join(struct builds *b, const struct request *r, struct build *same)
{
	builds_share(b, same, request_owner(r));
	if (!build_is_in(same, BUILDS_IMPROVING)) {
		bool had_functions = same->wants_functions;

		same->wants_functions |= r->wants_functions;
		if (!had_functions && r->wants_functions && builds_has_tag(same, r->tag))
			return 0; /* one answer for both requests of this owner */
		return build_add_tag(same, r->tag);
	}
	/* Ignoring an error: on -ENOMEM this requester does without the better index. */
	if (!builds_has_tag(same, r->tag))
		(void)build_add_tag(same, r->tag);
	request_deliver_cached(b, r);
	return 0;
}

/*
 * SAME improves an index without the functions that R wants. That ends here; it begins again after
 * the build with functions, whose index all its requesters get.
 */
static int request_supersede(struct builds *b, const struct request *r, struct build *same, int *fd)
{
	struct build *build = NULL;
	int err = request_create_build(b, r, fd, &build);

	for (size_t i = 0; i < same->tag_count && !err; i++)
		if (same->tags[i] != r->tag)
			err = build_add_tag(build, same->tags[i]);
	if (err) {
		build_destroy(build);
		return err;
	}
	if (same->is_delivered)
		same->is_superseded = true;
	else
		builds_discard(b, same);
	return request_start(b, build);
}

/* Whether SAME has to end, so that R gets functions. */
static bool request_supersedes(const struct request *r, const struct build *same, int fd)
{
	return r->wants_functions && fd >= 0 && build_is_in(same, BUILDS_IMPROVING) &&
	       !same->wants_functions;
}

static int request_make(struct builds *b, struct request *r, int fd_)
{
	autoclose int fd = fd_;
	struct build *same = builds_find(b, BUILDS_ALL, build_has_id, r->id);

	if (same && request_supersedes(r, same, fd))
		return request_supersede(b, r, same, &fd);
	if (same)
		return request_join(b, r, same);
	if (request_ask_cache(b, r, &fd))
		return 0;
	if (fd < 0) {
		builds_done(b, r->tag, NULL, false);
		return 0;
	}
	return request_enqueue(b, r, &fd);
}

int builds_request_debug(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search)
{
	return request_make(b, &(struct request){ .id = id, .tag = tag, .search = search }, fd);
}

int builds_request_functions(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search)
{
	return request_make(b,
		&(struct request){
			.id = id, .tag = tag, .search = search, .wants_functions = true },
		fd);
}

int builds_request(struct builds *b, const struct module_id *id, int fd, uint64_t tag)
{
	return builds_request_debug(b, id, fd, tag, NULL);
}

/* ---- the owner's events -------------------------------------------------------------------- */

static bool build_has_result_fd(const struct build *build, const void *context)
{
	return build->sandbox.result_fd == *(const int *)context;
}

void builds_ready(struct builds *b, int fd)
{
	struct build *build = builds_find(b, BUILDS_RUNNING, build_has_result_fd, &fd);

	if (b->calm_watched && fd == b->calm_fd) {
		builds_calm(b);
		return;
	}
	if (!build && builds_debug_ready(b, fd))
		return;
	if (!build)
		return;
	if (sandbox_receive(&build->sandbox))
		builds_end(b, build);
	else if (sandbox_question(&build->sandbox))
		builds_answer(b, build);
	builds_start_waiting(b);
}

static bool build_is_expired(const struct build *build, const void *context)
{
	return build->deadline_ns && *(const uint64_t *)context >= build->deadline_ns;
}

static bool build_hangs(const struct build *build, const void *context)
{
	(void)context;
	return build->sandbox.idle_looks >= BUILDS_IDLE_END;
}

/* Ends what lingers, and what waits for a file that does not answer. */
static void builds_look_after(struct builds *b)
{
	struct build *build;

	for (size_t i = 0; i < BUILD_OVER; i++)
		for (build = 1u << i & BUILDS_RUNNING ? b->lists[i].first : NULL; build;
			build = build->next) {
			if (build->sandbox.ends)
				(void)sandbox_is_gone(&build->sandbox);
			(void)sandbox_idle_looks(&build->sandbox);
		}
	while ((build = builds_find(b, BUILDS_RUNNING, build_hangs, NULL)))
		builds_end_hanging(b, build);
}

void builds_expire(struct builds *b, uint64_t now_ns)
{
	struct build *build;

	builds_reap(b);
	builds_look_after(b);
	while ((build = builds_find(b, BUILDS_RUNNING, build_is_expired, &now_ns)))
		builds_expire_build(b, build);
	builds_debug_tick(b, now_ns);
	builds_repay(b, now_ns);
	builds_resume(b, now_ns);
	builds_start_waiting(b);
}

unsigned int builds_pending(const struct builds *b)
{
	return builds_number(b, BUILDS_PENDING);
}

struct builds_setbacks builds_setbacks(const struct builds *b)
{
	return b->setbacks;
}

struct builds_improving builds_improving(const struct builds *b)
{
	const struct build *build;
	struct builds_improving now = {
		.modules = builds_number(b, BUILDS_IMPROVING),
	};

	for (build = b->lists[BUILD_ASKING].first; build; build = build->next) {
		struct stat st;

		now.bytes += fstat(build->debug.fd, &st) ? 0 : (uint64_t)st.st_size;
	}
	return now;
}

uint64_t builds_peak_bytes(const struct builds *b)
{
	return b->peak_bytes;
}
