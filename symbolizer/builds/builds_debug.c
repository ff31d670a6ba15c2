/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from servers. A module whose index has no lines waits here, its file open, until the
 * servers may be asked; when its debug file came, and what dwz moved out of that, it goes into the
 * sandbox once more. The files have no name and are gone with the build: what is worth keeping is
 * the index. Everything is bounded: who waits, how many files are there at once, their size.
 *
 * While the servers do not answer, nobody waits for them: whoever still needs a module asks for it
 * again some time.
 */
#include <errno.h>

#include "base/clock.h"
#include "symbolizer/builds/builds_internal.h"

enum { MAX_WAITING = 128 };

static struct debuginfod *servers(const struct builds *b)
{
	return b->options.debuginfod;
}

bool builds_debug_wants(struct builds *b, struct build *build, const struct index *index)
{
	return build->asks_servers && b->debug.waiting_count < MAX_WAITING &&
	       debuginfod_is_wanted(servers(b), build->elf_fd, index, &build->debug_id);
}

/* ---- the files ------------------------------------------------------------------------------ */

static void add_companion(struct build *build, int fd, enum companion_role role)
{
	build->companions.items[build->companions.count++] =
		(struct companion){ .fd = fd, .role = role };
}

/* FD is taken. */
static void add_file(struct build *build, int fd, enum companion_role role)
{
	add_companion(build, fd, role);
	build->debug_files++;
}

static int ask(struct builds *b, struct build *build, const struct build_id *id)
{
	int err = debuginfod_ask(servers(b), id, &build->debug);

	if (err)
		return err;
	build->next = b->debug.asking;
	b->debug.asking = build;
	builds_watch(b, build->debug.child.result_fd, true);
	return 0;
}

/*
 * What dwz moved into a file of several programs: from our debug directories, else from the
 * servers. True: they are being asked.
 */
static bool ask_alternate(struct builds *b, struct build *build)
{
	struct build_id id;
	int fd;

	if (!debug_files_alternate(build->directories, build->companions.items[0].fd, &id, &fd))
		return false;
	if (fd >= 0)
		add_companion(build, fd, COMPANION_SUPPLEMENTARY);
	return fd < 0 && !debuginfod_is_absent(servers(b), &id) && !ask(b, build, &id);
}

static void build_anew(struct builds *b, struct build *build)
{
	b->improving_count++;
	builds_append(b, build);
	builds_start_waiting(b);
}

/* BUILD, off its list, has got what it asked for, FD, or (-1) will not get it. */
static void came(struct builds *b, struct build *build, int fd)
{
	bool first = !build->debug_files;

	if (fd >= 0)
		add_file(build, fd, first ? COMPANION_DEBUG : COMPANION_SUPPLEMENTARY);
	if (!build->debug_files) {
		b->debug.open_count--;
		build_destroy(build);
	} else if (!first || !ask_alternate(b, build)) {
		build_anew(b, build);
	}
}

/* ---- the queue ------------------------------------------------------------------------------ */

void builds_debug_add(struct builds *b, struct build *build)
{
	build->improves = true;
	build->next = NULL;
	companions_close(&build->companions);
	*b->debug.waiting_end = build;
	b->debug.waiting_end = &build->next;
	b->debug.waiting_count++;
}

static struct build *take_waiting(struct builds *b)
{
	struct build *build = b->debug.waiting;

	b->debug.waiting = build->next;
	if (!b->debug.waiting)
		b->debug.waiting_end = &b->debug.waiting;
	build->next = NULL;
	b->debug.waiting_count--;
	return build;
}

static void start_waiting(struct builds *b, uint64_t now_ns)
{
	while (b->debug.waiting && b->debug.open_count < BUILDS_OPEN_DEBUG &&
		debuginfod_may_ask(servers(b), now_ns)) {
		struct build *build = take_waiting(b);

		if (ask(b, build, &build->debug_id))
			build_destroy(build);
		else
			b->debug.open_count++;
	}
	while (b->debug.waiting && debuginfod_is_paused(servers(b), now_ns))
		build_destroy(take_waiting(b));
}

static void unlink_asking(struct builds *b, struct build *build)
{
	struct build **at = &b->debug.asking;

	while (*at != build)
		at = &(*at)->next;
	*at = build->next;
	build->next = NULL;
}

static void collect(struct builds *b, struct build *build, uint64_t now_ns)
{
	int fd = -1, result_fd = build->debug.child.result_fd;

	/* The descriptor is closed with the answer, and may not be watched then. */
	builds_watch(b, result_fd, false);
	if (debuginfod_collect(servers(b), &build->debug, now_ns, &fd) == -EAGAIN) {
		builds_watch(b, result_fd, true);
		return;
	}
	unlink_asking(b, build);
	came(b, build, fd);
}

bool builds_debug_ready(struct builds *b, int fd)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct build *build = b->debug.asking;

	while (build && build->debug.child.result_fd != fd)
		build = build->next;
	if (!build)
		return false;
	if (sandbox_receive(&build->debug.child))
		collect(b, build, now_ns);
	start_waiting(b, now_ns);
	return true;
}

void builds_debug_turn(struct builds *b, uint64_t now_ns)
{
	struct build *build, *next;

	if (!servers(b))
		return;
	for (build = b->debug.asking; build; build = next) {
		next = build->next;
		if (now_ns >= build->debug.deadline_ns)
			collect(b, build, now_ns);
	}
	start_waiting(b, now_ns);
}

void builds_debug_over(struct builds *b, struct build *build, enum builds_verdict verdict)
{
	if (!build->debug_files)
		return;
	b->improving_count--;
	b->debug.open_count--;
	if (verdict == BUILDS_FILES_USELESS)
		debuginfod_is_wrong(servers(b), &build->debug_id);
	if (verdict == BUILDS_FILES_INTERRUPTED)
		debuginfod_is_too_much(servers(b), &build->debug_id);
	for (unsigned int i = 0; i < build->debug_files && verdict == BUILDS_FILES_RIGHT; i++)
		debuginfod_is_right(servers(b));
	build->debug_files = 0;
	start_waiting(b, clock_monotonic_ns());
}
