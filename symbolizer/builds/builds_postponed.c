/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds that failed for a transient reason: the builder was killed because memory was short, or
 * could not be started for lack of descriptors. A postponed build keeps its files open, because the
 * process that mapped them may be gone by the next attempt, so it must not stay here for long:
 * after a few attempts the requesters get NULL and may ask again later.
 *
 * The cause of an interruption may also be the file itself, if its index needs more memory than
 * this machine ever has. The cache directory counts interruptions across restarts and lengthens the
 * pause each time.
 */
#include "base/clock.h"
#include "base/failure.h"
#include "symbolizer/builds/builds_internal.h"

static const uint64_t FIRST_PAUSE_NS = UINT64_C(1000000000);
/* Limit of how long files are kept open. */
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(20000000000);

uint64_t builds_pause_ns(const struct builds *b, const struct module_id *id)
{
	return cache_pause_ns(b->options.cache, id, clock_real_ns());
}

bool builds_postpone_for(struct builds *b, struct build *build, uint64_t pause_ns)
{
	if (pause_ns > LONGEST_PAUSE_NS ||
		builds_number(b, BUILDS_POSTPONED) >= b->options.max_waiting)
		return false;
	/* The next child asks again, for the files that exist then. */
	debug_files_close(&build->debug_files);
	build->resume_ns = clock_monotonic_ns() + pause_ns;
	builds_move(b, build, BUILD_POSTPONED);
	return true;
}

bool builds_postpone(struct builds *b, struct build *build, int err)
{
	uint64_t pause_ns;

	/* After the first pass the requesters have, or are about to get, an index. */
	if (!failure_is_transient(err) || !build_may_become(build->state, BUILD_POSTPONED))
		return false;
	pause_ns = failure_pause_ns(++build->setbacks, FIRST_PAUSE_NS, UINT64_MAX);
	return builds_postpone_for(b, build, MAX(pause_ns, builds_pause_ns(b, &build->id)));
}

static bool build_is_due(const struct build *build, const void *context)
{
	return *(const uint64_t *)context >= build->resume_ns;
}

void builds_resume(struct builds *b, uint64_t now_ns)
{
	struct build *build;

	while ((build = builds_find(b, BUILDS_POSTPONED, build_is_due, &now_ns)))
		builds_move(b, build, BUILD_WAITING);
}
