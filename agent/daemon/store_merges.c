/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old files of the store become fewer (agent/server/store/store.h says when): one merge at a time,
 * in a child, and none before the next window ends.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/daemon/daemon_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum { MAX_FILES_BYTES = 16 << 20 };

/* Logs changes only. */
static void store_merges_report(struct daemon *d, int err)
{
	metrics_add(sampler_metrics_to_add(d->sampler),
		err ? METRIC_STORE_MERGES_FAILED : METRIC_STORE_MERGES_DONE, 1);
	if (err && !d->store_merge_error)
		log_warn("stored profiles could not be merged and stay as they are", "error=\"%s\"",
			strerror(-err));
	else if (!err && d->store_merge_error)
		log_info("stored profiles are merged again", "%s", "");
	d->store_merge_error = err;
}

static void store_merges_end(struct daemon *d, int err)
{
	const struct store_now now = { (int64_t)clock_real_ns(), clock_boot_ns() };

	store_merges_report(d, store_merge_end(d->store, err, now));
}

static void on_store_merged(void *context, const struct merge_result *result)
{
	struct daemon *d = context;

	d->store_merge = NULL;
	d->store_merges_cpu_ns += result->cpu_ns;
	metrics_add(sampler_metrics_to_add(d->sampler), METRIC_STORE_DAMAGED, result->unread);
	if (result->fd >= 0)
		close(result->fd);
	store_merges_end(d, result->err);
}

static int store_merges_list(
	const struct daemon *d, const struct store_merge *merge, struct buffer *files)
{
	struct store_file file;
	size_t iterator = 0;
	int err = 0;

	while (!err && store_merge_next(d->store, merge, &iterator, &file)) {
		const struct stored_merge_source source = { .path = file.path,
			.group = file.name,
			.minutes = file.minutes,
			.all_minutes = file.minutes,
			.minute = file.minute };

		err = merge_add_file(files, &source);
	}
	return err;
}

static int store_merges_start(struct daemon *d, const struct store_merge *merge, int output_fd)
{
	autocall(buffer_deinit) struct buffer files;
	autoclose int directory_fd = -1, fd = output_fd;
	int err;

	buffer_init(&files, MAX_FILES_BYTES);
	err = store_merges_list(d, merge, &files) ?: store_open_root(d->store, &directory_fd);
	if (err)
		return err;
	return merge_start(
		&(struct merge_options){
			.loop = d->loop,
			.directory_fd = directory_fd,
			.files = &files,
			.form = merge->into.kind == FILE_KIND_MINUTES ? STORED_MERGE_MINUTES
								      : STORED_MERGE_REPLACE,
			.output_fd = take_fd(&fd),
			.done = on_store_merged,
			.context = d,
		},
		&d->store_merge);
}

void daemon_merge_store(struct daemon *d)
{
	struct store_merge merge;
	int fd, err;

	if (!d->store || d->stopping || !store_merge_find(d->store, &merge))
		return;
	err = store_merge_begin(d->store, &merge, &fd);
	if (err) {
		store_merges_report(d, err);
		return;
	}
	err = store_merges_start(d, &merge, fd);
	if (err)
		store_merges_end(d, err);
}

void daemon_store_merges_deinit(struct daemon *d)
{
	if (!d->store_merge)
		return;
	merge_cancel(take(d->store_merge));
	(void)store_merge_end(d->store, -ECANCELED, (struct store_now){ 0 });
}
