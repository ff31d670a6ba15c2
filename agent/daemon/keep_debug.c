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
		if (ready > 0 && sandbox_receive(s))
			return 0;
	}
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
		sandbox_kill(&s);
		return err;
	}
	outcome = sandbox_finish(&s, &result);
	return keep_debug_judge(outcome, result.error);
}
