/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The targets of a spool. A name identifies a target, regardless of its index: it keeps its
 * position and its counts when others are added, removed or reordered. A removed target is
 * abandoned: its pending records are counted and its cursor is removed, so that it neither holds
 * records back nor is taken for another target's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/spool/spool_internal.h"
#include "base/cleanup.h"

static struct spool_target *find_target(struct spool *s, const char *name)
{
	for (size_t i = 0; i < s->target_count; i++) {
		if (s->targets[i].name && !strcmp(s->targets[i].name, name))
			return &s->targets[i];
	}
	return NULL;
}

void spool_abandon(struct spool *s, uint64_t records)
{
	s->abandoned += records;
	metrics_add(s->metrics, METRIC_SPOOL_ABANDONED_STORE, records);
}

static void give_up(struct spool *s, struct spool_target *t)
{
	spool_target_answered(t, false);
	spool_abandon(s, spool_awaited(s, t, t->next, s->next_number - 1));
	spool_cursor_remove(s, t);
	free(t->name);
}

static void targets_deinit(struct spool_target *targets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(targets[i].name);
}

/*
 * Writes the cursor before the first payload: a target without one counts as new. If it cannot be
 * written, an earlier process may have sent these records without recording it.
 */
static void check_cursor(struct spool *s, struct spool_target *t)
{
	spool_cursor_store(s, t);
	if (!t->unwritten || s->fd < 0)
		return;
	t->doubtful = s->next_number - 1;
	s->trouble = "it cannot be written to";
}

/* A new target starts with the next record, which is known once all cursors are read. */
static void begin_targets(struct spool *s)
{
	for (size_t i = 0; i < s->target_count; i++) {
		if (!s->targets[i].next)
			spool_cursor_load(s, &s->targets[i]);
	}
	for (size_t i = 0; i < s->target_count; i++) {
		struct spool_target *t = &s->targets[i];

		if (!t->next)
			t->next = s->next_number;
		if (!t->opened)
			check_cursor(s, t);
		t->opened = true;
	}
}

int spool_set_targets(struct spool *s, const char *const *names, size_t count)
{
	struct spool_target targets[SPOOL_TARGETS_LIMIT] = { 0 };

	if (count > SPOOL_TARGETS_LIMIT)
		return -E2BIG;
	for (size_t i = 0; i < count; i++) {
		targets[i].name = strdup(names[i]);
		if (!targets[i].name) {
			targets_deinit(targets, i);
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct spool_target *kept = find_target(s, names[i]);

		if (!kept)
			continue;
		/* Its sender is gone. */
		spool_target_answered(kept, false);
		free(targets[i].name);
		targets[i] = *kept;
		kept->name = NULL;
	}
	for (size_t i = 0; i < s->target_count; i++) {
		if (s->targets[i].name)
			give_up(s, &s->targets[i]);
	}
	memcpy(s->targets, targets, sizeof(targets));
	s->target_count = count;
	begin_targets(s);
	spool_disk_release(s);
	return 0;
}

void spool_targets_deinit(struct spool *s)
{
	targets_deinit(s->targets, s->target_count);
}
