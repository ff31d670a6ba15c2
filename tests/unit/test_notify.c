/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd receives, on a socket of the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/daemon/notify.h"
#include "base/clock.h"

struct fixture {
	char directory[64], path[108];
	int fd;
};

/* Listens on PATH; the first byte of an abstract name is written `@`. */
static int listen_on(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(un.sun_path, path, length);
	if (*path == '@')
		un.sun_path[0] = 0;
	assert_int_equal(bind(fd, (struct sockaddr *)&un,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
		0);
	return fd;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->directory, sizeof(f->directory), "/tmp/test-notify-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	snprintf(f->path, sizeof(f->path), "%s/s", f->directory);
	f->fd = listen_on(f->path);
	setenv("NOTIFY_SOCKET", f->path, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	close(f->fd);
	unlink(f->path);
	rmdir(f->directory);
	free(f);
	return 0;
}

/* send() returns when the datagram is in the receiver's queue. */
static const char *heard(int fd)
{
	static char text[256];
	ssize_t got = recv(fd, text, sizeof(text) - 1, 0);

	text[got > 0 ? got : 0] = 0;
	return text;
}

static void each_state_is_one_datagram(void **state)
{
	struct fixture *f = *state;

	notify_send("READY=1");
	notify_send("STOPPING=1");
	assert_string_equal(heard(f->fd), "READY=1");
	assert_string_equal(heard(f->fd), "STOPPING=1");
	assert_string_equal(heard(f->fd), "");
}

static void abstract_sockets(void **state)
{
	char name[64];
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "@fathom-test-notify-%d", getpid());
	fd = listen_on(name);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_send("READY=1");
	assert_string_equal(heard(fd), "READY=1");
	close(fd);
}

/* systemd wants the time of the reload on its monotonic clock. */
static void a_reload_sends_the_monotonic_time(void **state)
{
	struct fixture *f = *state;
	unsigned long long us = 0, before = clock_monotonic_ns() / 1000;

	notify_reloading();
	assert_int_equal(sscanf(heard(f->fd), "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
	assert_true(us >= before && us <= clock_monotonic_ns() / 1000);
}

static void without_a_listener_nothing_happens(void **state)
{
	struct fixture *f = *state;
	char name[200];

	unsetenv("NOTIFY_SOCKET");
	notify_send("READY=1");
	setenv("NOTIFY_SOCKET", "", 1);
	notify_send("READY=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_send("READY=1");
	setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
	notify_send("READY=1");
	memset(name, 'a', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	setenv("NOTIFY_SOCKET", name, 1);
	notify_send("READY=1");
	assert_string_equal(heard(f->fd), "");
	assert_int_equal(errno, EAGAIN);
}

static void the_watchdog_is_for_one_process(void **state)
{
	char pid[32];

	(void)state;
	assert_true(notify_watchdog_ns() == 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_true(notify_watchdog_ns() == UINT64_C(30000000000));
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_true(notify_watchdog_ns() == UINT64_C(30000000000));
	setenv("WATCHDOG_PID", "1", 1);
	assert_true(notify_watchdog_ns() == 0);
}

static void invalid_watchdog_times(void **state)
{
	static const char *const bad[] = { "", "x", "-1", "0", "1x", "99999999999999999999999" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("WATCHDOG_USEC", bad[i], 1);
		assert_true(notify_watchdog_ns() == 0);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_state_is_one_datagram),
		CASE(abstract_sockets),
		CASE(a_reload_sends_the_monotonic_time),
		CASE(without_a_listener_nothing_happens),
		CASE(the_watchdog_is_for_one_process),
		CASE(invalid_watchdog_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
