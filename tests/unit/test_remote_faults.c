/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of servers and networks, and the verdict on each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "tests/unit/remote_fixture.h"

/* Reads one request and answers with the text in `context`. */
static void answer(struct fault_connection *c)
{
	struct fault_request request;

	if (fault_read_request(c, &request))
		fault_text(c, c->context);
	free(request.body);
}

/* One payload through the Pyroscope exporter. */
static void send_one(struct remote_fixture *f, fault_script *script, void *context,
	struct remote_options options)
{
	remote_fixture_init(f, script, context, NULL);
	options.type = REMOTE_PYROSCOPE;
	remote_fixture_open(f, options);
	remote_fixture_send(f);
}

static void assert_verdict(
	const struct remote_fixture *f, enum remote_verdict verdict, const char *code)
{
	if (f->result.verdict != verdict || strcmp(f->result.code, code))
		fail_msg("verdict %d, code %s: %s", f->result.verdict, f->result.code,
			f->result.message);
}

/* ---- statuses ------------------------------------------------------------------------------- */
static void statuses_and_their_verdicts(void **state)
{
	static const struct {
		int status;
		enum remote_verdict verdict;
		bool blurred;
	} cases[] = {
		{ 200, REMOTE_SENT, false },
		{ 400, REMOTE_REFUSED, false },
		{ 401, REMOTE_DENIED, false },
		{ 403, REMOTE_DENIED, false },
		{ 408, REMOTE_RETRY, false },
		{ 413, REMOTE_REFUSED, false },
		{ 415, REMOTE_REFUSED, false },
		{ 422, REMOTE_REFUSED, false },
		{ 429, REMOTE_RETRY, false },
		{ 500, REMOTE_RETRY, true },
		{ 502, REMOTE_AMBIGUOUS, false },
		{ 503, REMOTE_RETRY, false },
		{ 504, REMOTE_AMBIGUOUS, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct remote_fixture f;
		char text[256], code[8];

		snprintf(text, sizeof(text),
			"HTTP/1.1 %d X\r\nContent-Type: application/proto\r\n"
			"Content-Length: 0\r\n\r\n",
			cases[i].status);
		snprintf(code, sizeof(code), "%d", cases[i].status);
		send_one(&f, answer, text, (struct remote_options){ 0 });
		assert_verdict(&f, cases[i].verdict, code);
		assert_int_equal(f.result.blurred, cases[i].blurred);
		/* An answer without a text has a message, too. */
		assert_true(!*f.result.message == (cases[i].verdict == REMOTE_SENT));
		remote_fixture_deinit(&f);
	}
}

static void the_servers_words_are_in_the_message(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
			"Content-Length: 60\r\n\r\n"
			"{\"code\":\"invalid_argument\",\"message\" : \"label \\\"a\\\"\\n "
			"x\x01\xff\"}",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_REFUSED, "400");
	assert_string_equal(f.result.message, "label \"a\"  x??");
	remote_fixture_deinit(&f);
}

static void retry_after_in_seconds(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 429 Too Many\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_RETRY, "429");
	assert_true(f.result.retry_after_ns == UINT64_C(17000000000));
	remote_fixture_deinit(&f);
}

static void retry_after_for_ever_is_a_day(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 503 X\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_RETRY, "503");
	assert_true(f.result.retry_after_ns == UINT64_C(86400000000000));
	remote_fixture_deinit(&f);
}

/* Such a date comes from a server with a slow clock, or in an answer that was delayed. */
static void retry_after_a_date_that_has_passed_is_at_once(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 503 X\r\nRetry-After: Sat, 21 Nov 2020 12:00:00 GMT\r\n"
			"Content-Length: 0\r\n\r\n",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_RETRY, "503");
	assert_true(f.result.retry_after_ns == 0);
	remote_fixture_deinit(&f);
}

static void retry_after_a_date_by_the_servers_clock(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 503 X\r\nRetry-After: Sat, 21 Nov 2020 12:00:07 GMT\r\n"
			"Date: Sat, 21 Nov 2020 12:00:00 GMT\r\nContent-Length: 0\r\n\r\n",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_RETRY, "503");
	assert_true(f.result.retry_after_ns == UINT64_C(7000000000));
	remote_fixture_deinit(&f);
}

