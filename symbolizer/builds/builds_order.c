/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the next build and its priority. When the agent starts on a node, everything has to be
 * built at once on busy processors. Samples that need an index for complete stacks wait for it, and
 * so do all later ones, in a bounded buffer.
 */
#include <sys/resource.h>

#include "symbolizer/builds/builds_internal.h"

enum { SMALL_BYTES = 16 << 20 /* builds in a few tenths of a second */ };

static bool build_is_small(const struct build *build)
{
	return build->bytes <= SMALL_BYTES;
}

/*
 * Bytes per waiter, lowest first, which minimizes the sum of all waits (Smith's rule). The older
 * build wins a tie.
 */
static uint64_t build_price(const struct build *build)
{
	return build->bytes / (build->wanted + 1);
}

/* Builds that improve an existing index come last, oldest first. */
static struct build *builds_cheapest(const struct builds *b)
{
	struct build *best = b->lists[BUILD_WAITING].first;

	for (struct build *build = best; build; build = build->next)
		if (build_price(build) < build_price(best))
			best = build;
	return best ? best : b->lists[BUILD_WAITING_BETTER].first;
}

static bool build_matches_small(const struct build *build, const void *context)
{
	(void)context;
	return build_is_small(build);
}

/* A small build that somebody waits for does not queue behind big ones. */
static bool builds_may_start(const struct builds *b, const struct build *build)
{
	unsigned int running = builds_number(b, BUILDS_RUNNING);

	if (running < b->options.max_children)
		return true;
	if (running > b->options.max_children || !build->wanted || !build_is_small(build))
		return false;
	return !builds_find(b, BUILDS_RUNNING, build_matches_small, NULL);
}

struct build *builds_next(const struct builds *b)
{
	struct build *build = builds_cheapest(b);

	return build && builds_may_start(b, build) ? build : NULL;
}

static void build_hurry(struct build *build)
{
	(void)setpriority(PRIO_PROCESS, (id_t)build->sandbox.pid, getpriority(PRIO_PROCESS, 0));
}

void builds_hurry(struct builds *b)
{
	for (size_t i = 0; i < BUILD_OVER; i++)
		if (1u << i & BUILDS_RUNNING)
			for (struct build *build = b->lists[i].first; build; build = build->next)
				build_hurry(build);
}

static bool builds_order_build_has_tag(const struct build *build, const void *context)
{
	for (size_t i = 0; i < build->tag_count; i++)
		if (build->tags[i] == *(const uint64_t *)context)
			return true;
	return false;
}

void builds_want(struct builds *b, uint64_t tag)
{
	struct build *build = builds_find(b, BUILDS_WAITING, builds_order_build_has_tag, &tag);

	if (build && !build->wanted++)
		builds_start_waiting(b);
	build = builds_find(b, BUILDS_RUNNING, builds_order_build_has_tag, &tag);
	/* On each call: a child that has just started has yet to lower its own priority. */
	if (build && build_is_small(build))
		build_hurry(build);
}
