/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the next build and its priority. When the agent starts on a node, everything has to be
 * built at once on busy processors. Samples that need an index for complete stacks wait for it, and
 * so do all later ones, in a bounded buffer.
 *
 * A container may bring any number of files that take long, so owners (control groups) take turns:
 * first the one with the fewest running builds, then the one that has used the least CPU time. An
 * owner that has none running does not wait for one that has several.
 *
 * Over the long run all builds together get a share of the CPU budget. A node's first minutes need
 * more, so a debt may grow to a minute of CPU time before builds wait; an owner that has hardly
 * used any may start even then.
 */
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/cleanup.h"
#include "symbolizer/builds/builds_internal.h"

enum { SMALL_BYTES = 16 << 20 /* builds in a few tenths of a second */ };

static const uint64_t HURRY_NS = UINT64_C(400000000);
static const uint64_t DEBT_NS = UINT64_C(60000000000);
static const uint64_t FIRST_USE_NS = UINT64_C(5000000000); /* of an owner, in debt or not */

/* ---- owners --------------------------------------------------------------------------------- */

static struct builds_owner *builds_find_owner(const struct builds *b, uint64_t key)
{
	for (size_t i = 0; i < b->owner_count; i++)
		if (b->owners[i].key == key)
			return (struct builds_owner *)&b->owners[i];
	return NULL;
}

static uint64_t owner_used_ns(const struct builds *b, uint64_t key)
{
	const struct builds_owner *owner = builds_find_owner(b, key);

	return owner ? owner->cpu_ns : 0;
}

static unsigned int builds_of_owner(const struct builds *b, unsigned int states, uint64_t owner)
{
	unsigned int count = 0;

	for (size_t i = 0; i < BUILD_OVER; i++)
		for (struct build *build = states >> i & 1 ? b->lists[i].first : NULL; build;
			build = build->next)
			count += build->owner == owner;
	return count;
}

/* The smallest share of the owners with builds: what the others are at. */
static uint64_t builds_least_share(const struct builds *b)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < b->owner_count; i++)
		if (builds_of_owner(b, BUILDS_WAITING | BUILDS_RUNNING, b->owners[i].key))
			least = MIN(least, b->owners[i].cpu_ns);
	return least == UINT64_MAX ? 0 : least;
}

/* Makes a place, that of the owner which used least if there is none. */
static void builds_add_owner(struct builds *b, uint64_t key, uint64_t cpu_ns)
{
	struct builds_owner *owner = &b->owners[0];

	if (b->owner_count < BUILDS_OWNERS)
		owner = &b->owners[b->owner_count++];
	else
		for (size_t i = 1; i < BUILDS_OWNERS; i++)
			if (b->owners[i].cpu_ns < owner->cpu_ns)
				owner = &b->owners[i];
	*owner = (struct builds_owner){ .key = key, .cpu_ns = cpu_ns, .first_ns = cpu_ns };
}

void builds_arrive(struct builds *b, struct build *build)
{
	uint64_t least = builds_least_share(b);
	struct builds_owner *owner = builds_find_owner(b, build->owner);

	if (!owner)
		builds_add_owner(b, build->owner, least);
	/* Having built nothing for a while earns nothing. */
	else if (!builds_of_owner(b, BUILDS_WAITING | BUILDS_RUNNING, build->owner))
		owner->cpu_ns = MAX(owner->cpu_ns, least);
}

void builds_charge(struct builds *b, uint64_t key, uint64_t cpu_ns)
{
	struct builds_owner *owner = builds_find_owner(b, key);

	if (owner)
		owner->cpu_ns += cpu_ns;
}

bool builds_is_crowded(const struct builds *b, uint64_t owner)
{
	unsigned int waiting = builds_number(b, BUILDS_WAITING);
	unsigned int most = b->options.max_waiting;

	return waiting >= most || builds_of_owner(b, BUILDS_WAITING, owner) > most - waiting;
}

void builds_share(struct builds *b, struct build *build, uint64_t owner)
{
	if (owner == build->owner || !build_is_in(build, BUILDS_WAITING) ||
		owner_used_ns(b, owner) >= owner_used_ns(b, build->owner))
		return;
	build->owner = owner;
	builds_arrive(b, build);
}

/* ---- the next build ------------------------------------------------------------------------- */

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

/* A build's place in the queue: the smallest is next. */
struct build_turn {
	unsigned int running; /* of its owner */
	uint64_t used_ns; /* by its owner */
	uint64_t price;
};

static struct build_turn build_turn_of(const struct builds *b, const struct build *build)
{
	return (struct build_turn){
		.running = builds_of_owner(b, BUILDS_RUNNING, build->owner),
		.used_ns = owner_used_ns(b, build->owner),
		.price = build_price(build),
	};
}

static bool turn_is_before(const struct build_turn *x, const struct build_turn *y)
{
	if (x->running != y->running)
		return x->running < y->running;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns;
	return x->price < y->price;
}

/* Builds that improve an existing index come last, oldest first. */
static struct build *builds_first(const struct builds *b)
{
	struct build *best = b->lists[BUILD_WAITING].first;
	struct build_turn best_turn = { 0 };

	if (!best)
		return b->lists[BUILD_WAITING_BETTER].first;
	best_turn = build_turn_of(b, best);
	for (struct build *build = best->next; build; build = build->next) {
		struct build_turn turn = build_turn_of(b, build);

		if (turn_is_before(&turn, &best_turn)) {
			best = build;
			best_turn = turn;
		}
	}
	return best;
}