static void first_404_then_422(struct fault_connection *c)
{
	struct fault_request request;

	if (fault_read_request(c, &request))
		fault_text(c, c->number == 1
				      ? "HTTP/1.1 404 X\r\nConnection: close\r\nContent-Length: "
					"0\r\n\r\n"
				      : "HTTP/1.1 422 X\r\nContent-Length: 7\r\n\r\ncorrupt");
	free(request.body);
}

static void ingest_422_is_retried_but_bounded(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, first_404_then_422, NULL, (struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_RETRY, "422");
	assert_true(f.result.blurred);
	assert_string_equal(f.result.message, "corrupt");
	remote_fixture_deinit(&f);
}

/* ---- no server --------------------------------------------------------------------------------
 */
static void nobody_listens(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, NULL, NULL, (struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_RETRY, "connect");
	remote_fixture_deinit(&f);
}

static void an_unknown_host_name(void **state)
{
	struct remote_fixture f;

	(void)state;
	/* RFC 6761: .invalid never exists. */
	send_one(&f, NULL, NULL,
		(struct remote_options){ .address = "http://pyroscope.invalid:4040" });
	assert_verdict(&f, REMOTE_RETRY, "dns");
	remote_fixture_deinit(&f);
}

static void an_unreachable_proxy(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, NULL, NULL,
		(struct remote_options){ .address = "http://pyroscope.invalid:4040",
			.proxy_url = "http://proxy.invalid:1" });
	assert_verdict(&f, REMOTE_RETRY, "dns");
	remote_fixture_deinit(&f);
}

/* ---- connections that break -------------------------------------------------------------------
 */
static void read_a_bit_and_reset(struct fault_connection *c)
{
	char bytes[64];

	fault_read(c, bytes, sizeof(bytes));
	fault_reset(c);
}

/* The body exceeds the sockets' buffers, so it cannot all be in flight. */
static void a_reset_within_the_body_means_it_did_not_arrive(void **state)
{
	enum { BIG = 16 << 20 };
	struct remote_fixture f;
	void *room;

	(void)state;
	remote_fixture_init(&f, read_a_bit_and_reset, NULL, NULL);
	buffer_deinit(&f.payload.pprof);
	buffer_init(&f.payload.pprof, BIG);
	room = buffer_room(&f.payload.pprof, BIG);
	assert_non_null(room);
	memset(room, 'x', BIG);
	f.payload.pprof.size = BIG;
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PYROSCOPE });
	remote_fixture_send(&f);
	assert_verdict(&f, REMOTE_RETRY, "reset");
	remote_fixture_deinit(&f);
}

static void read_all_and_reset(struct fault_connection *c)
{
	struct fault_request request;

	fault_read_request(c, &request);
	free(request.body);
	fault_reset(c);
}

static void a_reset_after_the_body_is_ambiguous(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, read_all_and_reset, NULL, (struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "reset");
	remote_fixture_deinit(&f);
}

/* Servers close connections that are idle between two windows. */
static void a_kept_connection_that_was_closed_costs_nothing(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: "
			"0\r\n"
			"\r\n",
		(struct remote_options){ 0 });
	for (int i = 0; i < 5; i++) {
		assert_verdict(&f, REMOTE_SENT, "200");
		remote_fixture_send(&f);
	}
	assert_int_equal(fault_server_connections(f.server), 6);
	remote_fixture_deinit(&f);
}

static void read_all_and_close(struct fault_connection *c)
{
	struct fault_request request;

	fault_read_request(c, &request);
	free(request.body);
	shutdown(c->fd, SHUT_WR);
	fault_wait_for_end(c);
}

static void half_closed_without_an_answer_is_ambiguous(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, read_all_and_close, NULL, (struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "reset");
	remote_fixture_deinit(&f);
}

static void an_answer_cut_short_is_ambiguous(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n"
			"Content-Length: 100\r\n\r\nabc",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "reset");
	remote_fixture_deinit(&f);
}

