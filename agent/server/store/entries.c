/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/store/entries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum {
	LABELS_LIMIT = 1 << 16,
	LABELS_BYTES = 8 << 20,
	BLOCK_BYTES = 4096,
};

uint64_t entries_block_bytes(uint64_t size_bytes)
{
	return (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

int entries_init(struct entries *e, size_t name_limit)
{
	*e = (struct entries){ .label_limit = name_limit ? name_limit : LABELS_LIMIT };
	return intern_init(&e->labels, e->label_limit, LABELS_BYTES);
}

void entries_deinit(struct entries *e)
{
	free(e->all);
	intern_deinit(&e->labels);
	*e = (struct entries){ 0 };
}

/* Drops labels that no entry uses any more: containers come and go for months. */
static int renew_labels(struct entries *e)
{
	struct intern fresh;
	int err = intern_init(&fresh, e->label_limit, LABELS_BYTES);

	for (size_t i = e->first; !err && i < e->end; i++) {
		uint32_t ignored;

		err = intern_string(&fresh, intern_text(&e->labels, e->all[i].label), &ignored);
	}
	if (err) {
		intern_deinit(&fresh);
		return err;
	}
	for (size_t i = e->first; i < e->end; i++) {
		uint32_t *label = &e->all[i].label;

		/* All labels are in `fresh`: this cannot fail. */
		(void)intern_string(&fresh, intern_text(&e->labels, *label), label);
	}
	intern_deinit(&e->labels);
	e->labels = fresh;
	return 0;
}

static int intern_label(struct entries *e, const char *label, uint32_t *ret_number)
{
	int err = intern_string(&e->labels, label, ret_number);

	if (err != -E2BIG)
		return err;
	err = renew_labels(e);
	return err ? err : intern_string(&e->labels, label, ret_number);
}

/* The first place whose time is at or after (AFTER: after) TIME. */
static size_t entries_search(const struct entries *e, int64_t time_tenths, bool after)
{
	size_t low = e->first, high = e->end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int64_t time = e->all[middle].time_tenths;

		if (time < time_tenths || (after && time == time_tenths))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int entries_make_room(struct entries *e)
{
	if (e->first > 1024 && e->first > e->end / 2) {
		memmove(e->all, e->all + e->first, entries_count(e) * sizeof(*e->all));
		e->end -= e->first;
		e->first = 0;
	}
	return array_reserve(e->all, e->capacity, e->end + 1, ENTRIES_LIMIT);
}

static int make_entry(
	struct entries *e, const struct file_name *name, uint64_t size_bytes, struct entry *entry)
{
	int err = size_bytes > ENTRY_LARGEST_BYTES ? -E2BIG : entries_make_room(e);

	*entry = (struct entry){
		.time_tenths = name->time_tenths,
		.duration_tenths = name->duration_tenths,
		.size_bytes = (uint32_t)size_bytes,
		.order = e->next_order,
		.minutes = name->minutes,
		.generation = name->generation,
		.kind = (uint8_t)name->kind,
	};
	return err ? err : intern_label(e, name->label, &entry->label);
}

int entries_append(struct entries *e, const struct file_name *name, uint64_t size_bytes)
{
	struct entry entry;
	int err = make_entry(e, name, size_bytes, &entry);

	if (err)
		return err;
	e->all[e->end++] = entry;
	e->next_order++;
	e->block_bytes += entries_block_bytes(size_bytes);
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->time_tenths != right->time_tenths)
		return left->time_tenths < right->time_tenths ? -1 : 1;
	return (left->generation > right->generation) - (left->generation < right->generation);
}

void entries_sort(struct entries *e)
{
	if (entries_count(e))
		qsort(e->all + e->first, entries_count(e), sizeof(*e->all), by_time);
	for (size_t i = e->first; i < e->end; i++)
		e->all[i].order = e->next_order++;
}

int entries_add(struct entries *e, const struct file_name *name, uint64_t size_bytes)
{
	struct entry entry;
	int err = make_entry(e, name, size_bytes, &entry);
	size_t place;

	if (err)
		return err;
	place = entries_search(e, entry.time_tenths, true);
	memmove(e->all + place + 1, e->all + place, (e->end - place) * sizeof(*e->all));
	e->all[place] = entry;
	e->end++;
	e->next_order++;
	e->block_bytes += entries_block_bytes(size_bytes);
	return 0;
}

const struct entry *entries_find(const struct entries *e, const struct file_name *name)
{
	for (size_t i = entries_search(e, name->time_tenths, false); i < e->end; i++) {
		const struct entry *entry = &e->all[i];

		if (entry->time_tenths != name->time_tenths)
			break;
		if (entry->duration_tenths == name->duration_tenths && entry->kind == name->kind &&
			entry->generation == name->generation && entry->minutes == name->minutes &&
			!strcmp(intern_text(&e->labels, entry->label), name->label))
			return entry;
	}
	return NULL;
}

void entries_name(const struct entries *e, const struct entry *entry, struct file_name *ret_name)
{
	ret_name->time_tenths = entry->time_tenths;
	ret_name->duration_tenths = entry->duration_tenths;
	ret_name->kind = (enum file_kind)entry->kind;
	ret_name->generation = entry->generation;
	ret_name->minutes = entry->minutes;
	snprintf(ret_name->label, sizeof(ret_name->label), "%s",
		intern_text(&e->labels, entry->label));
}

size_t entries_from(const struct entries *e, int64_t time_tenths)
{
	return entries_search(e, time_tenths, false) - e->first;
}

void entries_doom(struct entries *e, size_t place, uint16_t stamp)
{
	struct entry *entry = &e->all[e->first + place];

	e->doomed += !entry->doomed;
	entry->doomed = stamp;
}

void entries_stick(struct entries *e, size_t place, bool stuck)
{
	e->all[e->first + place].stuck = stuck;
}

size_t entries_oldest(const struct entries *e, int64_t now_tenths)
{
	size_t ahead = entries_search(e, now_tenths, true);

	if (ahead < e->end && (int32_t)(e->all[ahead].order - e->all[e->first].order) < 0)
		return ahead - e->first;
	return 0;
}

void entries_remove(struct entries *e, size_t place)
{
	struct entry *entry = &e->all[e->first + place];

	e->block_bytes -= entries_block_bytes(entry->size_bytes);
	e->doomed -= entry->doomed != 0;
	if (!place) {
		e->first++;
		return;
	}
	e->end--;
	memmove(entry, entry + 1, (size_t)(&e->all[e->end] - entry) * sizeof(*entry));
}

void entries_forget(struct entries *e, const struct file_name *name)
{
	const struct entry *entry = entries_find(e, name);

	if (entry)
		entries_remove(e, (size_t)(entry - (e->all + e->first)));
}
