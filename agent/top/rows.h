/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rows of one table: sorting and filtering. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rows_by {
	ROWS_PROCESS,
	ROWS_FUNCTION,
	ROWS_FIBER,
	ROWS_KINDS,
};

enum rows_key {
	ROWS_CPU, /* functions: self time */
	ROWS_TOTAL, /* functions only */
	ROWS_PID, /* not for functions */
	ROWS_NAME,
	ROWS_KEYS,
};

/* Strings are foreign bytes, borrowed from the snapshot. */
struct row {
	uint32_t pid; /* 0 = a function */
	uint64_t fiber_id; /* 0 = not a fiber */
	uint64_t self_ns, total_ns; /* CPU time; equal unless a function */
	uint64_t kernel_ns; /* part of self_ns in kernel mode */
	const char *name; /* comm, or the function */
	const char *detail; /* the hottest function, or the module */
};

struct rows {
	struct row *rows;
	size_t count, capacity;
};

void rows_deinit(struct rows *r);
/* True if rows of this kind can be sorted by KEY. */
bool rows_have_key(enum rows_by by, enum rows_key key);
/* Sorts times in descending, names and pids in ascending order; REVERSE inverts both. */
void rows_order(struct rows *r, enum rows_key key, bool reverse);
/*
 * True if one of ROW's strings contains FILTER (ASCII case is ignored), or if FILTER is its pid or
 * its fiber's id.
 */
bool row_matches(const struct row *row, const char *filter);
