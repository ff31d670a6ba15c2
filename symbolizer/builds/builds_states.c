/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a build. Each state has a list, oldest build first. All transitions:
 *
 *      request                              request; the index in the cache
 *         |                                 has no lines, servers may know
 *        NEW -------------------------------------------------------.
 *         |  \ its file interrupted builds before                    |
 *         |   `-------------> POSTPONED <--------.                   |
 *         |      its time has come |             | interrupted, or   |
 *         |   .--------------------'             | not started       |
 *         v   v                                  |                   |
 *        WAITING --------------------------------+                   |
 *         | there is room for one more           |                   |
 *         v                                      |                   |
 *        RUNNING --------------------------------'                   |
 *         |   \ it wants .dwo files, which are there                 |
 *         |    `------> RUNNING_SPLIT                                |
 *         |                  |                                       |
 *         +------------------+  no lines: servers may know           |
 *         |                   `----------------> QUEUED <------------'
 *         |                                        | it may ask
 *         |                                        v
 *         |                            .------> ASKING
 *         |                            |           | a file came
 *         |                            |           v
 *         |                            |     WAITING_BETTER
 *         |           it shares parts  |           |
 *         |           with another file|           v
 *         |                            `---- RUNNING_BETTER
 *         v                                        |
 *        OVER <------------------------------------'
 *
 * RUNNING and RUNNING_SPLIT go back to WAITING if functions were wanted after the child had started
 * without.
 *
 * Every state but POSTPONED can also end at OVER, without an index or without a better one.
 * Requesters get the index when the build leaves RUNNING or RUNNING_SPLIT, and a better one when
 * it leaves RUNNING_BETTER.
 */
#include <assert.h>

#include "symbolizer/builds/builds_internal.h"

static const unsigned int next_states[BUILD_STATES] = {
	[BUILD_NEW] =
		1 << BUILD_WAITING | 1 << BUILD_POSTPONED | 1 << BUILD_QUEUED | 1 << BUILD_OVER,
	[BUILD_WAITING] = 1 << BUILD_RUNNING | 1 << BUILD_POSTPONED | 1 << BUILD_OVER,
	[BUILD_RUNNING] = 1 << BUILD_RUNNING_SPLIT | 1 << BUILD_POSTPONED | 1 << BUILD_QUEUED |
			  1 << BUILD_WAITING | 1 << BUILD_OVER,
	[BUILD_RUNNING_SPLIT] = 1 << BUILD_WAITING | 1 << BUILD_QUEUED | 1 << BUILD_OVER,
	[BUILD_POSTPONED] = 1 << BUILD_WAITING,
	[BUILD_QUEUED] = 1 << BUILD_ASKING | 1 << BUILD_OVER,
	[BUILD_ASKING] = 1 << BUILD_WAITING_BETTER | 1 << BUILD_OVER,
	[BUILD_WAITING_BETTER] = 1 << BUILD_RUNNING_BETTER | 1 << BUILD_OVER,
	[BUILD_RUNNING_BETTER] = 1 << BUILD_ASKING | 1 << BUILD_OVER,
	[BUILD_OVER] = 0,
};

bool build_may_become(enum build_state from, enum build_state to)
{
	return next_states[from] >> to & 1;
}

/* Invariants of a build's state. */
static void build_check(const struct build *build)
{
	assert(build_is_in(build, BUILDS_RUNNING) == (build->sandbox.pid > 0));
	assert(build_is_in(build, BUILDS_ASKING) == (build->debug.child.pid > 0));
	assert(build->state != BUILD_RUNNING_SPLIT || build->first_fd >= 0);
	assert(build->fetched_files == 0 || build->state >= BUILD_ASKING);
}

void builds_lists_init(struct builds *b)
{
	for (size_t i = 0; i < BUILD_OVER; i++)
		b->lists[i].end = &b->lists[i].first;
}

void builds_unlink(struct builds *b, struct build *build)
{
	struct build_list *list = &b->lists[build->state];

	assert(build->link && *build->link == build && list->count);
	*build->link = build->next;
	if (build->next)
		build->next->link = build->link;
	else
		list->end = build->link;
	list->count--;
	build->next = NULL;
	build->link = NULL;
}

static void build_append(struct build_list *list, struct build *build)
{
	build->link = list->end;
	*list->end = build;
	list->end = &build->next;
	list->count++;
}

void builds_move(struct builds *b, struct build *build, enum build_state state)
{
	assert(build_may_become(build->state, state));
	if (build->state != BUILD_NEW)
		builds_unlink(b, build);
	build->state = state;
	build_check(build);
	if (state != BUILD_OVER)
		build_append(&b->lists[state], build);
}

struct build *builds_find(
	const struct builds *b, unsigned int states, build_matches *matches, const void *context)
{
	for (size_t i = 0; i < BUILD_OVER; i++) {
		struct build *build = states >> i & 1 ? b->lists[i].first : NULL;

		while (build && !matches(build, context))
			build = build->next;
		if (build)
			return build;
	}
	return NULL;
}

unsigned int builds_number(const struct builds *b, unsigned int states)
{
	unsigned int number = 0;

	for (size_t i = 0; i < BUILD_OVER; i++)
		number += states >> i & 1 ? b->lists[i].count : 0;
	return number;
}
