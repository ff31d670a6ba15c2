/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which build is next, and how fast. On a node that was never looked at, everything is to be built
 * at once, on processors that others keep busy: samples whose stacks are not whole without an index
 * wait for it, with all that came along, and what is kept for them is bounded.
 */
#include <sys/resource.h>

#include "symbolizer/builds/builds_internal.h"

enum { SMALL_BYTES = 16 << 20 /* takes some tenths of a second */ };

static bool is_small(const struct build *build)
{
	return build->bytes <= SMALL_BYTES;
}

/*
 * Least first: what is waited for and costs little comes before what costs much, so that the sum of
 * all waits is the least (Smith's rule). Better indexes in place of others come last.
 */
static uint64_t build_price(const struct build *build)
{
	return build->improves ? UINT64_MAX : build->bytes / (build->wanted + 1);
}

static struct build **find_cheapest(struct builds *b)
{
	struct build **best = &b->waiting;

	for (struct build **at = best; *at; at = &(*at)->next)
		if (build_price(*at) < build_price(*best))
			best = at;
	return best;
}

/* What is waited for and small does not stand behind big ones. */
static bool may_start(const struct builds *b, const struct build *build)
{
	if (b->running_count < b->options.max_children)
		return true;
	if (b->running_count > b->options.max_children || !build->wanted || !is_small(build))
		return false;
	for (const struct build *other = b->running; other; other = other->next)
		if (is_small(other))
			return false;
	return true;
}

struct build *builds_take_next(struct builds *b)
{
	struct build **at = find_cheapest(b), *build = *at;

	if (!build || !may_start(b, build))
		return NULL;
	*at = build->next;
	if (!build->next)
		b->waiting_end = at;
	build->next = NULL;
	b->waiting_count--;
	return build;
}

static void hurry(struct build *build)
{
	(void)setpriority(PRIO_PROCESS, (id_t)build->sandbox.pid, getpriority(PRIO_PROCESS, 0));
}

void builds_hurry(struct builds *b)
{
	for (struct build *build = b->running; build; build = build->next)
		hurry(build);
}

static struct build *find_tag(struct build *list, uint64_t tag)
{
	for (struct build *build = list; build; build = build->next)
		for (size_t i = 0; i < build->tag_count; i++)
			if (build->tags[i] == tag)
				return build;
	return NULL;
}

void builds_want(struct builds *b, uint64_t tag)
{
	struct build *build = find_tag(b->waiting, tag);

	if (build && !build->wanted++)
		builds_start_waiting(b);
	build = find_tag(b->running, tag);
	/* Each time: a child that has just begun is still about to lower its own. */
	if (build && is_small(build))
		hurry(build);
}
