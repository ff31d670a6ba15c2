/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/keep_debug.h"

#include <errno.h>
#include <poll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbolizer/sandbox/sandbox.h"

/* It copies in small pieces at the lowest priority, which takes little memory but much time. */
static const struct sandbox_limits limits = {
	.task = SANDBOX_KEEP_DEBUG,
	.memory_bytes = 512UL << 20, /* address space: mostly libraries */
	.cpu_seconds = 60,
	.output_bytes = KEEP_DEBUG_MAX_BYTES,
};
enum { LOOK_MS = 1000 };
static const uint64_t WALL_LIMIT_NS = UINT64_C(300000000000);

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
		ready = poll(waited, ARRAY_SIZE(waited), (int)((end_ns - now_ns) / 1000000) + 1);
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (waited[1].revents)
			return -ECANCELED;
		if (ready > 0 && sandbox_receive(s) && sandbox_is_gone(s))
			return 0;
		waited[0].fd = s->result_fd;
	}
}

/*
 * A child whose file does not answer cannot be ended before it does. Uploads wait for that, but not
 * the end of the agent.
 */
static void end_early(struct sandbox *s, int stop_fd)
{
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };

	while (!sandbox_kill(s) && poll(&stop, 1, LOOK_MS) <= 0)
		;
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
	enum sandbox_outcome outcome;
	struct sandbox s;
	int err;

	(void)context;
	if (sandbox_start(elf_fd, output_fd, &limits, &s))
		return -EAGAIN;
	err = wait_for_end(&s, stop_fd);
	if (err) {
		end_early(&s, stop_fd);
		return err;
	}
	outcome = sandbox_finish(&s, &result);
	return keep_debug_judge(outcome, result.error);
}
