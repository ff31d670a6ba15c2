/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/window_clock.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Later than any clock will be set: about the year 4147. */
static const time_t NEVER_S = (time_t)1 << 36;

uint64_t window_clock_left_ns(uint64_t real_ns, uint64_t length_ns)
{
	uint64_t left = length_ns - real_ns % length_ns;

	return left < length_ns / 10 ? left + length_ns : left;
}

/* The timer never expires: it exists to be cancelled by a jump (timerfd_create(2)). */
static int arm(int fd)
{
	const struct itimerspec never = { .it_value.tv_sec = NEVER_S };

	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL)
		       ? -errno
		       : 0;
}

int window_clock_watch(int *ret_fd)
{
	autoclose int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	int err = fd < 0 ? -errno : arm(fd);

	if (err)
		return err;
	*ret_fd = take_fd(&fd);
	return 0;
}

int window_clock_again(int fd)
{
	uint64_t ignored;

	/* Fails with ECANCELED after a jump, which clears the readiness. */
	if (read(fd, &ignored, sizeof(ignored)) < 0 && errno != ECANCELED && errno != EAGAIN)
		return -errno;
	return arm(fd);
}
