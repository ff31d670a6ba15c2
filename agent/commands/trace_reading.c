/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/trace_reading.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/loop/loop.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* A child's descriptor changes while it ends, so it is looked at instead of watched. */
static const uint64_t STEP_NS = UINT64_C(20000000);
static const uint64_t SHOW_NS = UINT64_C(1000000000);

struct trace_reading_job {
	struct trace_reading_job *next;
	struct arguments_reading *reading; /* NULL = its turn has not come */
	int fd;
	int root_fd; /* -1 = ours */
	char *path;
	struct module_id id;
	struct cache *cache;
	struct traced_function *functions;
	size_t count;
	uint64_t *entries;
	size_t entry_count;
};

/* ---- jobs ------------------------------------------------------------------------------------ */

static void trace_reading_job_free(struct trace_reading_job *job)
{
	if (!job)
		return;
	arguments_reading_destroy(job->reading);
	if (job->fd >= 0)
		close(job->fd);
	if (job->root_fd >= 0)
		close(job->root_fd);
	free(job->path);
	free(job->functions);
	free(job->entries);
	free(job);
}

static int trace_reading_compare(const void *one, const void *other)
{
	const uint64_t *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

/* Sets the entries of the functions, ascending and each once. */
static void trace_reading_job_sort(struct trace_reading_job *job)
{
	size_t unique = 0;

	for (size_t i = 0; i < job->count; i++)
		job->entries[i] = job->functions[i].address;
	qsort(job->entries, job->count, sizeof(job->entries[0]), trace_reading_compare);
	for (size_t i = 0; i < job->count; i++)
		if (!i || job->entries[i] != job->entries[unique - 1])
			job->entries[unique++] = job->entries[i];
	job->entry_count = unique;
}

static struct trace_reading_job *trace_reading_job_make(const struct trace_reading_file *file,
	const struct traced_function *functions, size_t count)
{
	struct trace_reading_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	job->root_fd = file->root_fd < 0 ? -1 : fcntl(file->root_fd, F_DUPFD_CLOEXEC, 0);
	job->path = strdup(file->path);
	job->id = *file->id;
	job->cache = file->cache;
	job->functions = calloc(count + 1, sizeof(job->functions[0]));
	job->entries = calloc(count + 1, sizeof(job->entries[0]));
	job->count = count;
	if (job->fd < 0 || (file->root_fd >= 0 && job->root_fd < 0) || !job->path ||
		!job->functions || !job->entries) {
		trace_reading_job_free(job);
		return NULL;
	}
	memcpy(job->functions, functions, count * sizeof(job->functions[0]));
	trace_reading_job_sort(job);
	return job;
}

struct function_arguments *trace_read_item(const struct trace_read *read, uint64_t address)
{
	const uint64_t *entry = bsearch(&address, read->entries, read->entry_count,
		sizeof(read->entries[0]), trace_reading_compare);

	return entry ? &read->items[entry - read->entries] : NULL;
}

/* ---- progress -------------------------------------------------------------------------------- */

static void trace_reading_show(struct trace_reading *t)
{
	uint64_t seconds = (clock_monotonic_ns() - t->began_ns) / SHOW_NS;

	if (!t->waited || seconds <= t->shown_seconds || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\rreading the debug information of %s: %" PRIu64 " s \033[K",
		t->first->path, seconds);
	t->shown_seconds = seconds;
}

static void trace_reading_unshow(struct trace_reading *t)
{
	if (t->shown_seconds)
		fputs("\r\033[K", stderr);
	t->shown_seconds = 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct arguments_wanted trace_reading_wanted(const struct trace_reading_job *job)
{
	return (struct arguments_wanted){
		.cache = job->cache,
		.id = &job->id,
		.entries = job->entries,
		.count = job->entry_count,
	};
}

/* Hands over what was read of JOB's file, or why it was not. Frees ITEMS, which may be NULL. */
static void trace_reading_hand_over(const struct trace_reading *t,
	const struct trace_reading_job *job, struct function_arguments *items, int err)
{
	const struct trace_read read = {
		.path = job->path,
		.error = err,
		.functions = job->functions,
		.count = job->count,
		.entries = job->entries,
		.items = items,
		.entry_count = items ? job->entry_count : 0,
	};

	t->done(t->context, &read);
	for (size_t i = 0; i < read.entry_count; i++)
		function_arguments_deinit(&items[i]);
	free(items);
}

/* The first file has been read, or not, and is forgotten. */
static void trace_reading_finish(struct trace_reading *t, int err)
{
	struct trace_reading_job *job = t->first;
	struct function_arguments *items = calloc(job->entry_count + 1, sizeof(items[0]));

	trace_reading_unshow(t);
	if (!err)
		err = items ? arguments_reading_finish(job->reading, items) : -ENOMEM;
	t->first = job->next;
	if (!t->first)
		t->last = NULL;
	trace_reading_hand_over(t, job, items, err);
	trace_reading_job_free(job);
}

static bool trace_reading_find_kept(
	const struct trace_reading *t, const struct trace_reading_job *job)
{
	const struct arguments_wanted wanted = trace_reading_wanted(job);
	struct function_arguments *items = calloc(job->entry_count + 1, sizeof(items[0]));

	if (!items || kept_arguments_read(&wanted, items)) {
		free(items);
		return false;
	}
	trace_reading_hand_over(t, job, items, 0);
	return true;
}

static int trace_reading_begin(struct trace_reading *t)
{
	struct trace_reading_job *job = t->first;
	const struct debug_search search = {
		.directories = t->directories ? t->directories : "",
		.root_fd = job->root_fd,
		.path = job->path,
	};
	const struct arguments_wanted wanted = trace_reading_wanted(job);

	t->began_ns = clock_monotonic_ns();
	return arguments_reading_begin(job->fd, &search, &wanted, &job->reading);
}

static void trace_reading_on_step(void *context)
{
	struct trace_reading *t = context;
	int err;

	if (!t->first->reading) {
		err = trace_reading_begin(t);
		if (err)
			trace_reading_finish(t, err);
	} else if (arguments_reading_step(t->first->reading)) {
		trace_reading_finish(t, 0);
	} else {
		trace_reading_show(t);
	}
	if (t->first)
		return;
	loop_cancel(t->loop, t->timer);
	if (t->waited)
		loop_stop(t->loop);
}

int trace_reading_add(struct trace_reading *t, const struct trace_reading_file *file,
	const struct traced_function *functions, size_t count)
{
	struct trace_reading_job *job = trace_reading_job_make(file, functions, count);
	int err;

	if (!job)
		return -ENOMEM;
	if (trace_reading_find_kept(t, job)) {
		trace_reading_job_free(job);
		return 0;
	}
	if (t->last) {
		t->last->next = job;
		t->last = job;
		return 0;
	}
	err = loop_timer(t->loop, 0, STEP_NS, trace_reading_on_step, t, &t->timer);
	if (err)
		trace_reading_job_free(job);
	else
		t->first = t->last = job;
	return err;
}

int trace_reading_wait(struct trace_reading *t)
{
	int err = 0;

	t->waited = true;
	if (t->first)
		err = loop_run(t->loop);
	t->waited = false;
	trace_reading_unshow(t);
	return err;
}

void trace_reading_deinit(struct trace_reading *t)
{
	while (t->first) {
		struct trace_reading_job *job = t->first;

		t->first = job->next;
		trace_reading_job_free(job);
	}
	t->last = NULL;
}
