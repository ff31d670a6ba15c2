/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server with bad, many and slow clients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/serve_fixture.h"

enum {
	CLIENTS_AT_ONCE = 40, /* less than the backlog of listen() */
	MUCH = 100000,
	TOO_MUCH = 8 << 20,
};

static const uint64_t SOON_NS = 50000000;
static const uint64_t ACCEPT_AGAIN_NS = 1000000000; /* as in the server */
static const char HEALTHY[] =
	"GET /healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/* ---- bad and many clients ------------------------------------------------------------------- */

static void test_bad_requests(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask_raw(f, "GARBAGE\r\n\r\n"), 0);
	assert_int_equal(serve_ask_raw(f, "GET / HTTP/1.1\r\n\r\n"), 400);
	assert_int_equal(serve_ask_raw(f, "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"), 505);
	assert_int_equal(serve_ask_with(f, "POST /-/reload", "Content-Length: -1\r\n"), 400);
	assert_int_equal(
		serve_ask_with(f, "POST /-/reload", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
		400);
	assert_int_equal(f->reloads, 0);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
}

static void test_headers_are_bounded(void **state)
{
	struct serve_fixture *f = *state;
	autofree char *request = malloc(MUCH + 128);
	autoclose int fd = serve_connect(f);
	int length;

	assert_non_null(request);
	length = snprintf(request, 128, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
	memset(request + length, 'a', MUCH);
	assert_int_equal(serve_ask_on(f, fd, request, (size_t)length + MUCH), 431);
}

/* Clients that begin a request and never finish it. */
static void connect_unfinished(struct serve_fixture *f, int *fds)
{
	for (size_t i = 0; i < CLIENTS_AT_ONCE; i++) {
		fds[i] = serve_connect(f);
		assert_int_equal(write(fds[i], "GET", 3), 3);
	}
}

static void close_all(const int *fds)
{
	for (size_t i = 0; i < CLIENTS_AT_ONCE; i++)
		close(fds[i]);
}

/* The server's accept4(): fails with EMFILE; its second call ends the loop. */
static struct {
	bool fails;
	unsigned int calls;
	struct loop *loop;
	uint64_t first_ns, second_ns;
} accepting;

int accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
	if (!accepting.fails)
		return (int)syscall(SYS_accept4, fd, from, size, flags);
	if (++accepting.calls == 1) {
		accepting.first_ns = clock_monotonic_ns();
	} else {
		accepting.second_ns = clock_monotonic_ns();
		accepting.fails = false;
		loop_stop(accepting.loop);
	}
	errno = EMFILE;
	return -1;
}

/* The server must handle EMFILE without a descriptor, too. */
static void test_out_of_descriptors(void **state)
{
	struct serve_fixture *f = *state;
	autoclose int waiting = serve_connect(f);
	struct rlimit before, none;
	int err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	accepting.fails = true;
	accepting.calls = 0;
	accepting.loop = f->loop;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	err = loop_run(f->loop);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(err, 0);
	assert_int_equal(accepting.calls, 2);
	assert_true(accepting.second_ns - accepting.first_ns >= ACCEPT_AGAIN_NS);
	/* The waiting client is served as soon as there is a descriptor. */
	assert_int_equal(serve_ask_on(f, waiting, HEALTHY, strlen(HEALTHY)), 200);
}

static void test_more_clients_than_places(void **state)
{
	struct serve_fixture *f = *state;
	int first[CLIENTS_AT_ONCE], second[CLIENTS_AT_ONCE];

	/*
	 * The server accepts the first clients while it answers: the backlog is too short for all.
	 */
	connect_unfinished(f, first);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	connect_unfinished(f, second);
	/* Clients with unfinished requests make room, the oldest first. */
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	assert_int_equal(serve_ask_on(f, first[0], "", 0), 0);
	close_all(first);
	close_all(second);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
}

