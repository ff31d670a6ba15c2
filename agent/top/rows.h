/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rows of one table: their order, and which a filter lets through. */
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
	ROWS_CPU, /* of functions: self */
	ROWS_TOTAL, /* functions only */
	ROWS_PID, /* not of functions */
	ROWS_NAME,
	ROWS_KEYS,
};

/* Texts are foreign bytes, borrowed from the snapshot. */
struct row {
	uint32_t pid; /* 0 = a function */
	uint64_t fiber_id; /* 0 = no goroutine */
	uint64_t self_ns, total_ns; /* CPU time; the same but for functions */
	uint64_t kernel_ns; /* of it, in kernel mode */
	const char *name; /* comm, or the function */
	const char *detail; /* the hottest function, or the module */
};

struct rows {
	struct row *rows;
	size_t count, capacity;
};

void rows_deinit(struct rows *r);
/* Whether rows of this kind have KEY to be ordered by. */
bool rows_have_key(enum rows_by by, enum rows_key key);
/* The biggest first, names and pids the smallest first; the other way round with REVERSE. */
void rows_order(struct rows *r, enum rows_key key, bool reverse);
/* Any of its texts contains FILTER, without regard to the case of ASCII letters. */
bool row_matches(const struct row *row, const char *filter);
