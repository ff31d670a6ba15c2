/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from servers. A module whose index has no lines is queued here, its file open, until
 * the servers may be asked. When its debug file has arrived, and the alternate (dwz) file of that,
 * the module is built again in the sandbox. The files are unnamed and freed with the build, because
 * only the index is worth keeping. Queue length, number of files and their size are bounded.
 *
 * While the servers do not answer, the queue is dropped: a module that is still in use is requested
 * again later.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbolizer/builds/builds_internal.h"

enum { MAX_QUEUED = 128 };

static struct debuginfod *builds_servers(const struct builds *b)
{
	return b->options.debuginfod;
}

bool builds_debug_wants(struct builds *b, struct build *build, const struct index *index)
{
	return build->asks_servers && builds_number(b, BUILDS_QUEUED) < MAX_QUEUED &&
	       debuginfod_is_wanted(builds_servers(b), index, &build->debug_id);
}

/* ---- the files ------------------------------------------------------------------------------ */

/* FD, a file of our own, is taken. */
static void build_add_file(struct build *build, int fd, enum debug_file_role role)
{
	struct stat st;

	build->debug_files.items[build->debug_files.count++] = (struct debug_file){
		.fd = fd,
		.role = role,
		.bytes = fstat(fd, &st) ? 0 : (uint64_t)st.st_size,
	};
	build->fetched_files++;
}

static int build_ask(struct builds *b, struct build *build, const struct build_id *id)
{
	int err = debuginfod_ask(builds_servers(b), id, &build->debug);

	if (err)
		return err;
	builds_move(b, build, BUILD_ASKING);
	builds_watch(b, build->debug.child.result_fd, true);
	return 0;
}

bool builds_debug_ask_alternate(struct builds *b, struct build *build, const struct build_id *id)
{
	struct debuginfod_request request;

	if (build->asked_alternate || debuginfod_is_absent(builds_servers(b), id) ||
		debuginfod_ask(builds_servers(b), id, &request))
		return false;
	build->asked_alternate = true;
	builds_stop(b, build);
	build->debug = request;
	builds_move(b, build, BUILD_ASKING);
	builds_watch(b, build->debug.child.result_fd, true);
	return true;
}

static void build_drop(struct builds *b, struct build *build)
{
	builds_move(b, build, BUILD_OVER);
	build_destroy(build);
}

/* BUILD's question is answered by FD, or failed (-1). */
static void build_answered(struct builds *b, struct build *build, int fd)
{
	bool first = !build->fetched_files;

	if (fd >= 0)
		build_add_file(build, fd, first ? DEBUG_FILE_SEPARATE : DEBUG_FILE_SUPPLEMENTARY);
	if (!build->fetched_files) {
		build_drop(b, build);
		return;
	}
	builds_move(b, build, BUILD_WAITING_BETTER);
	builds_start_waiting(b);
}

/* ---- the queue ------------------------------------------------------------------------------ */

void builds_debug_queue(struct builds *b, struct build *build)
{
	debug_files_close(&build->debug_files);
	if (build->first_fd >= 0)
		close(take_fd(&build->first_fd));
	if (build->root_fd >= 0)
		close(take_fd(&build->root_fd));
	builds_move(b, build, BUILD_QUEUED);
}

static void builds_debug_start(struct builds *b, uint64_t now_ns)
{
	const struct build_list *queued = &b->lists[BUILD_QUEUED];

	/* A request by `done` must not drop the build that is being delivered; the next tick asks.
	 */
	if (b->delivering)
		return;
	while (queued->first && builds_number(b, BUILDS_OPEN) < BUILDS_OPEN_DEBUG &&
		debuginfod_may_ask(builds_servers(b), now_ns))
		if (build_ask(b, queued->first, &queued->first->debug_id))
			build_drop(b, queued->first);
	while (queued->first && debuginfod_is_paused(builds_servers(b), now_ns))
		build_drop(b, queued->first);
}

static void build_collect(struct builds *b, struct build *build, uint64_t now_ns)
{
	int fd = -1, result_fd = build->debug.child.result_fd;

	/* The answer closes the descriptor, which must not be watched by then. */
	builds_watch(b, result_fd, false);
	if (debuginfod_collect(builds_servers(b), &build->debug, now_ns, &fd) == -EAGAIN)
		builds_watch(b, result_fd, true);
	else
		build_answered(b, build, fd);
}

static bool build_has_question_fd(const struct build *build, const void *context)
{
	return build->debug.child.result_fd == *(const int *)context;
}

bool builds_debug_ready(struct builds *b, int fd)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct build *build = builds_find(b, BUILDS_ASKING, build_has_question_fd, &fd);

	if (!build)
		return false;
	if (sandbox_receive(&build->debug.child))
		build_collect(b, build, now_ns);
	builds_debug_start(b, now_ns);
	return true;
}

static bool build_question_is_expired(const struct build *build, const void *context)
{
	return *(const uint64_t *)context >= build->debug.deadline_ns;
}

void builds_debug_tick(struct builds *b, uint64_t now_ns)
{
	struct build *build;

	if (!builds_servers(b))
		return;
	while ((build = builds_find(b, BUILDS_ASKING, build_question_is_expired, &now_ns)))
		build_collect(b, build, now_ns);
	builds_debug_start(b, now_ns);
}

void builds_debug_over(struct builds *b, struct build *build, enum builds_verdict verdict)
{
	if (!build->fetched_files)
		return;
	if (verdict == BUILDS_FILES_USELESS)
		debuginfod_is_wrong(builds_servers(b), &build->debug_id);
	if (verdict == BUILDS_FILES_INTERRUPTED)
		debuginfod_is_too_much(builds_servers(b), &build->debug_id);
	for (unsigned int i = 0; i < build->fetched_files && verdict == BUILDS_FILES_RIGHT; i++)
		debuginfod_is_right(builds_servers(b));
	build->fetched_files = 0;
	builds_debug_start(b, clock_monotonic_ns());
}
