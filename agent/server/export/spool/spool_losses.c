/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that no target will get any more. Each is counted, when it is lost, once per target that
 * still waited for it. A target that has older records to send reaches the gap later: gaps are
 * remembered until every target is past them, so that they are not counted again as damage. They
 * are not kept across a restart, after which such a gap counts as damage.
 */
#include "agent/server/export/spool/spool_internal.h"
#include "base/cleanup.h"

static bool is_gap(const struct spool *s, uint64_t number)
{
	for (size_t i = 0; i < s->gap_count; i++) {
		if (number >= s->gaps[i].first && number <= s->gaps[i].last)
			return true;
	}
	return false;
}

uint64_t spool_awaited(
	const struct spool *s, const struct spool_target *t, uint64_t first, uint64_t last)
{
	uint64_t count, from = MAX(first, t->next);

	if (from > last)
		return 0;
	count = last - from + 1;
	for (size_t i = 0; i < s->gap_count; i++) {
		uint64_t begin = MAX(from, s->gaps[i].first), end = MIN(last, s->gaps[i].last);

		count -= begin <= end ? end - begin + 1 : 0;
	}
	if (t->done_second >= from && t->done_second <= last && !is_gap(s, t->done_second))
		count--;
	return count;
}

/* Drops the gaps that all targets are past. */
static void forget_gaps(struct spool *s)
{
	uint64_t needed = UINT64_MAX;

	for (size_t i = 0; i < s->target_count; i++)
		needed = MIN(needed, s->targets[i].next);
	for (size_t i = 0; i < s->gap_count;) {
		if (s->gaps[i].last < needed)
			s->gaps[i] = s->gaps[--s->gap_count];
		else
			i++;
	}
}

static bool spool_losses_touches(const struct spool_range *a, const struct spool_range *b)
{
	return a->first <= b->last + 1 && b->first <= a->last + 1;
}

/* A gap beyond the limit is not remembered, and so counted again, as damage. */
static void add_gap(struct spool *s, struct spool_range gap)
{
	for (size_t i = 0; i < s->gap_count;) {
		if (!spool_losses_touches(&s->gaps[i], &gap)) {
			i++;
			continue;
		}
		gap.first = MIN(gap.first, s->gaps[i].first);
		gap.last = MAX(gap.last, s->gaps[i].last);
		s->gaps[i] = s->gaps[--s->gap_count];
		i = 0;
	}
	if (s->gap_count < SPOOL_GAPS_LIMIT)
		s->gaps[s->gap_count++] = gap;
}

static bool is_under_way(const struct spool_target *t, uint64_t first, uint64_t last)
{
	return !t->under_way_lost && t->under_way >= MAX(first, t->next) && t->under_way <= last;
}

static void target_lose(struct spool *s, struct spool_target *t, const struct spool_range *range,
	enum spool_drop why)
{
	t->dropped[why] += spool_awaited(s, t, range->first, range->last);
	if (is_under_way(t, range->first, range->last)) {
		/* The server may be receiving it now: its answer decides. */
		t->dropped[why]--;
		t->under_way_lost = true;
		t->under_way_why = why;
	}
	if (t->next < range->first || t->next > range->last)
		return;
	spool_target_go_to(t, range->last + 1);
	spool_cursor_store(s, t);
}

void spool_lose(struct spool *s, uint64_t first, uint64_t last, enum spool_drop why)
{
	const struct spool_range range = { first, last };

	for (size_t i = 0; i < s->target_count; i++)
		target_lose(s, &s->targets[i], &range, why);
	add_gap(s, range);
	forget_gaps(s);
}

void spool_target_answered(struct spool_target *t, bool settled)
{
	if (t->under_way_lost && !settled)
		t->dropped[t->under_way_why]++;
	t->under_way = 0;
	t->under_way_lost = false;
}
