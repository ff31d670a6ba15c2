/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server over real sockets: its answers, and who gets them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/serve_fixture.h"

/* ---- what is there -------------------------------------------------------------------------- */

static void test_figures(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "GET /metrics"), 200);
	assert_string_equal(serve_body(f), "figures\n");
	assert_true(serve_says(f, "Content-Type: text/x-figures"));
	assert_int_equal(serve_ask(f, "GET /status"), 200);
	assert_true(serve_says(f, "Content-Type: application/json"));
	f->metrics_error = -EIO;
	assert_int_equal(serve_ask(f, "GET /metrics"), 500);
}

static void test_health(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	assert_int_equal(serve_ask(f, "GET /-/healthy"), 200);
	assert_int_equal(serve_ask(f, "GET /ready"), 200);
	f->not_ready = true;
	assert_int_equal(serve_ask(f, "GET /-/ready"), 503);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
}

static void test_every_answer_forbids_sniffing_and_caching(void **state)
{
	static const char *const asked[] = { "GET /", "GET /metrics", "GET /nothing", "PUT /" };
	struct serve_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		assert_true(serve_ask(f, asked[i]) > 0);
		assert_true(serve_says(f, "X-Content-Type-Options: nosniff"));
		assert_true(serve_says(f, "Cache-Control: no-store"));
		assert_true(serve_says(f, "Content-Security-Policy: default-src 'none'"));
	}
}

static size_t occurrences(const char *text, const char *wanted)
{
	size_t count = 0;

	while ((text = strstr(text, wanted)) != NULL) {
		text += strlen(wanted);
		count++;
	}
	return count;
}

/* The page is complete and contains the nonce of its header and no other. */
static void check_page(const struct serve_fixture *f, const char *nonce)
{
	static const char begin[] = "<!doctype html>\n", end[] = "</html>\n";
	const char *body = serve_body(f);
	char with_nonce[64], length[64];

	assert_memory_equal(body, begin, strlen(begin));
	assert_true(strlen(body) > 10000);
	assert_string_equal(body + strlen(body) - strlen(end), end);
	snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	assert_true(serve_says(f, length));
	snprintf(with_nonce, sizeof(with_nonce), " nonce=\"%s\">", nonce);
	assert_true(occurrences(body, with_nonce) > 2);
	assert_int_equal(occurrences(body, with_nonce), occurrences(body, " nonce=\""));
	assert_int_equal(occurrences(body, "<script"), occurrences(body, "<script nonce=\""));
	assert_int_equal(occurrences(body, "<style"), occurrences(body, "<style nonce=\""));
}

static void nonce_of(struct serve_fixture *f, char *nonce)
{
	char style[64];
	const char *at;

	assert_int_equal(serve_ask(f, "GET /"), 200);
	assert_true(serve_says(f, "Content-Type: text/html"));
	at = strstr(f->answer, "script-src 'nonce-");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "script-src 'nonce-%32[0-9a-f]'", nonce), 1);
	assert_int_equal(strlen(nonce), 32);
	snprintf(style, sizeof(style), "style-src 'nonce-%s'", nonce);
	assert_true(serve_says(f, style));
	check_page(f, nonce);
}

static void test_page_has_a_nonce_of_its_own_each_time(void **state)
{
	struct serve_fixture *f = *state;
	char first[33], second[33];

	nonce_of(f, first);
	nonce_of(f, second);
	assert_string_not_equal(first, second);
	assert_false(serve_says(f, "{{nonce}}"));
	assert_false(serve_says(f, "unsafe-inline"));
}

static void test_head_has_no_body(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "HEAD /metrics"), 200);
	assert_true(serve_says(f, "Content-Length: 8"));
	assert_string_equal(serve_body(f), "");
}

static void test_two_requests_on_one_connection(void **state)
{
	static const char twice[] = "GET /healthy HTTP/1.1\r\nHost: localhost\r\n\r\n"
				    "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
				    "Connection: close\r\n\r\n";
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask_raw(f, twice), 200);
	assert_non_null(strstr(f->answer, "healthy\nHTTP/1.1 200 OK"));
	assert_true(serve_says(f, "figures"));
}

/* ---- stored profiles ------------------------------------------------------------------------ */

