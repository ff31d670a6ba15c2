/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of stored profiles. The file's name holds all that the store knows about it, so the
 * directory is its own index. Times are kept in tenths of a second.
 *
 *   DAY/20261121T114000Z-10s.pb.gz                   a window: all programs
 *   DAY/20261121T114000Z-600s.minutes-3ff.pb.gz      ten minutes, its minutes apart
 *   DAY/20261121T114000Z-600s.merged.pb.gz           ten minutes as one
 *   DAY/20261121T114000Z-10s-LABEL.pb.gz             one program's window: older versions' files
 *
 * A file of a later generation has its number before the suffix: `-10s.2.pb.gz`. store.h says what
 * generations are for.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FILE_NAME_TENTH_NS = 100000000,
	FILE_NAME_LABEL_BYTES = 101, /* of a group's cleaned name, with its NUL */
	FILE_NAME_BYTES = 192, /* of DAY/NAME, with its NUL */
	FILE_NAME_DAY_LENGTH = 10, /* of `2026-11-21` */
	FILE_NAME_SLOT_TENTHS = 6000, /* ten minutes, at a multiple of them since 1970 */
	FILE_NAME_MINUTE_TENTHS = 600,
	FILE_NAME_MINUTES = 10, /* of a slot */
	FILE_NAME_GENERATIONS = 100,
};

enum file_kind {
	FILE_KIND_GROUP,
	FILE_KIND_WINDOW,
	FILE_KIND_MINUTES,
	FILE_KIND_MERGED,
};

struct file_name {
	int64_t time_tenths; /* start of the window, since 1970 */
	uint32_t duration_tenths;
	enum file_kind kind;
	uint16_t generation; /* 1 and up; 1 for FILE_KIND_GROUP */
	uint16_t minutes; /* bit N: minute N of the slot has samples; FILE_KIND_MINUTES only, else 0
			   */
	char label[FILE_NAME_LABEL_BYTES]; /* FILE_KIND_GROUP only, else "" */
};

/* Cleans LABEL, one-to-one: `a b` becomes `a_b-0123abcd`. */
void file_name_clean(const char *label, char ret_clean[FILE_NAME_LABEL_BYTES]);

/*
 * Rounds the window's begin and end, so that one begins where the one before ends. LABEL: of one
 * program, is cleaned; NULL = a window of all. False if the time is before 1970 or beyond 2262, or
 * the window is longer than a week.
 */
bool file_name_init(struct file_name *n, const char *label, int64_t time_ns, int64_t duration_ns);
void file_name_format(const struct file_name *n, char *path, size_t size);
/* Parses a path; false for anything that file_name_format() would not write exactly so. */
bool file_name_parse(const char *path, struct file_name *ret_name);
/* Number of the slot in which it begins. */
static inline int64_t file_name_slot(const struct file_name *n)
{
	return n->time_tenths / FILE_NAME_SLOT_TENTHS;
}
/* True for the form `2026-11-21`, even if there is no such day. */
bool file_name_is_day(const char *text);
