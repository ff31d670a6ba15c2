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

bool builds_put_off(struct builds *b, struct build *build, uint64_t pause_ns)
{
	if (pause_ns > LONGEST_PAUSE_NS || b->postponed_count >= b->options.max_waiting)
		return false;
	build->resume_ns = clock_monotonic_ns() + pause_ns;
	build->next = b->postponed;
	b->postponed = build;
	b->postponed_count++;
	return true;
}

bool builds_postpone(struct builds *b, struct build *build, int err)
{
	uint64_t pause_ns;

	/* Its requesters have an index already. */
	if (!failure_is_transient(err) || build->improves || build->first_fd >= 0)
		return false;
	pause_ns = failure_pause_ns(++build->setbacks, FIRST_PAUSE_NS, UINT64_MAX);
	return builds_put_off(b, build, MAX(pause_ns, builds_pause_ns(b, &build->id)));
}

void builds_resume(struct builds *b, uint64_t now_ns)
{
	struct build **at = &b->postponed;

	while (*at) {
		struct build *build = *at;

		if (now_ns < build->resume_ns) {
			at = &build->next;
			continue;
		}
		*at = build->next;
		build->next = NULL;
		b->postponed_count--;
		builds_append(b, build);
	}
}
