/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/latency/workers.h"

#include <pthread.h>
#include <signal.h>

#include "base/cleanup.h"

enum { MAX_WORKERS = 32, ITEMS_PER_WORKER = 8, STACK_BYTES = 128 << 10 };

struct workers {
	void (*work)(void *context, size_t item);
	void *context;
	size_t count, next; /* `next` is atomic */
};

static void *workers_work(void *context)
{
	struct workers *w = context;
	size_t item;

	while ((item = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->count)
		w->work(w->context, item);
	return NULL;
}

/* Starts up to COUNT threads without signals, which are the main thread's. Returns how many. */
static size_t workers_start(struct workers *w, pthread_t *threads, size_t count)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	size_t started = 0;

	if (pthread_attr_init(&attributes))
		return 0;
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < count && !pthread_create(&threads[started], &attributes, workers_work, w))
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

void workers_run(size_t count, void (*work)(void *context, size_t item), void *context)
{
	struct workers w = { .work = work, .context = context, .count = count };
	pthread_t threads[MAX_WORKERS];
	size_t started =
		workers_start(&w, threads, MIN(count / ITEMS_PER_WORKER, (size_t)MAX_WORKERS));

	/* This thread works, too: without any other one if none could be started. */
	workers_work(&w);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}
