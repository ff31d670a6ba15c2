/* SPDX-License-Identifier: Apache-2.0 */
/* Starts builds and ends them: verifies what the child wrote and delivers it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failure.h"
#include "symbolizer/builds/builds_internal.h"
#include "symbolizer/sandbox/child.h"

enum {
	WALL_FACTOR = 4,
	WALL_EXTRA_SECONDS = 5,
};

DEFINE_AUTO(index);

/* ---- delivery ------------------------------------------------------------------------------- */

/*
 * Each requester gets its own index, opened from the descriptor rather than the cache: a full disk
 * or a trimmer must not cost what has just been built.
 */
static void build_deliver(struct builds *b, const struct build *build, int fd)
{
	bool outer = b->delivering;

	b->delivering = true;
	for (size_t i = 0; i < build->tag_count; i++) {
		struct index *index = NULL;

		if (index_open(fd, &index))
			index = NULL;
		builds_done(b, build->tags[i], index, build->debug_is_late);
	}
	b->delivering = outer;
}

/* What is in the cache if functions were wanted, which may have been too much for the builder. */
static struct index *build_open_cached(struct builds *b, const struct build *build)
{
	struct index *index;

	if (!build->wants_functions || cache_open(b->options.cache, &build->id, &index))
		return NULL;
	return index;
}

/* Delivers the first pass's index, NULL if there is none. */
static void build_deliver_first(struct builds *b, const struct build *build)
{
	if (build->first_fd >= 0) {
		build_deliver(b, build, build->first_fd);
		return;
	}
	for (size_t i = 0; i < build->tag_count; i++)
		builds_done(b, build->tags[i], build_open_cached(b, build), build->debug_is_late);
}

/* Ends BUILD without a new index and destroys it. */
static void build_give_up(struct builds *b, struct build *build, enum builds_verdict verdict)
{
	bool has_index = build_is_in(build, BUILDS_IMPROVING);

	/* Take it off its list first: `done` may make a request. */
	builds_move(b, build, BUILD_OVER);
	if (!has_index)
		build_deliver_first(b, build);
	builds_debug_over(b, build, verdict);
	build_destroy(build);
}

void builds_refuse(struct builds *b, struct build *build)
{
	assert(build->state == BUILD_NEW);
	build_give_up(b, build, BUILDS_FILES_UNREAD);
}

static struct debug_search build_search(struct build *build)
{
	return (struct debug_search){
		.directories = build->directories,
		.root_fd = build->root_fd,
		.path = build->path,
		.also = build->also,
		.late = &build->debug_is_late,
	};
}

/* ---- start ---------------------------------------------------------------------------------- */

static uint64_t builds_deadline_ns(const struct builds *b)
{
	uint64_t cpu = b->options.limits.cpu_seconds;

	return cpu ? clock_monotonic_ns() + (WALL_FACTOR * cpu + WALL_EXTRA_SECONDS) * 1000000000u
		   : 0;
}

static int build_start_sandbox(struct builds *b, struct build *build)
{
	const struct sandbox_files files = {
		.elf_fd = build->elf_fd,
		.elf_bytes = build->elf_bytes,
		.output_fd = build->entry.fd,
		.debug_files = build->debug_files,
		.may_ask = build->searches,
		.wants_functions = build->wants_functions,
	};

	build->running_functions = build->wants_functions;
	if (build->state == BUILD_WAITING)
		build->debug_is_late = build->without_debug;
	return sandbox_start_files(&files, &b->options.limits, &build->sandbox);
}

/* On error BUILD's state is unchanged. */
static int build_start(struct builds *b, struct build *build, enum build_state running)
{
	int err = cache_begin(b->options.cache, &build->entry);

	if (err)
		return err;
	err = build_start_sandbox(b, build);
	if (err) {
		cache_abandon(b->options.cache, &build->entry);
		return err;
	}
	build->deadline_ns = builds_deadline_ns(b);
	build->hurry = HURRY_NOT_YET;
	builds_move(b, build, running);
	builds_watch(b, build->sandbox.result_fd, true);
	return 0;
}

static void build_not_started(struct builds *b, struct build *build, int err)
{
	builds_count(b, METRIC_INDEX_BUILDS_NOT_STARTED);
	b->setbacks.not_started++;
	b->setbacks.start_error = err;
	if (!builds_postpone(b, build, err))
		build_give_up(b, build, BUILDS_FILES_UNREAD);
}

/* It counts as an attempt: the requesters are not to wait for as long as a server likes. */
static void build_held_up(struct builds *b, struct build *build)
{
	if (!builds_postpone(b, build, -EAGAIN))
		build_give_up(b, build, BUILDS_FILES_UNREAD);
}

