/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of the store become one, and how that one takes their place: store.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/store/store_internal.h"
#include "base/cleanup.h"

enum {
	STAMP_SECONDS = 16,
	STAMP_VALUES = UINT16_MAX, /* 1 to that */
	STAMP_READERS = 10, /* 160 s: the longest merge for a client takes 120 s */
	LONGEST_MINUTE_TENTHS = FILE_NAME_MINUTE_TENTHS + 10, /* a window that is one */
};

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t STUCK_NS = UINT64_C(3600000000000);

/* ---- stamps --------------------------------------------------------------------------------- */

uint16_t store_stamp(uint64_t boot_ns)
{
	return (uint16_t)(boot_ns / SECOND_NS / STAMP_SECONDS % STAMP_VALUES + 1);
}

uint16_t store_old_stamp(uint64_t boot_ns)
{
	return (uint16_t)((store_stamp(boot_ns) + STAMP_VALUES / 2) % STAMP_VALUES + 1);
}

bool store_stamp_is_old(uint16_t stamp, uint64_t boot_ns)
{
	return (store_stamp(boot_ns) + STAMP_VALUES - stamp) % STAMP_VALUES > STAMP_READERS;
}

/* ---- slots ---------------------------------------------------------------------------------- */

static int64_t slot_of(const struct entry *entry)
{
	return entry->time_tenths / FILE_NAME_SLOT_TENTHS;
}

static bool entry_is_window(const struct entry *entry)
{
	return entry->kind == FILE_KIND_WINDOW || entry->kind == FILE_KIND_GROUP;
}

/* The place behind the last file of the slot that begins at PLACE. */
static size_t slot_end(const struct store *s, size_t place)
{
	int64_t slot = slot_of(entries_at(&s->entries, place));

	return entries_from(&s->entries, (slot + 1) * FILE_NAME_SLOT_TENTHS);
}

/* Whether the file NAME stands for ENTRY, of its slot. */
static bool name_stands_for(const struct file_name *name, const struct entry *entry)
{
	if (entry_is_window(entry))
		return entry->generation <= name->generation;
	return entry->kind == FILE_KIND_MINUTES && name->kind == FILE_KIND_MERGED &&
	       entry->generation == name->generation;
}

static void doom_for(
	struct store *s, size_t begin, size_t end, const struct file_name *name, uint16_t stamp)
{
	for (size_t i = begin; i < end; i++) {
		const struct entry *entry = entries_at(&s->entries, i);

		if (!entry->doomed && name_stands_for(name, entry))
			entries_doom(&s->entries, i, stamp);
	}
}

void store_doom_merged(struct store *s, uint16_t stamp)
{
	size_t end;

	for (size_t begin = 0; begin < entries_count(&s->entries); begin = end) {
		end = slot_end(s, begin);
		for (size_t i = begin; i < end; i++) {
			struct file_name name;

			if (entry_is_window(entries_at(&s->entries, i)))
				continue;
			entries_name(&s->entries, entries_at(&s->entries, i), &name);
			doom_for(s, begin, end, &name, stamp);
		}
	}
}

