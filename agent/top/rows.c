/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
	enum rows_key key;
	bool reverse;
};

void rows_deinit(struct rows *r)
{
	free(r->rows);
	*r = (struct rows){ 0 };
}

bool rows_have_key(enum rows_by by, enum rows_key key)
{
	if (key == ROWS_TOTAL)
		return by == ROWS_FUNCTION;
	return key != ROWS_PID || by != ROWS_FUNCTION;
}

static int up(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_key(const struct row *a, const struct row *b, enum rows_key key)
{
	switch (key) {
	case ROWS_CPU:
		return up(b->self_ns, a->self_ns);
	case ROWS_TOTAL:
		return up(b->total_ns, a->total_ns);
	case ROWS_PID:
		return up(a->pid, b->pid);
	case ROWS_NAME:
		return strcmp(a->name, b->name);
	case ROWS_KEYS:
		break;
	}
	return 0;
}

/* Ties are broken by the other keys, so that the order is stable between tables. */
static int compare(const void *left, const void *right, void *context)
{
	const struct row *a = left, *b = right;
	const struct order *order = context;
	int result = by_key(a, b, order->key);

	if (order->reverse)
		result = -result;
	for (enum rows_key key = ROWS_CPU; !result && key < ROWS_KEYS; key++)
		result = by_key(a, b, key);
	return result ? result : up(a->fiber_id, b->fiber_id);
}

void rows_order(struct rows *r, enum rows_key key, bool reverse)
{
	struct order order = { key, reverse };

	if (r->count)
		qsort_r(r->rows, r->count, sizeof(*r->rows), compare, &order);
}

static bool number_matches(uint64_t number, const char *filter)
{
	char text[24];

	if (!number)
		return false;
	snprintf(text, sizeof(text), "%" PRIu64, number);
	return !strcmp(text, filter);
}

bool row_matches(const struct row *row, const char *filter)
{
	return strcasestr(row->name, filter) || strcasestr(row->detail, filter) ||
	       number_matches(row->pid, filter) || number_matches(row->fiber_id, filter);
}
