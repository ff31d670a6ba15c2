/* SPDX-License-Identifier: Apache-2.0 */
/* Merges of stored profiles for HTTP clients: which files, how many at once, and the answers. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/slices.h"
#include "base/cleanup.h"

enum {
	MAX_FILES = 1 << 16, /* of one merge: a comment each, at most */
	MAX_FILES_BYTES = MAX_FILES * 2 * STORE_PATH_BYTES,
};

static const uint64_t MS_NS = UINT64_C(1000000);

static void merges_count(struct daemon *d, enum metric metric)
{
	metrics_add(sampler_metrics_to_add(d->sampler), metric, 1);
}

static void merges_answer(struct daemon_merge *m, int err, int fd)
{
	static const char too_large[] = "the profiles of that time are too many or too large to be "
					"merged: ask for less time, or for one group\n";

	if (!err)
		serve_reply_send_file(m->reply, "application/octet-stream", fd);
	else if (err == -ENOENT)
		serve_reply_refuse(m->reply, 404, "no profile of that group is stored\n");
	else
		serve_reply_refuse(m->reply, err == -E2BIG ? 413 : 500,
			err == -E2BIG ? too_large : "the profiles could not be merged\n");
}

static void on_merge_done(void *context, const struct merge_result *result)
{
	struct daemon_merge *m = context;
	struct daemon *d = m->daemon;
	int err = result->err;

	if (err && err != -ENOENT)
		merges_count(d, err == -E2BIG ? METRIC_MERGES_TOO_LARGE : METRIC_MERGES_FAILED);
	else
		merges_count(d, METRIC_MERGES_DONE);
	metrics_add(sampler_metrics_to_add(d->sampler), METRIC_STORE_DAMAGED, result->unread);
	merges_answer(m, err, result->fd);
	*m = (struct daemon_merge){ 0 };
	if (d->serve)
		serve_charge(d->serve, result->cpu_ns);
}

/* A file of minutes is one line, however many of them are wanted. */
struct merges_list {
	struct buffer *files;
	struct store_file last; /* not appended yet if its path is not "" */
	unsigned int minutes; /* of it */
	int64_t slice_ns; /* length; 0 = there are none */
	size_t count;
};

static int merges_append_last(struct merges_list *l)
{
	struct stored_merge_source source = { .path = l->last.path,
		.group = l->last.name,
		.minutes = l->minutes,
		.all_minutes = l->last.minutes };

	if (!*l->last.path)
		return 0;
	if (l->slice_ns)
		source.slice_ms = (uint64_t)slices_begin_ns(l->last.time_ns, l->slice_ns) / MS_NS;
	return ++l->count > MAX_FILES ? -E2BIG : merge_add_file(l->files, &source);
}

static int merges_append(struct merges_list *l, const struct store_file *file)
{
	int err;

	if (!strcmp(l->last.path, file->path)) {
		l->minutes |= 1U << file->minute;
		return 0;
	}
	err = merges_append_last(l);
	l->last = *file;
	l->minutes = file->minutes ? 1U << file->minute : 0;
	return err;
}

/* Files of one program say whose they are; of others the samples do. */
static bool merges_may_want(const struct serve_merge *wanted, const struct store_file *file)
{
	return !wanted->group || !*wanted->group || !*file->name ||
	       !strcmp(wanted->group, file->name);
}

static int merges_list(
	const struct daemon *d, const struct serve_merge *wanted, struct buffer *files)
{
	struct merges_list l = { .files = files, .slice_ns = wanted->slice_ns };
	struct store_file file;
	size_t iterator = 0;
	int err = 0;

	while (!err && store_next(d->store, &iterator, wanted->from_ns, wanted->to_ns, &file)) {
		if (merges_may_want(wanted, &file))
			err = merges_append(&l, &file);
	}
	if (!err)
		err = merges_append_last(&l);
	return err ? err : l.count ? 0 : -ENOENT;
}

static enum stored_merge_form merges_form(const struct serve_merge *wanted)
{
	if (!wanted->by_file)
		return STORED_MERGE_SUM;
	return wanted->slice_ns ? STORED_MERGE_BY_SLICE : STORED_MERGE_BY_FILE;
}

static int merges_start(
	struct daemon *d, const struct serve_merge *wanted, struct daemon_merge *merge)
{
	autocall(buffer_deinit) struct buffer files;
	autoclose int directory_fd = -1;
	int err;

	buffer_init(&files, MAX_FILES_BYTES);
	err = merges_list(d, wanted, &files) ?: store_open_root(d->store, &directory_fd);
	if (err)
		return err;
	return merge_start(
		&(struct merge_options){
			.loop = d->loop,
			.directory_fd = directory_fd,
			.files = &files,
			.form = merges_form(wanted),
			.comm = wanted->comm,
			.container = wanted->container,
			.group = wanted->group,
			.done = on_merge_done,
			.context = merge,
		},
		&merge->merge);
}

int daemon_begin_merge(void *context, struct serve_reply *reply, const struct serve_merge *wanted)
{
	struct daemon *d = context;
	struct daemon_merge *m = NULL;
	int err;

	if (!d->store)
		return -ENOENT;
	for (size_t i = 0; i < DAEMON_MAX_MERGES && !m; i++)
		m = d->merges[i].reply ? NULL : &d->merges[i];
	if (!m || d->stopping) {
		merges_count(d, METRIC_MERGES_REFUSED);
		return -EAGAIN;
	}
	m->daemon = d;
	err = merges_start(d, wanted, m);
	if (!err)
		m->reply = reply;
	else if (err == -E2BIG)
		merges_count(d, METRIC_MERGES_TOO_LARGE);
	else if (err != -ENOENT)
		merges_count(d, METRIC_MERGES_FAILED);
	return err;
}

void daemon_cancel_merge(struct daemon *d, const struct serve_reply *reply)
{
	for (size_t i = 0; i < DAEMON_MAX_MERGES; i++) {
		struct daemon_merge *m = &d->merges[i];

		if (!m->reply || m->reply != reply)
			continue;
		merges_count(d, METRIC_MERGES_CANCELLED);
		merge_cancel(m->merge);
		*m = (struct daemon_merge){ 0 };
	}
}

void daemon_merges_deinit(struct daemon *d)
{
	for (size_t i = 0; i < DAEMON_MAX_MERGES; i++) {
		if (d->merges[i].reply)
			merge_cancel(d->merges[i].merge);
		d->merges[i] = (struct daemon_merge){ 0 };
	}
}