int store_newest_merged(const struct store *s, int64_t slot)
{
	size_t i = entries_from(&s->entries, slot * FILE_NAME_SLOT_TENTHS);
	int newest = 0;

	for (; i < entries_count(&s->entries); i++) {
		const struct entry *entry = entries_at(&s->entries, i);

		if (slot_of(entry) != slot)
			break;
		if (!entry_is_window(entry))
			newest = MAX(newest, (int)entry->generation);
	}
	if (s->merging.sources && file_name_slot(&s->merging.into) == slot)
		newest = MAX(newest, (int)s->merging.into.generation);
	return newest;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* The windows of a slot that are not merged. */
struct slot_windows {
	size_t count;
	uint32_t longest_tenths;
	int64_t end_tenths;
	uint16_t minutes, generation;
	bool stuck;
};

static unsigned int minute_of(const struct entry *entry)
{
	return (unsigned int)(entry->time_tenths % FILE_NAME_SLOT_TENTHS / FILE_NAME_MINUTE_TENTHS);
}

static struct slot_windows slot_look(const struct store *s, size_t begin, size_t end)
{
	struct slot_windows w = { 0 };

	for (size_t i = begin; i < end; i++) {
		const struct entry *entry = entries_at(&s->entries, i);

		if (entry->doomed || !entry_is_window(entry))
			continue;
		w.count++;
		w.stuck |= entry->stuck;
		w.longest_tenths = MAX(w.longest_tenths, entry->duration_tenths);
		w.end_tenths = MAX(w.end_tenths, entry->time_tenths + entry->duration_tenths);
		w.minutes = (uint16_t)(w.minutes | 1U << minute_of(entry));
		w.generation = MAX(w.generation, entry->generation);
	}
	return w;
}

static struct store_merge slot_merge(int64_t slot, enum file_kind from, enum file_kind into)
{
	return (struct store_merge){ .from = from,
		.into = { .time_tenths = slot * FILE_NAME_SLOT_TENTHS,
			.duration_tenths = FILE_NAME_SLOT_TENTHS,
			.kind = into,
			.generation = 1 } };
}

/* Windows of ten minutes and more stay as they are. */
static bool slot_windows_due(const struct slot_windows *w, int64_t slot, int64_t age_tenths,
	struct store_merge *ret_merge)
{
	bool to_minutes = w->longest_tenths <= LONGEST_MINUTE_TENTHS;
	int64_t after_ns = to_minutes ? STORE_MINUTES_AFTER_NS : STORE_MERGED_AFTER_NS;
	int64_t begin = slot * FILE_NAME_SLOT_TENTHS;

	if (!w->count || w->stuck || w->longest_tenths >= FILE_NAME_SLOT_TENTHS ||
		age_tenths < after_ns / FILE_NAME_TENTH_NS)
		return false;
	*ret_merge = slot_merge(
		slot, FILE_KIND_WINDOW, to_minutes ? FILE_KIND_MINUTES : FILE_KIND_MERGED);
	if (to_minutes)
		ret_merge->into.minutes = w->minutes;
	else
		ret_merge->into.duration_tenths =
			(uint32_t)(MAX(w->end_tenths, begin + FILE_NAME_SLOT_TENTHS) - begin);
	ret_merge->into.generation = w->generation;
	ret_merge->sources = w->count;
	return true;
}

static bool slot_minutes_due(const struct store *s, size_t begin, size_t end, int64_t age_tenths,
	struct store_merge *ret_merge)
{
	for (size_t i = begin; i < end; i++) {
		const struct entry *entry = entries_at(&s->entries, i);

		if (entry->kind != FILE_KIND_MINUTES || entry->doomed || entry->stuck ||
			age_tenths < STORE_MERGED_AFTER_NS / FILE_NAME_TENTH_NS)
			continue;
		*ret_merge = slot_merge(slot_of(entry), FILE_KIND_MINUTES, FILE_KIND_MERGED);
		ret_merge->into.generation = entry->generation;
		ret_merge->sources = 1;
		return true;
	}
	return false;
}

bool store_merge_find(const struct store *s, struct store_merge *ret_merge)
{
	size_t end;

	if (s->merging.sources || s->settled_tenths == INT64_MIN)
		return false;
	for (size_t begin = 0; begin < entries_count(&s->entries); begin = end) {
		int64_t slot = slot_of(entries_at(&s->entries, begin));
		int64_t age = s->settled_tenths - (slot + 1) * FILE_NAME_SLOT_TENTHS;
		struct slot_windows w;

		if (age < STORE_MINUTES_AFTER_NS / FILE_NAME_TENTH_NS)
			return false;
		end = slot_end(s, begin);
		w = slot_look(s, begin, end);
		if (slot_windows_due(&w, slot, age, ret_merge) ||
			slot_minutes_due(s, begin, end, age, ret_merge))
			return true;
	}
	return false;
}

static bool merge_has_source(const struct store_merge *m, const struct entry *entry)
{
	if (slot_of(entry) != file_name_slot(&m->into) || entry->doomed)
		return false;
	if (m->from == FILE_KIND_WINDOW)
		return entry_is_window(entry) && entry->generation <= m->into.generation;
	return entry->kind == m->from && entry->generation == m->into.generation;
}

bool store_merge_next(const struct store *s, const struct store_merge *m, size_t *iterator,
	struct store_file *ret_file)
{
	if (!*iterator)
		*iterator = entries_from(&s->entries, m->into.time_tenths);
	while (*iterator < entries_count(&s->entries)) {
		const struct entry *entry = entries_at(&s->entries, (*iterator)++);

		if (slot_of(entry) != file_name_slot(&m->into))
			break;
		if (!merge_has_source(m, entry))
			continue;
		store_describe(s, entry, ret_file);
		ret_file->kind = (enum file_kind)entry->kind;
		ret_file->minutes = entry->minutes;
		ret_file->minute = minute_of(entry);
		return true;
	}
	return false;
}

/* ---- replacing ------------------------------------------------------------------------------ */

int store_merge_begin(struct store *s, const struct store_merge *m, int *ret_fd)
{
	char path[FILE_NAME_BYTES];
	int fd;

	if (s->merging.sources)
		return -EBUSY;
	file_name_format(&m->into, path, sizeof(path));
	fd = store_open_temporary(s, path);
	if (fd < 0)
		return fd;
	s->merging = *m;
	*ret_fd = fd;
	return 0;
}

static int merge_replace(struct store *s, const struct store_merge *m, struct store_now now)
{
	char path[FILE_NAME_BYTES], temporary[STORE_TEMPORARY_BYTES];
	size_t begin, end;
	struct stat st;
	int err;

	file_name_format(&m->into, path, sizeof(path));
	store_temporary_path(path, temporary, sizeof(temporary));
	if (fstatat(s->fd, temporary, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return -EBADMSG;
	/* Before the rename, which cannot be undone. */
	err = entries_add(&s->entries, &m->into, (uint64_t)st.st_size);
	if (err)
		return err;
	if (renameat(s->fd, temporary, s->fd, path)) {
		err = -errno;
		entries_forget(&s->entries, &m->into);
		return err;
	}
	begin = entries_from(&s->entries, m->into.time_tenths);
	end = slot_end(s, begin);
	doom_for(s, begin, end, &m->into, store_stamp(now.boot_ns));
	return 0;
}

static void merge_stick(struct store *s, const struct store_merge *m, uint64_t boot_ns)
{
	for (size_t i = entries_from(&s->entries, m->into.time_tenths);
		i < entries_count(&s->entries); i++) {
		const struct entry *entry = entries_at(&s->entries, i);

		if (slot_of(entry) != file_name_slot(&m->into))
			break;
		if (merge_has_source(m, entry))
			entries_stick(&s->entries, i, true);
	}
	s->stuck_ns = MAX(boot_ns, 1);
}

void store_unstick(struct store *s, uint64_t boot_ns)
{
	if (!s->stuck_ns || boot_ns - s->stuck_ns < STUCK_NS)
		return;
	s->stuck_ns = 0;
	for (size_t i = 0; i < entries_count(&s->entries); i++)
		entries_stick(&s->entries, i, false);
}

int store_merge_end(struct store *s, int err, struct store_now now)
{
	char path[FILE_NAME_BYTES], temporary[STORE_TEMPORARY_BYTES];
	struct store_merge m = s->merging;

	if (!m.sources)
		return -EINVAL;
	s->merging = (struct store_merge){ 0 };
	if (!err)
		err = merge_replace(s, &m, now);
	if (!err)
		return 0;
	file_name_format(&m.into, path, sizeof(path));
	store_temporary_path(path, temporary, sizeof(temporary));
	unlinkat(s->fd, temporary, 0);
	merge_stick(s, &m, now.boot_ns);
	return err;
}
