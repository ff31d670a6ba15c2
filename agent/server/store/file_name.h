/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of stored profiles. The file's name holds all that the store knows about it, so the
 * directory is its own index. Times are kept in tenths of a second.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FILE_NAME_TENTH_NS = 100000000,
	FILE_NAME_LABEL_BYTES = 101, /* of a group's cleaned name, with its NUL */
	FILE_NAME_BYTES = 192, /* of DAY/NAME, with its NUL */
	FILE_NAME_DAY_LENGTH = 10, /* of `2026-11-21` */
};

struct file_name {
	int64_t time_tenths; /* start of the window, since 1970 */
	uint32_t duration_tenths;
	char label[FILE_NAME_LABEL_BYTES];
};

/*
 * Rounds the window's begin and end, so that one begins where the one before ends, and cleans
 * LABEL, one-to-one: `a b` becomes `a_b-0123abcd`. False if the time is before 1970 or beyond 2262,
 * or the window is longer than a week.
 */
bool file_name_init(struct file_name *n, const char *label, int64_t time_ns, int64_t duration_ns);
/* `2026-11-21/20261121T114000Z-10s-LABEL.pb.gz` */
void file_name_format(const struct file_name *n, char *path, size_t size);
/* Parses a path; false for anything that file_name_format() would not write exactly so. */
bool file_name_parse(const char *path, struct file_name *ret_name);
/* True for the form `2026-11-21`, even if there is no such day. */
bool file_name_is_day(const char *text);