/* Whether a killed child is not gone that may wait for BUILD's file. */
static bool builds_is_held_up(const struct builds *b, const struct build *build)
{
	for (unsigned int i = 0; i < b->dying_count; i++) {
		const struct builds_dying *dying = &b->dying[i];
		const struct module_id *id = &dying->id;

		/* It only waits for a CPU. */
		if (child_state(dying->sandbox.pid) == 'R')
			continue;
		if (module_id_equal(id, &build->id)) {
			if (dying->had_debug_files && build->without_debug)
				continue;
			return true;
		}
		if (id->file.claimed && build->id.file.claimed &&
			id->file.device == build->id.file.device)
			return true;
	}
	return false;
}

/* Likewise; what it waits for may be a debug file, without which BUILD can be built. */
static bool build_must_wait(const struct builds *b, struct build *build)
{
	if (!builds_is_held_up(b, build))
		return false;
	if (build->state != BUILD_WAITING || build->without_debug)
		return true;
	build->without_debug = true;
	build->without_debug = !builds_is_held_up(b, build);
	return !build->without_debug;
}

void builds_start_waiting(struct builds *b)
{
	struct build *build;

	builds_reap(b);
	while ((build = builds_next(b)) != NULL) {
		bool better = build->state == BUILD_WAITING_BETTER;
		int err;

		if (build_must_wait(b, build)) {
			build_held_up(b, build);
			continue;
		}
		err = build_start(b, build, better ? BUILD_RUNNING_BETTER : BUILD_RUNNING);

		if (err)
			build_not_started(b, build, err);
	}
}

/*
 * Builds again with the .dwo files that INDEX wants and takes *FD. Returns false, *FD untouched, if
 * there are none or the build cannot start; the first index has to do then.
 */
static bool build_start_split(
	struct builds *b, struct build *build, const struct index *index, int *fd)
{
	const struct debug_search search = build_search(build);

	/* Container images do not contain .dwo files. */
	if (build->state != BUILD_RUNNING || !*build->path || build->root_fd >= 0)
		return false;
	debug_files_close(&build->debug_files);
	if (!debug_search_add_split(&search, index, &build->debug_files))
		return false;
	build->first_fd = take_fd(fd);
	build->sandbox = (struct sandbox){ .pid = -1, .result_fd = -1 };
	if (!build_start(b, build, BUILD_RUNNING_SPLIT))
		return true;
	*fd = take_fd(&build->first_fd);
	return false;
}

static void builds_account(struct builds *b, uint64_t owner, const struct sandbox *s)
{
	b->cpu_ns += s->cpu_ns;
	builds_charge(b, owner, s->cpu_ns);
	b->peak_bytes = MAX(b->peak_bytes, s->peak_bytes);
}

void builds_stop(struct builds *b, struct build *build)
{
	builds_watch(b, build->sandbox.result_fd, false);
	if (sandbox_kill(&build->sandbox))
		builds_account(b, build->owner, &build->sandbox);
	else
		b->dying[b->dying_count++] = (struct builds_dying){
			.sandbox = build->sandbox,
			.id = build->id,
			.owner = build->owner,
			.had_debug_files = build->debug_files.count > 0,
		};
	build->sandbox.pid = -1;
	cache_abandon(b->options.cache, &build->entry);
}

void builds_reap(struct builds *b)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < b->dying_count; i++) {
		struct builds_dying *dying = &b->dying[i];

		if (sandbox_reap(&dying->sandbox))
			builds_account(b, dying->owner, &dying->sandbox);
		else
			b->dying[left++] = *dying;
	}
	b->dying_count = left;
}

/* ---- questions ------------------------------------------------------------------------------ */

/* Finds the files that QUESTION names. */
static int build_find(
	struct build *build, const struct sandbox_question *question, struct debug_files *ret_found)
{
	const struct debug_search search = build_search(build);

	ret_found->count = 0;
	if (!build->searches || build->without_debug)
		return 0;
	if (question->of == SANDBOX_OF_MODULE)
		return debug_search_find(&search, build->elf_fd, &question->names, ret_found);
	if (question->of >= build->debug_files.count)
		return 0;
	return debug_search_find_alternate(
		&search, &build->debug_files.items[question->of], &question->names, ret_found);
}

/* The child appends them to its debug files in the same order. */
static void build_offer(struct build *build, const struct debug_files *found)
{
	sandbox_answer(&build->sandbox, found);
	for (size_t i = 0; i < found->count; i++)
		build->debug_files.items[build->debug_files.count++] = found->items[i];
}

