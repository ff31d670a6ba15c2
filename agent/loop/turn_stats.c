/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/loop/turn_stats.h"

#include "base/clock.h"

/* Rings of the default size are full after some seconds without a reader. */
static const uint64_t LONG_NS = UINT64_C(1000000000);
static const uint64_t LOG_EVERY_NS = UINT64_C(60000000000);

const double turn_stats_bounds[TURN_STATS_BOUNDS] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
	0.25, 0.5, 1, 2.5, 5, 10 };

static double turn_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void turn_stats_log(struct turn_stats *s, const struct loop_turn *turn)
{
	s->unlogged++;
	if (!log_rate_allows_every(&s->log, LOG_EVERY_NS))
		return;
	log_warn("a turn of the event loop took long",
		"seconds=%.3f step=\"%s\" step_seconds=%.3f turns=%llu",
		turn_seconds(turn->duration_ns), turn->step, turn_seconds(turn->step_ns),
		(unsigned long long)s->unlogged);
	s->unlogged = 0;
}

void turn_stats_add(struct turn_stats *s, const struct loop_turn *turn)
{
	size_t bucket = 0;

	while (bucket < TURN_STATS_BOUNDS &&
		turn_seconds(turn->duration_ns) > turn_stats_bounds[bucket])
		bucket++;
	s->buckets[bucket]++;
	s->sum_ns += turn->duration_ns;
	if (turn->duration_ns > s->longest.turn.duration_ns)
		s->longest = (struct observed_turn){ .real_ns = clock_real_ns(), .turn = *turn };
	if (turn->duration_ns <= LONG_NS)
		return;
	s->last_long = (struct observed_turn){ .real_ns = clock_real_ns(), .turn = *turn };
	turn_stats_log(s, turn);
}

static void turn_stats_on_turn(void *context, const struct loop_turn *turn)
{
	turn_stats_add(context, turn);
}

void turn_stats_watch(struct turn_stats *s, struct loop *loop)
{
	loop_watch_turns(loop, turn_stats_on_turn, s);
}
