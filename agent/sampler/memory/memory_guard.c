/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/memory/memory_guard.h"

#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/log.h"

enum {
	NEAR_PERCENT = 85, /* of the limit: time to shrink the caches */
	LONGEST_PAUSE = 64, /* checks */
	LOOKUPS_BETWEEN_CHECKS = 16,
	INDEX_PAGES_LIMIT_BYTES = 4 << 20, /* what look-ups may add to the resident file pages */
	/* Shares of a window's limit, in quarters. */
	WORTH_ENDING = 1, /* when memory is short: its end frees a good part */
	NEARLY_FULL = 3, /* whatever else is free: its samples would be lost soon */
};

struct resident {
	uint64_t bytes, file_bytes; /* of mapped files among them; 0 = not known */
};

static struct resident memory_guard_measure(const struct memory_guard *guard)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long total, resident, shared;
	char text[96];
	ssize_t length = host_pread(guard->options.statm_fd, text, sizeof(text) - 1, 0);

	if (length <= 0)
		return (struct resident){ 0 };
	text[length] = 0;
	if (sscanf(text, "%llu %llu %llu", &total, &resident, &shared) != 3)
		return (struct resident){ 0 };
	return (struct resident){ resident * page_bytes, shared * page_bytes };
}

static bool memory_guard_is_near(const struct memory_guard *guard)
{
	return memory_guard_measure(guard).bytes > guard->options.limit_bytes / 100 * NEAR_PERCENT;
}

static bool memory_guard_window_exceeds(const struct memory_guard *guard, unsigned int quarters)
{
	const struct memory_guard_options *options = &guard->options;

	return options->window_bytes(options->context) > options->window_limit_bytes / 4 * quarters;
}

void memory_guard_init(struct memory_guard *guard, const struct memory_guard_options *options)
{
	assert(options->shrink_caches && options->forget_index_pages);
	assert(options->window_bytes && options->end_window);
	*guard = (struct memory_guard){ .options = *options };
}

static void memory_guard_forget_pages(struct memory_guard *guard)
{
	guard->options.forget_index_pages(guard->options.context);
	guard->file_bytes = memory_guard_measure(guard).file_bytes;
}

static void memory_guard_shrink(struct memory_guard *guard)
{
	guard->options.shrink_caches(guard->options.context);
	memory_guard_forget_pages(guard);
	(void)malloc_trim(0);
	metrics_add(guard->options.metrics, METRIC_MEMORY_CACHES, 1);
}

static void memory_guard_end_window(struct memory_guard *guard)
{
	if (guard->options.end_window(guard->options.context))
		metrics_add(guard->options.metrics, METRIC_MEMORY_WINDOW, 1);
}

void memory_guard_check(struct memory_guard *guard)
{
	if (!guard->options.limit_bytes || !memory_guard_is_near(guard)) {
		guard->pause = guard->skip = 0;
		return;
	}
	if (guard->skip) {
		guard->skip--;
		return;
	}
	memory_guard_shrink(guard);
	if (!memory_guard_is_near(guard))
		return;
	if (memory_guard_window_exceeds(guard, WORTH_ENDING))
		memory_guard_end_window(guard);
	guard->pause = MIN(2 * guard->pause + 1, LONGEST_PAUSE);
	guard->skip = guard->pause;
	log_info("memory use stays close to its limit although all caches were evicted",
		"limit_bytes=%llu", (unsigned long long)guard->options.limit_bytes);
}

void memory_guard_check_window(struct memory_guard *guard)
{
	if (memory_guard_window_exceeds(guard, NEARLY_FULL))
		memory_guard_end_window(guard);
}

static bool memory_guard_has_many_pages(const struct memory_guard *guard, uint64_t file_bytes)
{
	return file_bytes >= guard->file_bytes + INDEX_PAGES_LIMIT_BYTES;
}

/* Few index pages stay: the next window looks up in the same ones. */
void memory_guard_release(struct memory_guard *guard)
{
	uint64_t file_bytes = memory_guard_measure(guard).file_bytes;

	(void)malloc_trim(0);
	if (!file_bytes || !guard->file_bytes || memory_guard_has_many_pages(guard, file_bytes))
		memory_guard_forget_pages(guard);
}

/*
 * Each look-up touches a few pages of an index, and the kernel maps their neighbours, too. They are
 * clean and quickly read again, so they are forgotten before they add up.
 */
void memory_guard_count_lookup(struct memory_guard *guard)
{
	if (++guard->lookups % LOOKUPS_BETWEEN_CHECKS)
		return;
	if (memory_guard_has_many_pages(guard, memory_guard_measure(guard).file_bytes))
		memory_guard_forget_pages(guard);
}