/* For a debug file from a server: servers are asked if our debug directories lack the alternate. */
static void build_answer_better(
	struct builds *b, struct build *build, const struct sandbox_question *question)
{
	const struct build_id *id = &question->names.alternate_id;
	struct debug_files found = { .count = 0 };
	uint64_t bytes;
	int fd;

	if (question->of != SANDBOX_OF_MODULE && id->size > 1) {
		if (!debug_search_open_by_id(build->directories, id, &bytes, &fd))
			found.items[found.count++] = (struct debug_file){
				.fd = fd,
				.role = DEBUG_FILE_SUPPLEMENTARY,
				.is_ours = true,
				.bytes = bytes,
			};
		else if (builds_debug_ask_alternate(b, build, id))
			return;
	}
	build_offer(build, &found);
}

/* The search failed for lack of descriptors or memory; an index built now would have no lines. */
static void build_not_searched(struct builds *b, struct build *build, int err)
{
	builds_stop(b, build);
	debug_files_close(&build->debug_files);
	build_not_started(b, build, err);
}

void builds_answer(struct builds *b, struct build *build)
{
	const struct sandbox_question *question = sandbox_question(&build->sandbox);
	struct debug_files found;
	int err;

	if (build->state == BUILD_RUNNING_BETTER) {
		build_answer_better(b, build, question);
		return;
	}
	err = build_find(build, question, &found);
	if (err)
		build_not_searched(b, build, err);
	else
		build_offer(build, &found);
}

/* ---- end ------------------------------------------------------------------------------------ */

/* Ends a build with a debug file from a server, which was the right one if it gave DWARF. */
static void build_improve(struct builds *b, struct build *build, const struct index *index, int fd)
{
	bool right = index_sources(index) & INDEX_SOURCE_DWARF;

	builds_move(b, build, BUILD_OVER);
	builds_debug_over(b, build, right ? BUILDS_FILES_RIGHT : BUILDS_FILES_USELESS);
	if (right) {
		/* Ignoring an error: the index is delivered from FD. */
		cache_commit(b->options.cache, &build->entry, &build->id);
		builds_count(b, METRIC_INDEX_BUILDS_OK);
		build_deliver(b, build, fd);
	} else {
		cache_abandon(b->options.cache, &build->entry);
	}
	build_destroy(build);
}

/* Without functions the file may be no problem, so a build with them says nothing about others. */
static void build_note_failed(struct builds *b, const struct build *build)
{
	if (build->state == BUILD_RUNNING && !build->running_functions)
		cache_set_failed(b->options.cache, &build->id);
}

/* The child reported success, but the index is not of this file or cannot be opened now. */
static void build_disbelieve(struct builds *b, struct build *build, int err)
{
	bool transient = failure_is_transient(err);

	cache_abandon(b->options.cache, &build->entry);
	if (err == -EBADMSG)
		build_note_failed(b, build);
	if (transient)
		builds_count(b, METRIC_INDEX_BUILDS_INTERRUPTED);
	else
		builds_count(b,
			err == -ESTALE ? METRIC_INDEX_BUILDS_BAD_INPUT : METRIC_INDEX_BUILDS_CRASH);
	if (!builds_postpone(b, build, err))
		build_give_up(b, build, transient ? BUILDS_FILES_UNREAD : BUILDS_FILES_USELESS);
}

/* Delivers the index. If servers may have what it lacks, BUILD is queued for a better one. */
static void build_complete(struct builds *b, struct build *build, const struct index *index, int fd)
{
	bool queued = builds_debug_wants(b, build, index);

	builds_count(b, METRIC_INDEX_BUILDS_OK);
	/* Move it before `done` runs, which may request the same module again. */
	if (queued)
		builds_debug_queue(b, build);
	else
		builds_move(b, build, BUILD_OVER);
	build->is_delivered = true;
	build_deliver(b, build, fd);
	build->is_delivered = false;
	if (queued && build->is_superseded)
		builds_move(b, build, BUILD_OVER);
	if (build->state == BUILD_OVER)
		build_destroy(build);
}

/* Functions were wanted after the child had started. Returns false if they were not. */
static bool build_start_again(struct builds *b, struct build *build)
{
	if (build->running_functions || !build->wants_functions)
		return false;
	debug_files_close(&build->debug_files);
	if (build->first_fd >= 0)
		close(take_fd(&build->first_fd));
	build->sandbox = (struct sandbox){ .pid = -1, .result_fd = -1 };
	builds_count(b, METRIC_INDEX_BUILDS_OK);
	builds_move(b, build, BUILD_WAITING);
	builds_start_waiting(b);
	return true;
}

