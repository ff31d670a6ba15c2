/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/replay/tools/kernel_pcs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

enum { MAX_PCS = 1 << 22 };

void kernel_pcs_add(struct kernel_pcs *k, uint64_t pc)
{
	if (!array_reserve(k->pcs, k->capacity, k->count + 1, MAX_PCS))
		k->pcs[k->count++] = pc;
}

void kernel_pcs_deinit(struct kernel_pcs *k)
{
	free(k->pcs);
}

static int by_number(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static bool is_mark(const char *line)
{
	static const char *const names[] = { " _text\n", " _stext\n", " _etext\n", "orc_",
		"__start_", "__stop_", "trampoline" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strstr(line, names[i]))
			return true;
	return false;
}

/* Whether a pc is in the symbol from START to END. */
static bool has_pc(const struct kernel_pcs *k, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->pcs[i] >= start && k->pcs[i] <= end)
			return true;
	return false;
}

void kernel_pcs_reduce(
	const struct kernel_pcs *k, const char *text, size_t size, struct buffer *out)
{
	autofree uint64_t *starts = calloc(size / 16 + 2, sizeof(*starts));
	size_t count = 0;

	for (const char *line = text; starts && line < text + size; count++) {
		const char *end = memchr(line, '\n', (size_t)(text + size - line));

		starts[count] = strtoull(line, NULL, 16);
		line = end ? end + 1 : text + size;
	}
	if (!starts)
		return;
	qsort(starts, count, sizeof(*starts), by_number);
	for (const char *line = text; line < text + size;) {
		const char *end = memchr(line, '\n', (size_t)(text + size - line));
		size_t length = (size_t)((end ? end + 1 : text + size) - line);
		autofree char *copy = strndup(line, length);
		uint64_t start = strtoull(line, NULL, 16), before = 0, after = UINT64_MAX;
		size_t low = 0, high = count;

		/* Neighbours with other addresses: a symbol ends where the next one begins. */
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (starts[middle] < start)
				low = middle + 1;
			else
				high = middle;
		}
		before = low ? starts[low - 1] : start;
		while (low < count && starts[low] == start)
			low++;
		after = low < count ? starts[low] : UINT64_MAX;
		if (has_pc(k, before, after) || (copy && is_mark(copy)))
			(void)buffer_append(out, line, length);
		line += length;
	}
}