static void a_refusal_cut_short_is_a_refusal(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer, (void *)"HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\nnever valid",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_REFUSED, "400");
	assert_string_equal(f.result.message, "never valid");
	remote_fixture_deinit(&f);
}

static void never_answer(struct fault_connection *c)
{
	struct fault_request request;

	fault_read_request(c, &request);
	free(request.body);
	fault_wait_for_end(c);
}

static void silence_after_the_body_is_ambiguous(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, never_answer, NULL, (struct remote_options){ .timeout_ns = 300000000 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "timeout");
	remote_fixture_deinit(&f);
}

/* Sends one byte, then pauses as long as the client waits for the next. */
static void one_byte_a_second(struct fault_connection *c)
{
	struct timeval second = { .tv_sec = 1 };
	const char *text = "HTTP/1.1 200 OK\r\n";
	struct fault_request request;
	char byte;

	fault_read_request(c, &request);
	free(request.body);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	for (; *text && fault_write(c, text, 1); text++) {
		if (recv(c->fd, &byte, 1, 0) == 0)
			return;
	}
}

static void one_byte_a_second_ends_at_the_timeout(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, one_byte_a_second, NULL, (struct remote_options){ .timeout_ns = 500000000 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "timeout");
	remote_fixture_deinit(&f);
}

/* ---- invalid answers -------------------------------------------------------------------- */
static void junk_instead_of_a_head(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer, (void *)"\x15\x03\x01 what is this\r\n\r\n",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "junk");
	remote_fixture_deinit(&f);
}

static void a_page_that_says_200_is_another_server(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, answer,
		(void *)"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n"
			"<html>",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_DENIED, "not_pyroscope");
	remote_fixture_deinit(&f);
}

static void write_for_ever(struct fault_connection *c)
{
	static const char piece[16384];
	struct fault_request request;

	if (fault_read_request(c, &request))
		fault_text(c, c->context);
	free(request.body);
	while (fault_write(c, piece, sizeof(piece)))
		;
}

static void an_endless_body_is_truncated(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, write_for_ever,
		(void *)"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n\r\n",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "overlong");
	remote_fixture_deinit(&f);
}

static void an_endless_refusal_is_a_refusal(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, write_for_ever, (void *)"HTTP/1.1 400 Bad\r\n\r\n",
		(struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_REFUSED, "400");
	remote_fixture_deinit(&f);
}

static void header_for_ever(struct fault_connection *c)
{
	struct fault_request request;

	if (fault_read_request(c, &request))
		fault_text(c, "HTTP/1.1 200 OK\r\n");
	free(request.body);
	while (fault_text(c, "X-More: of the same, and more of it, and still more of it\r\n"))
		;
}

static void endless_headers_are_truncated(void **state)
{
	struct remote_fixture f;

	(void)state;
	send_one(&f, header_for_ever, NULL, (struct remote_options){ 0 });
	assert_verdict(&f, REMOTE_AMBIGUOUS, "overlong");
	remote_fixture_deinit(&f);
}

/* ---- redirects ---------------------------------------------------------------------------------
 */
static void a_redirect_is_not_followed(void **state)
{
	struct fault_server *other = fault_server_start(answer, (void *)"", NULL);
	struct remote_fixture f;
	char text[256], host[64];

	(void)state;
	snprintf(host, sizeof(host), "http://127.0.0.1:%d", fault_server_port(other));
	snprintf(text, sizeof(text),
		"HTTP/1.1 307 X\r\nLocation: %s/login?session=geheim\r\nContent-Length: 0\r\n\r\n",
		host);
	send_one(&f, answer, text, (struct remote_options){ .bearer_token = "token" });
	assert_verdict(&f, REMOTE_DENIED, "307");
	assert_non_null(strstr(f.result.message, host));
	assert_null(strstr(f.result.message, "geheim"));
	assert_int_equal(fault_server_connections(other), 0);
	remote_fixture_deinit(&f);
	fault_server_stop(other);
}

/* ---- ends
 * ---------------------------------------------------------------------------------------- */
