/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/notify.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

void notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	autoclose int fd = -1;

	if (length < 2 || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* If nobody listens, there is nobody to report that to. */
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

void notify_reloading(void)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)(clock_monotonic_ns() / 1000));
	notify_send(state);
}

uint64_t notify_watchdog_ns(void)
{
	const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long us;
	char *end;

	if (!text || !isdigit((unsigned char)*text) || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	errno = 0;
	us = strtoull(text, &end, 10);
	return errno || *end || us > UINT64_MAX / 1000 ? 0 : us * 1000;
}
