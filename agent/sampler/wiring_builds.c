/* SPDX-License-Identifier: Apache-2.0 */
/* Wires index builds to the loop and to the rooms that use indexes. Nothing is decided here. */
#include <sys/epoll.h>

#include "agent/sampler/recording/notes.h"
#include "agent/sampler/sampler_internal.h"
#include "base/descriptors.h"
#include "base/host.h"

/* What an indexer needs for a big module, and no more (budgets: 256 MB resident). */
static const struct sandbox_limits index_limits = {
	.memory_bytes = 4UL << 30,
	.cpu_seconds = 60,
	.output_bytes = 2UL << 30,
};

static void on_build_fd(void *context, int fd, uint32_t events)
{
	struct sampler *sampler = context;

	(void)events;
	loop_step(sampler->loop, "builds");
	host_note(HOST_NOTE_BUILDS_READY, NULL);
	builds_ready(sampler->builds, fd);
	build_wait_progress(&sampler->build_wait);
}

static void on_watch(void *context, int fd, bool watch)
{
	struct sampler *sampler = context;

	if (!watch)
		loop_remove(sampler->loop, fd);
	else if (loop_add(sampler->loop, fd, EPOLLIN, on_build_fd, sampler))
		log_warn("an index build cannot be watched, ignoring", "fd=%d", fd);
}

static void on_done(void *context, uint64_t tag, struct index *index)
{
	const struct sampler *sampler = context;

	host_note(HOST_NOTE_INDEX, &(struct note_index){ .tag = tag, .index = index });
	module_indexes_answer(sampler->module_indexes, tag, index);
}

int sampler_builds_create(struct sampler *sampler)
{
	const unsigned int left = descriptors_left();

	sampler->build_share = build_share_of(left);
	if (sampler->build_share.is_small)
		log_warn("few files may be open: index builds wait for each other, names come late",
			"limit=%u left=%u builds_waiting=%u builds_running=%u fix=\"raise the "
			"limit "
			"of open files, ulimit -n\"",
			descriptors_limit(), left, sampler->build_share.waiting,
			sampler->build_share.children);
	return builds_create(
		&(struct builds_options){
			.cache = sampler->cache,
			.metrics = &sampler->metrics,
			.debuginfod = sampler->debuginfod,
			.limits = index_limits,
			.max_children = sampler->build_share.children,
			.max_waiting = sampler->build_share.waiting,
			.watch = on_watch,
			.done = on_done,
			.context = sampler,
		},
		&sampler->builds);
}

/* Debug files that are open at the same time may together take as much space as the cache. */
int sampler_debuginfod_create(struct sampler *sampler, const struct sampler_options *options)
{
	const char *urls = options->debuginfod_urls;
	int err = debuginfod_create(
		&(struct debuginfod_options){
			.urls = urls ? urls : "",
			.cache = sampler->cache,
			.metrics = &sampler->metrics,
			.limit_bytes = options->cache_limit_bytes / BUILDS_OPEN_DEBUG + 1,
			.per_minute = options->debuginfod_per_minute,
		},
		&sampler->debuginfod);

	return err == -ENOENT ? 0 : err;
}