static void test_profiles_of_a_range(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "GET /api/profiles?from=1000&to=2500"), 200);
	assert_int_equal(f->from_ns, 1000000000);
	assert_int_equal(f->to_ns, 2500000000);
	assert_int_equal(serve_ask(f, "GET /api/profiles"), 200);
	assert_int_equal(f->from_ns, 0);
	assert_true(f->to_ns > INT64_MAX - 1000000);
	assert_int_equal(serve_ask(f, "GET /api/profiles?from=-1"), 400);
	assert_int_equal(serve_ask(f, "GET /api/profiles?to=99999999999999999999"), 400);
	assert_int_equal(serve_ask(f, "GET /api/profiles?to="), 400);
	assert_int_equal(f->slices, 0);
	assert_int_equal(serve_ask(f, "GET /api/profiles?slices=96"), 200);
	assert_int_equal(f->slices, 96);
	assert_int_equal(serve_ask(f, "GET /api/profiles?slices=1001"), 400);
}

static void test_latency_of_a_range(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "GET /api/latency?from=1000&to=2500"), 200);
	assert_int_equal(f->from_ms, 1000);
	assert_int_equal(f->to_ms, 2500);
	assert_string_equal(serve_body(f), "{\"windows\":[]}\n");
	assert_non_null(strstr(f->answer, "application/json"));
	assert_int_equal(serve_ask(f, "GET /api/latency"), 200);
	assert_int_equal(f->from_ms, 0);
	assert_int_equal(serve_ask(f, "GET /api/latency?from=x"), 400);
	assert_int_equal(serve_ask(f, "POST /api/latency"), 405);
}

static int file_with(const char *text)
{
	int fd = memfd_create("answer", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void test_merge_of_stored_profiles(void **state)
{
	static const int64_t S = 1000000000;
	struct serve_fixture *f = *state;

	f->merge_fd = file_with("merged");
	assert_int_equal(
		serve_ask(f, "GET /debug/pprof/merge?from=2026-11-24T10:00:00Z&to=1795518000"
			     "&group=shop&container=0123&comm=a%20b"),
		200);
	assert_string_equal(serve_body(f), "merged");
	assert_int_equal(f->merge.from_ns, 1795514400 * S);
	assert_int_equal(f->merge.to_ns, 1795518000 * S);
	assert_string_equal(f->merge_group, "shop");
	assert_string_equal(f->merge_container, "0123");
	assert_string_equal(f->merge_comm, "a b");
	assert_false(f->merge.by_file);
	f->merge_fd = file_with("");
	/* A `+` in a query is a space. */
	assert_int_equal(
		serve_ask(f, "GET /debug/pprof/merge?from=2026-11-24T12:00:00+02:00&to=2026-11-24T"
			     "12:30:00%2B02:00"),
		200);
	assert_int_equal(f->merge.from_ns, 1795514400 * S);
	assert_int_equal(f->merge.to_ns, 1795516200 * S);
	assert_string_equal(f->merge_group, "(all)");
	f->merge_fd = file_with("");
	assert_int_equal(serve_ask(f, "GET /debug/pprof/merge?from=5m"), 200);
	assert_in_range(f->merge.to_ns - f->merge.from_ns, 299 * S, 302 * S);
}

static void test_merge_that_is_refused(void **state)
{
	static const char *const bad[] = { "", "?to=5m", "?from=x", "?from=5m&to=x",
		"?from=5m&to=6m", "?from=5m&to=5m", "?from=2026-11-24", "?from=-1" };
	static const struct {
		int err, status;
	} errors[] = { { -EAGAIN, 429 }, { -ENOENT, 404 }, { -E2BIG, 413 }, { -EMFILE, 500 } };
	struct serve_fixture *f = *state;
	char request[64];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(request, sizeof(request), "GET /debug/pprof/merge%s", bad[i]);
		assert_int_equal(serve_ask(f, request), 400);
	}
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		f->merge_error = errors[i].err;
		assert_int_equal(serve_ask(f, "GET /debug/pprof/merge?from=5m"), errors[i].status);
	}
	f->merge_error = 0;
	f->merge_fd = -1;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/merge?from=5m"), 413);
	assert_int_equal(serve_ask(f, "HEAD /debug/pprof/merge?from=5m"), 405);
	assert_int_equal(serve_ask(f, "POST /debug/pprof/merge?from=5m"), 405);
}