static void a_destroyed_store_delivers_no_verdict(void **state)
{
	struct remote_fixture f;

	(void)state;
	remote_fixture_init(&f, never_answer, NULL, NULL);
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PYROSCOPE });
	remote_fixture_begin(&f);
	while (!fault_server_connections(f.server))
		remotes_run(f.remotes, 10);
	remote_destroy(f.remote);
	f.remote = NULL;
	assert_int_equal(remotes_run(f.remotes, 0), 0);
	assert_int_equal(f.verdicts, 0);
	remote_fixture_deinit(&f);
}

static void destroy_in_verdict(void *context, const struct remote_result *result)
{
	struct remote_fixture *f = context;

	f->result = *result;
	f->verdicts++;
	remote_destroy(f->remote);
	f->remote = NULL;
}

static void a_verdict_may_destroy_its_store(void **state)
{
	struct remote_fixture f;

	(void)state;
	remote_fixture_init(&f, NULL, NULL, NULL);
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PYROSCOPE });
	assert_int_equal(remote_send(f.remote, &f.payload, destroy_in_verdict, &f), 0);
	remote_fixture_wait(&f);
	assert_verdict(&f, REMOTE_RETRY, "connect");
	remote_fixture_deinit(&f);
}

static void a_slow_store_does_not_hold_up_another(void **state)
{
	struct remote_fixture slow, quick;

	(void)state;
	remote_fixture_init(&slow, never_answer, NULL, NULL);
	remote_fixture_init(&quick, answer,
		(void *)"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: "
			"0\r\n"
			"\r\n",
		NULL);
	remotes_destroy(quick.remotes);
	quick.remotes = slow.remotes;
	remote_fixture_open(&slow, (struct remote_options){ .type = REMOTE_PYROSCOPE });
	remote_fixture_open(&quick, (struct remote_options){ .type = REMOTE_PYROSCOPE });
	remote_fixture_begin(&slow);
	remote_fixture_send(&quick);
	assert_verdict(&quick, REMOTE_SENT, "200");
	assert_int_equal(slow.verdicts, 0);
	remote_destroy(slow.remote);
	slow.remote = NULL;
	remote_destroy(quick.remote);
	quick.remote = NULL;
	quick.remotes = NULL;
	remote_fixture_deinit(&slow);
	remote_fixture_deinit(&quick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses_and_their_verdicts),
		cmocka_unit_test(the_servers_words_are_in_the_message),
		cmocka_unit_test(retry_after_in_seconds),
		cmocka_unit_test(retry_after_for_ever_is_a_day),
		cmocka_unit_test(retry_after_a_date_that_has_passed_is_at_once),
		cmocka_unit_test(retry_after_a_date_by_the_servers_clock),
		cmocka_unit_test(ingest_422_is_retried_but_bounded),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(an_unknown_host_name),
		cmocka_unit_test(an_unreachable_proxy),
		cmocka_unit_test(a_reset_within_the_body_means_it_did_not_arrive),
		cmocka_unit_test(a_reset_after_the_body_is_ambiguous),
		cmocka_unit_test(a_kept_connection_that_was_closed_costs_nothing),
		cmocka_unit_test(half_closed_without_an_answer_is_ambiguous),
		cmocka_unit_test(an_answer_cut_short_is_ambiguous),
		cmocka_unit_test(a_refusal_cut_short_is_a_refusal),
		cmocka_unit_test(silence_after_the_body_is_ambiguous),
		cmocka_unit_test(one_byte_a_second_ends_at_the_timeout),
		cmocka_unit_test(junk_instead_of_a_head),
		cmocka_unit_test(a_page_that_says_200_is_another_server),
		cmocka_unit_test(an_endless_body_is_truncated),
		cmocka_unit_test(an_endless_refusal_is_a_refusal),
		cmocka_unit_test(endless_headers_are_truncated),
		cmocka_unit_test(a_redirect_is_not_followed),
		cmocka_unit_test(a_destroyed_store_delivers_no_verdict),
		cmocka_unit_test(a_verdict_may_destroy_its_store),
		cmocka_unit_test(a_slow_store_does_not_hold_up_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
