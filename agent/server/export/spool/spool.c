/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/spool/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/server/export/spool/spool_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	MEMORY_LIMIT_BYTES = 16 << 20,
	SEGMENT_BYTES = 8 << 20,
	SMALLEST_SEGMENT_BYTES = 4 << 10,
	/* segments within the limit, at least: it is enforced by dropping one at a time */
	SEGMENTS_WANTED = 8,
};

/* ---- making --------------------------------------------------------------------------------- */

void spool_set_limits(struct spool *s, uint64_t limit_bytes, uint64_t limit_age_ns)
{
	s->limit_bytes = limit_bytes;
	s->limit_age_ns = limit_age_ns;
	s->segment_bytes = MIN(MAX(limit_bytes / SEGMENTS_WANTED, SMALLEST_SEGMENT_BYTES),
		(uint64_t)SEGMENT_BYTES);
}

static int open_targets(struct spool *s, const struct spool_options *o)
{
	int err;

	for (size_t i = 0; o->old_targets && i < o->target_count; i++)
		spool_cursor_adopt(s, o->old_targets[i], o->targets[i]);
	err = spool_set_targets(s, o->targets, o->target_count);
	if (!err)
		spool_cursors_retire(s);
	return err;
}

int spool_create(const struct spool_options *options, struct spool **ret_spool)
{
	struct spool *s;
	int err;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fd = s->write_fd = -1;
	spool_set_limits(s, options->limit_bytes, options->limit_age_ns);
	s->metrics = options->metrics;
	s->next_number = 1;
	s->path = strdup(options->directory);
	err = s->path ? spool_disk_open(s, s->path) : -ENOMEM;
	if (!err)
		err = open_targets(s, options);
	if (err) {
		spool_destroy(s);
		return err;
	}
	settled_clock_init(
		&s->age_clock, (int64_t)clock_real_ns(), clock_boot_ns(), spool_disk_newest_ns(s));
	*ret_spool = s;
	return 0;
}

static void store_cursors(struct spool *s)
{
	for (size_t i = 0; i < s->target_count; i++) {
		if (s->targets[i].unwritten)
			spool_cursor_store(s, &s->targets[i]);
	}
}

void spool_destroy(struct spool *s)
{
	struct spool_memory *next;

	if (!s)
		return;
	store_cursors(s);
	spool_disk_close(s);
	for (struct spool_memory *m = s->memory_head; m; m = next) {
		next = m->next;
		free(m);
	}
	spool_targets_deinit(s);
	free(s->path);
	free(s);
}

const char *spool_trouble(const struct spool *s)
{
	return s->trouble;
}

/* ---- in memory ------------------------------------------------------------------------------ */

static void forget_memory(struct spool *s)
{
	struct spool_memory *m = s->memory_head;

	s->memory_head = m->next;
	if (!s->memory_head)
		s->memory_tail = NULL;
	s->memory_bytes -= m->size;
	free(m);
}

static void trim_memory(struct spool *s, size_t size)
{
	const uint64_t limit = MIN((uint64_t)MEMORY_LIMIT_BYTES, s->limit_bytes);

	while (s->memory_head && s->memory_bytes + size > limit) {
		const uint64_t number = s->memory_head->number;

		/* Records on disk are older and stay. */
		spool_lose(s, number, number, SPOOL_DROP_LIMIT);
		forget_memory(s);
	}
}

static int keep_in_memory(
	struct spool *s, uint64_t number, int64_t time_ns, const struct buffer *record)
{
	struct spool_memory *m = malloc(sizeof(*m) + record->size);

	if (!m) {
		s->next_number = number;
		return -ENOMEM;
	}
	*m = (struct spool_memory){ .number = number, .time_ns = time_ns, .size = record->size };
	memcpy(m->record, record->bytes, record->size);
	trim_memory(s, record->size);
	if (s->memory_tail)
		s->memory_tail->next = m;
	else
		s->memory_head = m;
	s->memory_tail = m;
	s->memory_bytes += m->size;
	metrics_add(s->metrics, METRIC_SPOOL_MEMORY_ONLY, 1);
	return 1;
}

static bool is_needed(const struct spool *s, uint64_t number)
{
	for (size_t i = 0; i < s->target_count; i++) {
		if (s->targets[i].next <= number)
			return true;
	}
	return false;
}

