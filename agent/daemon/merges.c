/* SPDX-License-Identifier: Apache-2.0 */
/* Merges of stored profiles for HTTP clients: which files, how many at once, and the answers. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/daemon/daemon_internal.h"
#include "base/cleanup.h"

enum {
	MAX_FILES = 1 << 16, /* of one merge: a comment each, at most */
	MAX_PATHS_BYTES = MAX_FILES * STORE_PATH_BYTES,
};

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
	else
		serve_reply_refuse(m->reply, err == -E2BIG ? 413 : 500,
			err == -E2BIG ? too_large : "the profiles could not be merged\n");
}

static void on_merge_done(void *context, int err, int fd, uint64_t cpu_ns)
{
	struct daemon_merge *m = context;
	struct daemon *d = m->daemon;

	if (err)
		merges_count(d, err == -E2BIG ? METRIC_MERGES_TOO_LARGE : METRIC_MERGES_FAILED);
	else
		merges_count(d, METRIC_MERGES_DONE);
	merges_answer(m, err, fd);
	*m = (struct daemon_merge){ 0 };
	if (d->serve)
		serve_charge(d->serve, cpu_ns);
}

/* Appends the paths of the files that are wanted, a line each. */
static int merges_list(
	const struct daemon *d, const struct serve_merge *wanted, struct buffer *paths)
{
	struct store_file file;
	size_t iterator = 0, count = 0;
	int err = 0;

	while (!err && store_next(d->store, &iterator, wanted->from_ns, wanted->to_ns, &file)) {
		if (wanted->group && *wanted->group && strcmp(wanted->group, file.name) != 0)
			continue;
		if (++count > MAX_FILES)
			return -E2BIG;
		err = buffer_string(paths, file.path) ?: buffer_string(paths, "\n");
	}
	return err ? err : count ? 0 : -ENOENT;
}

static int merges_start(
	struct daemon *d, const struct serve_merge *wanted, struct daemon_merge *merge)
{
	autocall(buffer_deinit) struct buffer paths;
	autoclose int directory_fd = -1;
	int err;

	buffer_init(&paths, MAX_PATHS_BYTES);
	err = merges_list(d, wanted, &paths) ?: store_open_root(d->store, &directory_fd);
	if (err)
		return err;
	return merge_start(
		&(struct merge_options){
			.loop = d->loop,
			.directory_fd = directory_fd,
			.paths = &paths,
			.by_file = wanted->by_file,
			.comm = wanted->comm,
			.container = wanted->container,
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