static void test_merge_for_the_page(void **state)
{
	struct serve_fixture *f = *state;

	f->merge_fd = file_with("merged");
	assert_int_equal(serve_ask(f, "GET /api/merged?from=1000&to=2500"), 200);
	assert_true(f->merge.by_file);
	assert_int_equal(f->merge.from_ns, 1000000000);
	assert_int_equal(f->merge.to_ns, 2500000000);
	assert_int_equal(f->merge.slice_ns, 0);
	assert_int_equal(serve_ask(f, "GET /api/merged?from=x"), 400);
	f->merge_fd = file_with("merged");
	assert_int_equal(serve_ask(f, "GET /api/merged?from=1000&to=2500&slice_ms=600000"), 200);
	assert_int_equal(f->merge.slice_ns, 600000000000);
	assert_int_equal(serve_ask(f, "GET /api/merged?slice_ms=604800001"), 400);
}

static void test_profile_file(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "GET /api/profiles/2026-11-21/x.pb.gz"), 200);
	assert_string_equal(f->path, "2026-11-21/x.pb.gz");
	assert_string_equal(serve_body(f), "stored bytes");
	f->file_error = -ENOENT;
	assert_int_equal(serve_ask(f, "GET /api/profiles/..%2Fetc"), 404);
	assert_string_equal(f->path, "../etc");
}

/* ---- profiles on demand --------------------------------------------------------------------- */

static void test_profile_is_answered_later(void **state)
{
	struct serve_fixture *f = *state;

	f->send_soon = true;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile?seconds=5&pid=42&hz=499"), 200);
	assert_int_equal(f->hz, 499);
	assert_int_equal(f->seconds, 5);
	assert_int_equal(f->pid, 42);
	assert_string_equal(serve_body(f), "a profile");
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile"), 200);
	assert_int_equal(f->seconds, 30);
	assert_int_equal(f->pid, 0);
	assert_null(f->cancelled);
}

/* A browser saves a profile, but shows any other answer. */
static void test_only_a_profile_is_saved_as_a_file(void **state)
{
	static const char saved[] =
		"Content-Disposition: attachment; filename=\"profile.pb.gz\"\r\n";
	struct serve_fixture *f = *state;

	f->send_soon = true;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile"), 200);
	assert_true(serve_says(f, saved));
	f->send_status = 500;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile"), 500);
	assert_false(serve_says(f, "Content-Disposition"));
	assert_string_equal(serve_body(f), "a profile");
}

static void test_profile_limits(void **state)
{
	static const char *const bad[] = { "seconds=0", "seconds=301", "seconds=x",
		"seconds=", "seconds=1.5", "pid=0", "pid=-1", "pid=x", "pid=99999999999", "hz=0",
		"hz=x", "hz=1001" };
	struct serve_fixture *f = *state;
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(path, sizeof(path), "GET /debug/pprof/profile?%s", bad[i]);
		assert_int_equal(serve_ask(f, path), 400);
	}
	assert_null(f->reply);
	f->begin_error = -EAGAIN;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile?seconds=300"), 429);
	f->begin_error = -ESRCH;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile?pid=5"), 404);
	assert_string_equal(serve_body(f), "no such process\n");
	assert_int_equal(serve_ask(f, "HEAD /debug/pprof/profile"), 405);
}

static void begin_profile(struct serve_fixture *f, int fd)
{
	static const char request[] =
		"GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n";

	f->stop_at_begin = true;
	assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
	serve_run(f);
	assert_non_null(f->reply);
}

static void expect_cancelled(struct serve_fixture *f, const struct serve_reply *begun)
{
	f->stop_at_cancel = true;
	serve_run(f);
	assert_ptr_equal(f->cancelled, begun);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
}

static void test_reset_cancels_the_profile(void **state)
{
	const struct linger at_once = { .l_onoff = 1 };
	struct serve_fixture *f = *state;
	int fd = serve_connect(f);
	struct serve_reply *begun;

	begin_profile(f, fd);
	begun = f->reply;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(fd);
	expect_cancelled(f, begun);
}

