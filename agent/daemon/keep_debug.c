/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/keep_debug.h"

#include <errno.h>
#include <poll.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* It copies in small pieces at the lowest priority, which takes little memory but much time. */
static const struct sandbox_limits limits = {
	.task = SANDBOX_KEEP_DEBUG,
	.memory_bytes = 512UL << 20, /* address space: mostly libraries */
	.cpu_seconds = 60,
	.output_bytes = KEEP_DEBUG_MAX_BYTES,
};
enum {
	LOOK_MS = 1000,
	IDLE_END = 5, /* looks at a child that sleeps all the time; then its file does not answer */
};
static const uint64_t WALL_LIMIT_NS = UINT64_C(300000000000);

void keep_debug_init(struct keep_debug *k)
{
	*k = (struct keep_debug){ .left_count = 0 };
	pthread_mutex_init(&k->lock, NULL);
}

void keep_debug_deinit(struct keep_debug *k)
{
	pthread_mutex_destroy(&k->lock);
}

/* 0 if the child has ended or must be ended. */
static int wait_for_end(struct sandbox *s, int stop_fd)
{
	uint64_t end_ns = clock_monotonic_ns() + WALL_LIMIT_NS;
	struct pollfd waited[] = {
		{ .fd = s->result_fd, .events = POLLIN },
		{ .fd = stop_fd, .events = POLLIN },
	};

	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		int ready;

		if (now_ns >= end_ns)
			return -EAGAIN;
		ready = poll(waited, ARRAY_SIZE(waited), LOOK_MS);
		if (!ready && sandbox_idle_looks(s) >= IDLE_END)
			return -ETIMEDOUT;
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (waited[1].revents)
			return -ECANCELED;
		if (ready > 0 && sandbox_receive(s) && sandbox_is_gone(s))
			return 0;
		waited[0].fd = s->result_fd;
	}
}

/* Forgets the children that are gone by now. Returns whether one more may be left behind. */
static bool keep_debug_has_room(struct keep_debug *k)
{
	unsigned int left = 0;

	pthread_mutex_lock(&k->lock);
	for (unsigned int i = 0; i < k->left_count; i++)
		if (!sandbox_reap(&k->left[i]))
			k->left[left++] = k->left[i];
	k->left_count = left;
	pthread_mutex_unlock(&k->lock);
	return left < KEEP_DEBUG_LEFT;
}

/* A child whose file does not answer cannot be ended before it does. */
static void keep_debug_end_early(struct keep_debug *k, struct sandbox *s)
{
	if (sandbox_kill(s))
		return;
	pthread_mutex_lock(&k->lock);
	/* Another thread, about to end, may have taken the room. */
	if (k->left_count < KEEP_DEBUG_LEFT)
		k->left[k->left_count++] = *s;
	pthread_mutex_unlock(&k->lock);
}

static int keep_debug_judge(enum sandbox_outcome outcome, int error)
{
	switch (outcome) {
	case SANDBOX_OK:
		return 0;
	case SANDBOX_BAD_INPUT:
	case SANDBOX_NO_SPACE:
		return error;
	case SANDBOX_LIMIT:
		return -E2BIG;
	case SANDBOX_INTERRUPTED:
		return -EAGAIN;
	case SANDBOX_CRASH:
		break;
	}
	return -EBADMSG;
}

int keep_debug_in_sandbox(void *context, int elf_fd, int output_fd, int stop_fd)
{
	struct sandbox_result result = { 0 };
	struct keep_debug *k = context;
	enum sandbox_outcome outcome;
	struct sandbox s;
	int err;

	if (!keep_debug_has_room(k))
		return -ETIMEDOUT;
	if (sandbox_start(elf_fd, output_fd, &limits, &s))
		return -EAGAIN;
	err = wait_for_end(&s, stop_fd);
	if (err) {
		keep_debug_end_early(k, &s);
		return err;
	}
	outcome = sandbox_finish(&s, &result);
	return keep_debug_judge(outcome, result.error);
}
