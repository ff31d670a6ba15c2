/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds that came to nothing for a reason that may pass: a builder that was killed because memory
 * was short, or that could not be started without descriptors. They keep their files open, since
 * the process that mapped them may be gone by the next try, so they do not stay here for long:
 * after a few tries the requesters are told that there is no index, and ask again when they like.
 *
 * What interrupted a build may also be the file itself, whose index takes more memory than this
 * machine ever has. The cache directory counts these, over all runs, and leaves such a file alone
 * for longer each time.
 */
#include "base/clock.h"
#include "base/failure.h"
#include "symbolizer/builds/builds_internal.h"

static const uint64_t FIRST_PAUSE_NS = UINT64_C(1000000000);
/* Files are not kept open for longer. */
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
	/* Its child asks anew for what there is then. */
	companions_close(&build->companions);
	build->resume_ns = clock_monotonic_ns() + pause_ns;
	builds_move(b, build, BUILD_POSTPONED);
	return true;
}

bool builds_postpone(struct builds *b, struct build *build, int err)
{
	uint64_t pause_ns;

	/* After the first pass its requesters have an index already, or are given that. */
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