/* Drops records that no target needs; moves the others to disk, in order. */
static int move_to_disk(struct spool *s)
{
	while (s->memory_head) {
		const struct spool_memory *m = s->memory_head;
		int err = 0;

		if (is_needed(s, m->number))
			err = spool_disk_append(s, m->number, m->time_ns, m->record, m->size);
		if (err)
			return err;
		forget_memory(s);
	}
	return 0;
}

/* ---- putting -------------------------------------------------------------------------------- */

int spool_put(struct spool *s, const struct payload *payload)
{
	autocall(buffer_deinit) struct buffer record;
	uint64_t number = s->next_number;
	int err;

	buffer_init(&record, SEGMENT_HEADER_BYTES + (size_t)SEGMENT_BODY_LIMIT);
	err = segment_encode(payload, number, &record);
	if (err)
		return err;
	if (record.size > s->limit_bytes)
		return -E2BIG;
	spool_watch_writing(s);
	store_cursors(s);
	s->next_number++;
	err = move_to_disk(s);
	if (!err)
		err = spool_disk_append(s, number, payload->time_ns, record.bytes, record.size);
	return err ? keep_in_memory(s, number, payload->time_ns, &record) : 0;
}

void spool_target_go_to(struct spool_target *t, uint64_t next)
{
	t->next = next;
	if (t->done_second == t->next)
		t->next++;
}

/* ---- peeking -------------------------------------------------------------------------------- */

struct found {
	uint64_t number;
	int64_t time_ns;
};

static int peek_memory(
	const struct spool *s, uint64_t want, struct found *ret_found, struct payload *ret_payload)
{
	const struct spool_memory *m = s->memory_head;

	while (m && m->number < want)
		m = m->next;
	if (!m)
		return -ENOENT;
	*ret_found = (struct found){ m->number, m->time_ns };
	return segment_decode(m->record, m->size, ret_payload);
}

/* The first record numbered WANT or above. Sets *RET_FOUND also for -EBADMSG: it is damaged. */
static int peek_at(struct spool *s, struct spool_target *place, uint64_t want,
	struct found *ret_found, struct payload *ret_payload)
{
	struct segment_record record;
	autoclose int fd = -1;
	int err = spool_disk_find(s, want, place, &fd, &record);

	if (err == -ENOENT)
		return peek_memory(s, want, ret_found, ret_payload);
	if (err)
		return err;
	*ret_found = (struct found){ record.number, record.time_ns };
	return segment_payload(fd, &record, ret_payload);
}

/* The start of the oldest window that is still kept. */
static int64_t age_limit_ns(struct spool *s)
{
	int64_t now_ns =
		settled_clock_now(&s->age_clock, (int64_t)clock_real_ns(), clock_boot_ns());

	return s->limit_age_ns < (uint64_t)now_ns ? now_ns - (int64_t)s->limit_age_ns : 0;
}

static bool spool_too_old(struct spool *s, int64_t time_ns)
{
	return s->limit_age_ns && time_ns < age_limit_ns(s);
}

int spool_peek(struct spool *s, size_t target, struct payload *ret_payload)
{
	struct spool_target *t = &s->targets[target];

	while (t->next < s->next_number) {
		struct payload payload = { 0 };
		struct found found;
		int err = peek_at(s, t, t->next, &found, &payload);

		if (err == -ESTALE) {
			spool_watch(s);
			continue;
		}
		if (err && err != -EBADMSG)
			return err;
		/* Numbers are assigned without gaps: the missing ones were damaged. */
		t->dropped[SPOOL_DROP_CORRUPT] += spool_awaited(s, t, t->next, found.number - 1);
		t->next = t->peeked = found.number;
		t->peeked_second = 0;
		if (!err && !spool_too_old(s, found.time_ns)) {
			*ret_payload = payload;
			return 0;
		}
		payload_deinit(&payload);
		t->dropped[err ? SPOOL_DROP_CORRUPT : SPOOL_DROP_AGE]++;
		spool_target_go_to(t, found.number + 1);
		spool_cursor_store(s, t);
		spool_disk_release(s);
	}
	return -ENOENT;
}

int spool_peek_second(struct spool *s, size_t target, struct payload *ret_payload)
{
	struct spool_target *t = &s->targets[target];
	/* A copy: the target's own place does not move. */
	struct spool_target place = *t;
	struct found found;
	int err;

	if (t->done_second > t->peeked)
		return -ENOENT;
	err = peek_at(s, &place, t->peeked + 1, &found, ret_payload);
	if (!err)
		t->peeked_second = found.number;
	return err == -EBADMSG || err == -ESTALE ? -ENOENT : err;
}