static void on_stream(void *context, int fd, uint32_t events)
{
	struct serve_fixture *f = context;
	ssize_t sent = send(fd, f->piece, MIN(f->piece_size, f->to_send), MSG_NOSIGNAL);

	if (sent > 0)
		f->to_send -= (size_t)sent;
	if (!f->to_send || (sent < 0 && errno != EAGAIN) || (events & (EPOLLHUP | EPOLLERR)))
		loop_stop(f->loop);
}

static void test_body_is_bounded(void **state)
{
	struct serve_fixture *f = *state;
	autoclose int fd = serve_connect(f);
	autofree char *piece = malloc(MUCH);
	char head[256];

	assert_non_null(piece);
	memset(piece, 'a', MUCH);
	snprintf(head, sizeof(head),
		"POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
		TOO_MUCH);
	assert_int_equal(write(fd, head, strlen(head)), (ssize_t)strlen(head));
	f->piece = piece;
	f->piece_size = MUCH;
	f->to_send = TOO_MUCH;
	assert_int_equal(loop_add(f->loop, fd, EPOLLOUT, on_stream, f), 0);
	serve_run(f);
	loop_remove(f->loop, fd);
	/* The data in flight does not make it a request. */
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	assert_int_equal(f->reloads, 0);
}

static void test_get_changes_nothing(void **state)
{
	static const char *const paths[] = { "/", "/metrics", "/healthy", "/ready", "/-/healthy",
		"/-/ready", "/status", "/api/profiles", "/api/latency", "/api/profiles/x",
		"/debug/pprof/", "/debug/pprof/symbol", "/-/reload", "/-/reload?method=POST",
		"/-/quit" };
	struct serve_fixture *f = *state;
	char text[128];

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		snprintf(text, sizeof(text), "GET %s", paths[i]);
		assert_true(serve_ask_with(f, text, "X-HTTP-Method-Override: POST\r\n") >= 200);
		snprintf(text, sizeof(text), "HEAD %s", paths[i]);
		assert_true(serve_ask(f, text) >= 200);
	}
	assert_int_equal(f->reloads, 0);
	assert_null(f->reply);
}

/* ---- slow clients --------------------------------------------------------------------------- */

static void test_client_that_says_nothing(void **state)
{
	struct serve_fixture *f = *state;
	autoclose int fd = -1;

	f->limits.request_ns = SOON_NS;
	serve_start(f, "127.0.0.1:0", NULL);
	fd = serve_connect(f);
	/* Returns when the server has closed the connection. */
	assert_int_equal(serve_ask_on(f, fd, "", 0), 0);
	assert_int_equal(f->answer_size, 0);
}

static void send_byte(void *context)
{
	struct serve_fixture *f = context;

	(void)!send(f->slow_fd, "a", 1, MSG_NOSIGNAL);
}

static void test_client_that_sends_a_byte_now_and_then(void **state)
{
	static const char begin[] = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
	struct serve_fixture *f = *state;
	autoclose int fd = -1;
	int timer;

	f->limits.request_ns = SOON_NS;
	serve_start(f, "127.0.0.1:0", NULL);
	f->slow_fd = fd = serve_connect(f);
	/* The deadline is that of the whole request: more bytes do not extend it. */
	assert_int_equal(loop_timer(f->loop, 1000000, 1000000, send_byte, f, &timer), 0);
	assert_int_equal(serve_ask_on(f, fd, begin, strlen(begin)), 0);
	loop_cancel(f->loop, timer);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
}

static void test_idle_connection_is_closed(void **state)
{
	static const char request[] = "GET /healthy HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct serve_fixture *f = *state;
	autoclose int fd = -1;

	f->limits.idle_ns = SOON_NS;
	serve_start(f, "127.0.0.1:0", NULL);
	fd = serve_connect(f);
	assert_int_equal(serve_ask_on(f, fd, request, strlen(request)), 200);
	assert_string_equal(serve_body(f), "healthy\n");
}

