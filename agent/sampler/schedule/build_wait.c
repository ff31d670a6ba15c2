/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/schedule/build_wait.h"

#include <assert.h>

#include "agent/loop/loop.h"
#include "symbolizer/builds/builds.h"

/* A file system that is merely slow answers by then; one that hangs costs this much at the end. */
enum { MOST_ASKS = 30 };
static const uint64_t ASK_NS = UINT64_C(200000000);

void build_wait_init(struct build_wait *w, const struct build_wait_options *options)
{
	*w = (struct build_wait){ .options = *options };
}

static bool build_wait_is_building(const struct build_wait *w)
{
	const struct builds *builds = w->options.builds;

	return builds_pending(builds) > 0 ||
	       (w->with_debug && builds_improving(builds).modules > 0);
}

void build_wait_progress(struct build_wait *w)
{
	w->options.retry(w->options.context, w->waiting);
	if (!w->waiting)
		return;
	if (build_wait_is_building(w))
		builds_hurry(w->options.builds);
	else if (!w->asks_left)
		loop_stop(w->options.loop);
}

static void build_wait_ask(struct build_wait *w)
{
	w->asks_left = w->options.ask_postponed(w->options.context) ? w->asks_left - 1 : 0;
}

static void build_wait_ask_again(void *context)
{
	struct build_wait *w = context;

	if (!w->asks_left)
		return;
	build_wait_ask(w);
	build_wait_progress(w);
}

static void build_wait_expire(void *context)
{
	struct build_wait *w = context;

	w->expired = true;
	loop_stop(w->options.loop);
}

static int build_wait_loop(struct build_wait *w)
{
	struct loop *loop = w->options.loop;
	int asks = -1, err = 0;

	if (w->asks_left)
		err = loop_timer(loop, ASK_NS, ASK_NS, build_wait_ask_again, w, &asks);
	if (err)
		return err;
	w->waiting = true;
	builds_hurry(w->options.builds);
	err = loop_run(loop);
	w->waiting = false;
	loop_cancel(loop, asks);
	return err;
}

int build_wait_run(struct build_wait *w, uint64_t wait_ns)
{
	struct loop *loop = w->options.loop;
	int timer, err;

	assert(!w->waiting);
	w->options.retry(w->options.context, true);
	w->asks_left = MOST_ASKS;
	build_wait_ask(w);
	if (!build_wait_is_building(w) && !w->asks_left)
		return 0;
	w->expired = false;
	err = loop_timer(loop, wait_ns, 0, build_wait_expire, w, &timer);
	if (err)
		return err;
	err = build_wait_loop(w);
	if (!w->expired)
		loop_cancel(loop, timer);
	return err;
}

int build_wait_run_debug(struct build_wait *w, uint64_t wait_ns)
{
	int err;

	w->with_debug = true;
	err = build_wait_run(w, wait_ns);
	w->with_debug = false;
	return err;
}