static bool build_is_of_a_crowd(const struct build *build, const void *context)
{
	return builds_of_owner(context, BUILDS_RUNNING, build->owner) > 1;
}

/* An owner without a running build does not wait for another's second one. */
static bool builds_are_unfair_to(const struct builds *b, const struct build *build)
{
	return !builds_of_owner(b, BUILDS_RUNNING, build->owner) &&
	       builds_find(b, BUILDS_RUNNING, build_is_of_a_crowd, b);
}

static bool build_matches_small(const struct build *build, const void *context)
{
	(void)context;
	return build_is_small(build);
}

/* Running builds, without those whose files do not seem to answer. */
static unsigned int builds_active(const struct builds *b)
{
	unsigned int count = 0;

	for (size_t i = 0; i < BUILD_OVER; i++)
		for (struct build *build = 1u << i & BUILDS_RUNNING ? b->lists[i].first : NULL;
			build; build = build->next)
			count += build->sandbox.idle_looks < BUILDS_IDLE_ASIDE;
	return count;
}

/* A small build that somebody waits for does not queue behind big ones. */
static bool builds_may_start(const struct builds *b, const struct build *build)
{
	unsigned int running = builds_active(b);

	if (builds_number(b, BUILDS_RUNNING) + b->dying_count >= BUILDS_DYING)
		return false;
	if (running < b->options.max_children)
		return true;
	if (running > b->options.max_children)
		return false;
	if (builds_are_unfair_to(b, build))
		return true;
	if (!build->wanted || !build_is_small(build))
		return false;
	return !builds_find(b, BUILDS_RUNNING, build_matches_small, NULL);
}

/* ---- the share of CPU time ------------------------------------------------------------------ */

static uint64_t build_running_ns(const struct build *build)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(build->sandbox.pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t builds_cpu_ns(const struct builds *b)
{
	uint64_t total = b->cpu_ns;

	for (size_t i = 0; i < BUILD_OVER; i++)
		for (struct build *build = 1u << i & BUILDS_RUNNING ? b->lists[i].first : NULL;
			build; build = build->next)
			total += build_running_ns(build);
	return total;
}

uint64_t builds_charged_ns(const struct builds *b)
{
	return b->share > 0 ? b->charged_ns : builds_cpu_ns(b);
}

void builds_set_share(struct builds *b, double share)
{
	if (b->share <= 0)
		b->charged_ns = builds_cpu_ns(b);
	b->share = share;
}

void builds_repay(struct builds *b, uint64_t now_ns)
{
	uint64_t cpu_ns = builds_cpu_ns(b), last_ns = b->charged_at_ns;

	b->charged_at_ns = now_ns;
	if (last_ns && now_ns > last_ns)
		b->charged_ns = MIN(
			cpu_ns, b->charged_ns + (uint64_t)((double)(now_ns - last_ns) * b->share));
}

/* In debt, only owners that have hardly built anything. */
static bool builds_can_afford(const struct builds *b, const struct build *build)
{
	const struct builds_owner *owner = builds_find_owner(b, build->owner);

	if (b->share <= 0 || builds_cpu_ns(b) - b->charged_ns < DEBT_NS)
		return true;
	return owner && owner->cpu_ns - owner->first_ns < FIRST_USE_NS;
}

struct build *builds_next(const struct builds *b)
{
	struct build *build = builds_first(b);

	return build && builds_may_start(b, build) && builds_can_afford(b, build) ? build : NULL;
}

/* ---- priority ------------------------------------------------------------------------------- */

/* Arms the timer that ends the hurry. Returns false if there is none. */
static bool builds_limit_hurry(struct builds *b)
{
	const struct itimerspec spec = { .it_value.tv_nsec = (long)HURRY_NS };

	if (b->calm_watched)
		return true;
	if (b->calm_fd < 0)
		b->calm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->calm_fd < 0 || timerfd_settime(b->calm_fd, 0, &spec, NULL))
		return false;
	builds_watch(b, b->calm_fd, true);
	b->calm_watched = true;
	return true;
}

/* A build hurries once, and not for long: its file decides how long it takes. */
static void build_hurry(struct builds *b, struct build *build)
{
	if (build->hurry == HURRY_OVER || !builds_limit_hurry(b))
		return;
	build->hurry = HURRY_ON;
	(void)setpriority(PRIO_PROCESS, (id_t)build->sandbox.pid, getpriority(PRIO_PROCESS, 0));
}

static void build_calm(struct build *build)
{
	if (build->hurry != HURRY_ON)
		return;
	build->hurry = HURRY_OVER;
	(void)setpriority(PRIO_PROCESS, (id_t)build->sandbox.pid,
		MIN(getpriority(PRIO_PROCESS, 0) + SANDBOX_NICE, 19));
}

void builds_calm(struct builds *b)
{
	builds_watch(b, b->calm_fd, false);
	b->calm_watched = false;
	for (size_t i = 0; i < BUILD_OVER; i++)
		for (struct build *build = 1u << i & BUILDS_RUNNING ? b->lists[i].first : NULL;
			build; build = build->next)
			build_calm(build);
}

void builds_hurry(struct builds *b)
{
	for (size_t i = 0; i < BUILD_OVER; i++)
		if (1u << i & BUILDS_RUNNING)
			for (struct build *build = b->lists[i].first; build; build = build->next)
				build_hurry(b, build);
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
		build_hurry(b, build);
}