static void on_hangup(void *context, int fd, uint32_t events)
{
	struct serve_fixture *f = context;

	(void)fd;
	if (events & (EPOLLHUP | EPOLLRDHUP))
		loop_stop(f->loop);
}

/* A unix socket reports the server's close to the client before it has read everything. */
static void test_client_that_does_not_read_its_answer(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	struct serve_fixture *f = *state;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char directory[] = "/tmp/test-serve-XXXXXX", address[128];
	int fd;

	f->limits.sending_ns = SOON_NS;
	f->metrics_bytes = 3 << 20;
	assert_non_null(mkdtemp(directory));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", directory);
	snprintf(address, sizeof(address), "unix:%s", un.sun_path);
	serve_start(f, address, NULL);
	fd = serve_connect_unix(&un);
	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	assert_int_equal(loop_add(f->loop, fd, EPOLLRDHUP, on_hangup, f), 0);
	serve_run(f);
	loop_remove(f->loop, fd);
	/* Only the beginning of the answer arrives. */
	assert_int_equal(serve_ask_on(f, fd, "", 0), 200);
	assert_true(f->answer_size < f->metrics_bytes / 2);
	close(fd);
	serve_destroy(take(f->serve));
	assert_int_equal(rmdir(directory), 0);
}

/* Those that do not read a large answer do not have a copy each. */
static void test_slow_clients_share_a_large_answer(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
	enum { CLIENTS = 12, AT_ONCE = 4 };
	struct serve_fixture *f = *state;
	int fds[CLIENTS];

	f->metrics_bytes = 8 << 20;
	for (size_t i = 0; i < CLIENTS; i++) {
		fds[i] = serve_connect(f);
		assert_int_equal(write(fds[i], request, strlen(request)), (ssize_t)strlen(request));
		/* Its answer comes after those of the ones before. */
		assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	}
	assert_in_range(f->metrics_made, 1, AT_ONCE);
	for (size_t i = 0; i < CLIENTS; i++)
		close(fds[i]);
	/* Nobody reads it any more: the next one is new. */
	f->metrics_made = 0;
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	f->metrics_bytes = 0;
	assert_int_equal(serve_ask(f, "GET /metrics"), 200);
	assert_int_equal(f->metrics_made, 1);
	assert_string_equal(serve_body(f), "figures\n");
	assert_int_equal(serve_ask(f, "GET /metrics"), 200);
	assert_int_equal(f->metrics_made, 2);
}

static void test_each_reader_gets_all_of_a_shared_answer(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	struct serve_fixture *f = *state;
	autoclose int slow = serve_connect(f);

	f->metrics_bytes = 3 << 19;
	assert_int_equal(write(slow, request, strlen(request)), (ssize_t)strlen(request));
	for (int i = 0; i < 8; i++) {
		assert_int_equal(serve_ask(f, "GET /metrics"), 200);
		assert_int_equal(strlen(serve_body(f)), f->metrics_bytes + strlen("figures\n"));
	}
	assert_int_equal(serve_ask_on(f, slow, "", 0), 200);
	assert_int_equal(strlen(serve_body(f)), f->metrics_bytes + strlen("figures\n"));
}

#define STARTED(name) cmocka_unit_test_setup_teardown(name, serve_setup_started, serve_teardown)
#define UNSTARTED(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STARTED(test_bad_requests),
		STARTED(test_headers_are_bounded),
		STARTED(test_more_clients_than_places),
		STARTED(test_out_of_descriptors),
		STARTED(test_body_is_bounded),
		STARTED(test_get_changes_nothing),
		UNSTARTED(test_client_that_says_nothing),
		UNSTARTED(test_client_that_sends_a_byte_now_and_then),
		UNSTARTED(test_idle_connection_is_closed),
		UNSTARTED(test_client_that_does_not_read_its_answer),
		STARTED(test_slow_clients_share_a_large_answer),
		STARTED(test_each_reader_gets_all_of_a_shared_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