/* The child reported success; verifies its index. */
static void build_succeed(struct builds *b, struct build *build)
{
	autocall(auto_index_destroy) struct index *index = NULL;
	autoclose int fd = -1;
	int err;

	cache_share(b->options.cache, &build->entry, &build->id);
	fd = fcntl(build->entry.fd, F_DUPFD_CLOEXEC, 0);
	err = fd < 0 ? -errno : index_open(fd, &index);
	/* The file changed after it was identified, so the index is not of ID. */
	if (!err && !index_is_of(index, &build->id))
		err = -ESTALE;
	if (err) {
		build_disbelieve(b, build, err);
		return;
	}
	if (build->state == BUILD_RUNNING_BETTER) {
		build_improve(b, build, index, fd);
		return;
	}
	/* Ignoring an error, as above. */
	cache_commit(b->options.cache, &build->entry, &build->id);
	if (build_start_again(b, build))
		return;
	if (!build_start_split(b, build, index, &fd))
		build_complete(b, build, index, fd);
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
	case SANDBOX_NO_SPACE:
		return METRIC_INDEX_BUILDS_NO_SPACE;
	case SANDBOX_CRASH:
		break;
	}
	return METRIC_INDEX_BUILDS_CRASH;
}

static void build_fail(
	struct builds *b, struct build *build, enum sandbox_outcome outcome, int error)
{
	/* A disk did not answer: it is at fault, not the module. */
	bool transient = outcome == SANDBOX_BAD_INPUT && failure_is_transient(error);

	cache_abandon(b->options.cache, &build->entry);
	if (!transient)
		build_note_failed(b, build);
	builds_count(b, outcome_metric(outcome));
	build_give_up(b, build, transient ? BUILDS_FILES_UNREAD : BUILDS_FILES_USELESS);
}

/* Interruptions by a server's debug file are recorded by builds_debug_over(). */
static void build_note_interrupted(struct builds *b, const struct build *build)
{
	if (build->state == BUILD_RUNNING)
		cache_add_interrupted(b->options.cache, &build->id);
}

static void build_interrupted(struct builds *b, struct build *build)
{
	cache_abandon(b->options.cache, &build->entry);
	builds_count(b, METRIC_INDEX_BUILDS_INTERRUPTED);
	if (!builds_postpone(b, build, -EAGAIN))
		build_give_up(b, build, BUILDS_FILES_INTERRUPTED);
}

static void build_was_killed(struct builds *b, struct build *build)
{
	b->setbacks.interrupted++;
	build_note_interrupted(b, build);
	build_interrupted(b, build);
}

/*
 * No room for the index, which is the module's fault neither. Not postponed: without more space
 * each further attempt is as vain and as dear as this one. The requesters ask again later.
 */
static void build_no_space(struct builds *b, struct build *build, int error)
{
	cache_abandon(b->options.cache, &build->entry);
	builds_count(b, METRIC_INDEX_BUILDS_NO_SPACE);
	b->setbacks.no_space++;
	b->setbacks.space_error = error;
	build_give_up(b, build, BUILDS_FILES_UNREAD);
}

static void build_finish(struct builds *b, struct build *build)
{
	struct sandbox_result result;
	enum sandbox_outcome outcome;

	outcome = sandbox_finish(&build->sandbox, &result);
	builds_account(b, build->owner, &build->sandbox);
	if (outcome == SANDBOX_OK)
		build_succeed(b, build);
	else if (outcome == SANDBOX_INTERRUPTED)
		build_was_killed(b, build);
	else if (outcome == SANDBOX_NO_SPACE)
		build_no_space(b, build, result.error);
	else
		build_fail(b, build, outcome, result.error);
}

void builds_end(struct builds *b, struct build *build)
{
	assert(build_is_in(build, BUILDS_RUNNING));
	builds_watch(b, build->sandbox.result_fd, false);
	if (sandbox_is_gone(&build->sandbox))
		build_finish(b, build);
	else
		builds_watch(b, build->sandbox.result_fd, true);
}

/*
 * Not counted as an interruption in the cache, whose pauses grow up to a day: the file may answer
 * the next moment, and a child that waits costs nothing. Maybe only a debug file did not answer.
 */
void builds_end_hanging(struct builds *b, struct build *build)
{
	assert(build_is_in(build, BUILDS_RUNNING));
	b->setbacks.hanging++;
	if (build->state != BUILD_RUNNING_BETTER && build->debug_files.count)
		build->without_debug = build->debug_is_late = true;
	builds_stop(b, build);
	build_interrupted(b, build);
}

void builds_expire_build(struct builds *b, struct build *build)
{
	assert(build_is_in(build, BUILDS_RUNNING));
	builds_stop(b, build);
	build_note_interrupted(b, build);
	builds_count(b, METRIC_INDEX_BUILDS_LIMIT);
	build_give_up(b, build, BUILDS_FILES_INTERRUPTED);
}