/* Runs the loop until the server has seen what its clients did so far. */
static void let_server_see(struct serve_fixture *f)
{
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
	assert_int_equal(serve_ask(f, "GET /healthy"), 200);
}

/* As `nc -N` and `printf | socat` do. */
static void test_client_that_sends_no_more_gets_its_profile(void **state)
{
	struct serve_fixture *f = *state;
	autoclose int fd = serve_connect(f);
	int timer;

	begin_profile(f, fd);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	let_server_see(f);
	assert_null(f->cancelled);
	assert_int_equal(loop_timer(f->loop, 0, 0, serve_send_reply, f, &timer), 0);
	assert_int_equal(serve_ask_on(f, fd, "", 0), 200);
	assert_string_equal(serve_body(f), "a profile");
}

/* The client may be gone: a client that certainly waits gets its place. */
static void test_client_that_sends_no_more_makes_room(void **state)
{
	struct serve_fixture *f = *state;
	autoclose int first = serve_connect(f), second = serve_connect(f);
	struct serve_reply *begun;

	f->one_place = true;
	begin_profile(f, first);
	begun = f->reply;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile?seconds=300"), 429);
	assert_null(f->cancelled);
	assert_int_equal(shutdown(first, SHUT_WR), 0);
	let_server_see(f);
	begin_profile(f, second);
	assert_ptr_equal(f->cancelled, begun);
	assert_ptr_not_equal(f->reply, begun);
	assert_int_equal(serve_ask_on(f, first, "", 0), 503);
	/* A client that still waits keeps its place. */
	f->cancelled = NULL;
	f->stop_at_begin = false;
	assert_int_equal(serve_ask(f, "GET /debug/pprof/profile?seconds=300"), 429);
	assert_null(f->cancelled);
}

static void test_unix_client_gone_cancels_the_profile(void **state)
{
	struct serve_fixture *f = *state;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char directory[] = "/tmp/test-serve-XXXXXX", address[128];
	struct serve_reply *begun;
	int fd;

	assert_non_null(mkdtemp(directory));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", directory);
	snprintf(address, sizeof(address), "unix:%s", un.sun_path);
	serve_start(f, address, NULL);
	fd = serve_connect_unix(&un);
	begin_profile(f, fd);
	begun = f->reply;
	f->stop_at_cancel = true;
	close(fd);
	serve_run(f);
	assert_ptr_equal(f->cancelled, begun);
	serve_destroy(take(f->serve));
	assert_int_equal(rmdir(directory), 0);
}

static void test_destroy_while_a_profile_is_under_way(void **state)
{
	struct serve_fixture *f = *state;
	autoclose int fd = serve_connect(f);
	struct serve_reply *begun;
	char answer[64] = "";

	begin_profile(f, fd);
	begun = f->reply;
	serve_destroy(take(f->serve));
	assert_ptr_equal(f->cancelled, begun);
	assert_true(read(fd, answer, sizeof(answer) - 1) > 12);
	assert_memory_equal(answer, "HTTP/1.1 503", 12);
}

static void test_pprof_may_ask_for_names(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "GET /debug/pprof/"), 200);
	assert_true(serve_says(f, "profile?seconds=5"));
	assert_int_equal(
		serve_ask_with(f, "POST /debug/pprof/symbol", "Content-Length: 5\r\n\r\n0x123"),
		200);
	assert_string_equal(serve_body(f), "num_symbols: 0\n");
}

/* ---- who may -------------------------------------------------------------------------------- */

static void test_methods(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "POST /status"), 405);
	assert_true(serve_says(f, "Allow: GET, HEAD"));
	assert_int_equal(serve_ask(f, "DELETE /"), 405);
	assert_int_equal(serve_ask(f, "GET /-/reload"), 405);
	assert_true(serve_says(f, "Allow: POST"));
	assert_int_equal(f->reloads, 0);
	assert_int_equal(serve_ask(f, "GET /nothing"), 404);
}

static void test_reload(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(serve_ask(f, "POST /-/reload"), 200);
	assert_int_equal(f->reloads, 1);
	f->reload_error = -EINVAL;
	assert_int_equal(serve_ask(f, "POST /-/reload"), 400);
	assert_string_equal(serve_body(f), "line 3: no such setting\n");
}