/* ---- answers -------------------------------------------------------------------------------- */

bool spool_begin(struct spool *s, size_t target)
{
	struct spool_target *t = &s->targets[target];
	bool second = t->peeked_second > t->peeked;
	uint64_t number = second ? t->peeked_second : t->peeked;
	uint64_t *begun = second ? &t->begun_second : &t->begun;

	t->begun_before = number == t->begun || number == t->begun_second || number <= t->doubtful;
	t->last_begun = t->under_way = number;
	if (*begun != number) {
		*begun = number;
		spool_cursor_store(s, t);
	}
	return t->begun_before;
}

void spool_not_sent(struct spool *s, size_t target)
{
	struct spool_target *t = &s->targets[target];

	spool_target_answered(t, false);
	t->peeked_second = 0;
	if (t->begun_before)
		return;
	if (t->begun == t->last_begun)
		t->begun = 0;
	if (t->begun_second == t->last_begun)
		t->begun_second = 0;
	spool_cursor_store(s, t);
}

void spool_in_doubt(struct spool *s, size_t target)
{
	spool_target_answered(&s->targets[target], false);
}

int spool_advance(struct spool *s, size_t target)
{
	struct spool_target *t = &s->targets[target];

	spool_target_answered(t, true);
	/* It may have been dropped while it was sent, for the limit. */
	if (t->peeked >= t->next)
		spool_target_go_to(t, t->peeked + 1);
	t->peeked_second = 0;
	spool_cursor_store(s, t);
	spool_disk_release(s);
	return t->unwritten && s->fd >= 0 ? -EIO : 0;
}

int spool_advance_second(struct spool *s, size_t target)
{
	struct spool_target *t = &s->targets[target];

	spool_target_answered(t, true);
	t->done_second = t->peeked_second;
	t->peeked_second = 0;
	spool_cursor_store(s, t);
	return t->unwritten && s->fd >= 0 ? -EIO : 0;
}

int spool_reject(struct spool *s, size_t target, const char *reason)
{
	struct spool_target *t = &s->targets[target];
	struct payload payload = { 0 };
	struct found found;
	int err = peek_at(s, t, t->peeked, &found, &payload);

	if (!err && found.number == t->peeked)
		spool_rejected_keep(s, t, found.number, &payload, reason);
	payload_deinit(&payload);
	return spool_advance(s, target);
}

/* ---- upkeep and figures --------------------------------------------------------------------- */

void spool_upkeep(struct spool *s)
{
	spool_watch(s);
	if (s->unsynced_ns && clock_monotonic_ns() - s->unsynced_ns >= SPOOL_SYNC_NS)
		spool_disk_sync(s);
	if (s->limit_age_ns)
		spool_disk_expire(s, age_limit_ns(s));
	store_cursors(s);
	(void)move_to_disk(s);
	spool_disk_release(s);
}

uint64_t spool_removals(const struct spool *s)
{
	return s->removals;
}

uint64_t spool_abandoned(const struct spool *s)
{
	return s->abandoned;
}

uint64_t spool_peeked(const struct spool *s, size_t target)
{
	return s->targets[target].peeked;
}

uint64_t spool_dropped(const struct spool *s, size_t target, enum spool_drop why)
{
	return s->targets[target].dropped[why];
}

uint64_t spool_pending(const struct spool *s, size_t target)
{
	const struct spool_target *t = &s->targets[target];

	return spool_awaited(s, t, t->next, s->next_number - 1);
}

uint64_t spool_memory_records(const struct spool *s)
{
	uint64_t count = 0;

	for (const struct spool_memory *m = s->memory_head; m; m = m->next)
		count += is_needed(s, m->number);
	return count;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->disk_bytes + s->memory_bytes;
}

/*
 * The oldest window of all kept records, including acknowledged ones in a segment that is still
 * needed.
 */
uint64_t spool_oldest_ns(const struct spool *s, int64_t now_real_ns)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < s->segment_count; i++) {
		if (s->segments[i].records)
			oldest = MIN(oldest, s->segments[i].oldest_ns);
	}
	if (s->memory_head)
		oldest = MIN(oldest, s->memory_head->time_ns);
	return oldest < now_real_ns ? (uint64_t)(now_real_ns - oldest) : 0;
}