static void test_pages_of_others_cannot_reload(void **state)
{
	struct serve_fixture *f = *state;

	assert_int_equal(
		serve_ask_with(f, "POST /-/reload", "Origin: http://evil.example\r\n"), 403);
	assert_int_equal(serve_ask_with(f, "POST /-/reload", "Origin: null\r\n"), 403);
	assert_int_equal(f->reloads, 0);
	assert_int_equal(serve_ask_with(f, "POST /-/reload", "Origin: http://localhost\r\n"), 200);
}

static void test_other_host_names_are_refused_on_loopback(void **state)
{
	static const char request[] =
		"GET /status HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n";
	static const char *const good[] = { "localhost", "LOCALHOST:80", "127.0.0.1:7071",
		"127.9.9.9", "[::1]:7071" };
	static const char *const bad[] = { "evil.example", "localhost.evil.example", "128.0.0.1",
		"127.0.0.1.evil.example", "[::2]", "[::1", "" };
	struct serve_fixture *f = *state;
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		snprintf(text, sizeof(text), request, good[i]);
		assert_int_equal(serve_ask_raw(f, text), 200);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), request, bad[i]);
		assert_int_equal(serve_ask_raw(f, text), 403);
	}
}

/* TEXT must have a length that needs no padding. */
static void encode_base64(const char *text, char *out)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	assert_int_equal(strlen(text) % 3, 0);
	for (; *text; text += 3) {
		unsigned int bits = (unsigned int)text[0] << 16 | (unsigned int)text[1] << 8 |
				    (unsigned int)text[2];

		for (int shift = 18; shift >= 0; shift -= 6)
			*out++ = alphabet[bits >> shift & 63];
	}
	*out = 0;
}

static void test_longest_token(void **state)
{
	struct serve_fixture *f = *state;
	char token[SERVE_TOKEN_BYTES + 1], pair[SERVE_TOKEN_BYTES + 8];
	char encoded[2 * sizeof(pair)], header[3 * sizeof(pair)];

	memset(token, 't', SERVE_TOKEN_BYTES);
	token[SERVE_TOKEN_BYTES] = 0;
	if (geteuid() != 0)
		skip();
	f->client_uid = 65534;
	serve_start(f, "127.0.0.1:0", token);
	snprintf(header, sizeof(header), "Authorization: Bearer %s\r\n", token);
	assert_int_equal(serve_ask_with(f, "GET /", header), 200);
	snprintf(pair, sizeof(pair), "x:%s", token);
	encode_base64(pair, encoded);
	snprintf(header, sizeof(header), "Authorization: Basic %s\r\n", encoded);
	assert_int_equal(serve_ask_with(f, "GET /", header), 200);
}

#define STARTED(name) cmocka_unit_test_setup_teardown(name, serve_setup_started, serve_teardown)
#define UNSTARTED(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STARTED(test_figures),
		STARTED(test_health),
		STARTED(test_every_answer_forbids_sniffing_and_caching),
		STARTED(test_page_has_a_nonce_of_its_own_each_time),
		STARTED(test_head_has_no_body),
		STARTED(test_two_requests_on_one_connection),
		STARTED(test_profiles_of_a_range),
		STARTED(test_latency_of_a_range),
		STARTED(test_merge_of_stored_profiles),
		STARTED(test_merge_that_is_refused),
		STARTED(test_merge_for_the_page),
		STARTED(test_profile_file),
		STARTED(test_profile_is_answered_later),
		STARTED(test_only_a_profile_is_saved_as_a_file),
		STARTED(test_profile_limits),
		STARTED(test_reset_cancels_the_profile),
		UNSTARTED(test_unix_client_gone_cancels_the_profile),
		STARTED(test_client_that_sends_no_more_gets_its_profile),
		STARTED(test_client_that_sends_no_more_makes_room),
		STARTED(test_destroy_while_a_profile_is_under_way),
		STARTED(test_pprof_may_ask_for_names),
		STARTED(test_methods),
		STARTED(test_reload),
		STARTED(test_pages_of_others_cannot_reload),
		STARTED(test_other_host_names_are_refused_on_loopback),
		UNSTARTED(test_longest_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
