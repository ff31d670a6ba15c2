/* SPDX-License-Identifier: Apache-2.0 */
/* Parca over gRPC: statuses in headers and trailers, and servers that do not speak gRPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/parca_profilestore.pb-c.h"
#include "tests/unit/certificates.h"
#include "tests/unit/remote_fixture.h"

enum { H2_DATA = 0, H2_RST_STREAM = 3, H2_GOAWAY = 7, H2_END_STREAM = 1 };

/* What a script answers, and the request it received. */
struct call {
	const char *status, *message; /* trailers; NULL = none */
	const char *pushback;
	const char *content_type; /* NULL: application/grpc */
	const char *http_status; /* NULL: 200 */
	bool at_once; /* status in the only header block */
	bool early; /* answers before the whole body has arrived */
	bool apart; /* resets only after the client has read the answer */
	bool reset; /* resets the stream after the status */
	bool die; /* closes the connection instead of sending trailers */
	struct fault_request request;
};

static size_t add(struct fault_header *headers, size_t count, const char *name, const char *value)
{
	if (!value)
		return count;
	headers[count] = (struct fault_header){ name, value };
	return count + 1;
}

static size_t add_status(const struct call *call, struct fault_header *headers, size_t count)
{
	count = add(headers, count, "grpc-status", call->status);
	count = add(headers, count, "grpc-message", call->message);
	return add(headers, count, "grpc-retry-pushback-ms", call->pushback);
}

static void serve(struct fault_connection *c)
{
	static const uint8_t empty[5], no_error[4], internal_error[4] = { 0, 0, 0, 2 };
	struct call *call = c->context;
	struct fault_header headers[8];
	uint32_t stream;
	size_t count;

	if (call->early ? !fault_h2_read_window(c, &stream)
			: !fault_h2_read_request(c, &call->request, &stream))
		return;
	count = add(headers, 0, ":status", call->http_status ? call->http_status : "200");
	count = add(headers, count, "content-type",
		call->content_type ? call->content_type : "application/grpc");
	if (call->at_once) {
		count = add_status(call, headers, count);
		fault_h2_headers(c, stream, headers, count, call->status != NULL);
	} else {
		fault_h2_headers(c, stream, headers, count, false);
		fault_h2_frame(c, H2_DATA, 0, stream, empty, sizeof(empty));
		if (call->die)
			return;
		count = add_status(call, headers, 0);
		if (count)
			fault_h2_headers(c, stream, headers, count, true);
		else
			fault_h2_frame(c, H2_DATA, H2_END_STREAM, stream, NULL, 0);
	}
	if (call->apart)
		fault_h2_ping(c);
	if (call->reset)
		fault_h2_frame(
			c, H2_RST_STREAM, 0, stream, call->status ? no_error : internal_error, 4);
	fault_wait_for_end(c);
}

/* Sends good answers, as many as the client wants on one connection. */
static void serve_many(struct fault_connection *c)
{
	static const struct fault_header head[] = { { ":status", "200" },
		{ "content-type", "application/grpc" }, { "grpc-status", "0" } };
	struct fault_request request;
	uint32_t stream;

	while (fault_h2_read_request(c, &request, &stream)) {
		free(request.body);
		fault_h2_headers(c, stream, head, ARRAY_SIZE(head), true);
	}
	free(request.body);
}

static void send_one(struct remote_fixture *f, struct call *call)
{
	remote_fixture_init(f, serve, call, NULL);
	remote_fixture_open(f, (struct remote_options){ .type = REMOTE_PARCA });
	remote_fixture_send(f);
}

static void end(struct remote_fixture *f, struct call *call)
{
	remote_fixture_deinit(f);
	free(call->request.body);
	call->request = (struct fault_request){ 0 };
}

static void assert_verdict(
	const struct remote_fixture *f, enum remote_verdict verdict, const char *code)
{
	if (f->result.verdict != verdict || strcmp(f->result.code, code))
		fail_msg("verdict %d, code %s: %s", f->result.verdict, f->result.code,
			f->result.message);
}

static void write_raw_carries_labels_and_profile(void **state)
{
	struct call call = { .status = "0" };
	struct remote_fixture f;
	Parca__Profilestore__V1alpha1__WriteRawRequest *write;
	const uint8_t *body;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_SENT, "grpc_0");
	body = call.request.body;
	assert_int_equal(body[0], 0);
	assert_int_equal(body[3] << 8 | body[4], call.request.body_size - 5);
	write = parca__profilestore__v1alpha1__write_raw_request__unpack(
		NULL, call.request.body_size - 5, body + 5);
	assert_non_null(write);
	assert_true(write->normalized);
	assert_int_equal(write->n_series, 1);
	assert_int_equal(write->series[0]->labels->n_labels, 3);
	assert_string_equal(write->series[0]->labels->labels[1]->value, "shop");
	assert_memory_equal(write->series[0]->samples[0]->raw_profile.data, "PROFILE", 7);
	parca__profilestore__v1alpha1__write_raw_request__free_unpacked(write, NULL);
	end(&f, &call);
}

static void statuses_and_their_verdicts(void **state)
{
	static const struct {
		const char *status, *message;
		enum remote_verdict verdict;
		bool blurred;
	} cases[] = {
		{ "0", "", REMOTE_SENT, false },
		{ "1", "", REMOTE_AMBIGUOUS, false },
		{ "2", "", REMOTE_RETRY, true },
		{ "3", "", REMOTE_REFUSED, false },
		{ "4", "", REMOTE_AMBIGUOUS, false },
		{ "5", "", REMOTE_REFUSED, false },
		{ "7", "", REMOTE_DENIED, false },
		{ "8", "too many", REMOTE_RETRY, false },
		{ "8", "grpc: received message larger than max (5 vs. 4)", REMOTE_REFUSED, false },
		{ "9", "", REMOTE_REFUSED, false },
		{ "10", "", REMOTE_RETRY, false },
		{ "11", "", REMOTE_REFUSED, false },
		{ "13", "", REMOTE_RETRY, true },
		{ "14", "", REMOTE_RETRY, false },
		{ "15", "", REMOTE_RETRY, true },
		{ "16", "", REMOTE_DENIED, false },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		size_t at = i % ARRAY_SIZE(cases);
		struct call call = { .status = cases[at].status,
			.message = cases[at].message,
			.at_once = i >= ARRAY_SIZE(cases) };
		struct remote_fixture f;
		char code[16];

		snprintf(code, sizeof(code), "grpc_%s", cases[at].status);
		send_one(&f, &call);
		assert_verdict(&f, cases[at].verdict, code);
		assert_int_equal(f.result.blurred, cases[at].blurred);
		end(&f, &call);
	}
}

static void a_message_is_decoded_and_printable(void **state)
{
	struct call call = { .status = "3", .message = "missing %22__name__%22%0A%zz %E2%82%AC%" };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_REFUSED, "grpc_3");
	assert_string_equal(f.result.message, "missing \"__name__\"?%zz \xe2\x82\xac%");
	end(&f, &call);
}

static void send_large(struct remote_fixture *f, struct call *call)
{
	enum { BIG = 4 << 20 };
	void *room;

	remote_fixture_init(f, serve, call, NULL);
	buffer_deinit(&f->payload.pprof);
	buffer_init(&f->payload.pprof, BIG);
	room = buffer_room(&f->payload.pprof, BIG);
	assert_non_null(room);
	memset(room, 'x', BIG);
	f->payload.pprof.size = BIG;
	remote_fixture_open(f, (struct remote_options){ .type = REMOTE_PARCA });
	remote_fixture_send(f);
}

/* Parca answers a message that is too large with the status, then resets the stream. */
static void a_status_counts_whatever_becomes_of_the_stream(void **state)
{
	struct call call = { .status = "3",
		.message = "early",
		.at_once = true,
		.early = true,
		.apart = true,
		.reset = true };
	struct remote_fixture f;

	(void)state;
	send_large(&f, &call);
	assert_verdict(&f, REMOTE_REFUSED, "grpc_3");
	assert_string_equal(f.result.message, "early");
	end(&f, &call);
}

/* If both arrive in one piece, libcurl 7.88 shows only the reset: such retries must be bounded. */
static void a_status_in_one_piece_with_its_reset_is_at_least_blurred(void **state)
{
	struct call call = {
		.status = "3", .message = "early", .at_once = true, .early = true, .reset = true
	};
	struct remote_fixture f;

	(void)state;
	send_large(&f, &call);
	assert_true(f.result.verdict == REMOTE_REFUSED ||
		    (f.result.verdict == REMOTE_RETRY && f.result.blurred));
	end(&f, &call);
}

static void a_reset_without_a_status_is_ambiguous(void **state)
{
	struct call call = { .at_once = true, .reset = true };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_AMBIGUOUS, "http2");
	end(&f, &call);
}

static void a_server_that_dies_is_ambiguous(void **state)
{
	struct call call = { .die = true };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_int_equal(f.result.verdict, REMOTE_AMBIGUOUS);
	end(&f, &call);
}

static void an_end_without_a_status_is_ambiguous(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_AMBIGUOUS, "no_status");
	end(&f, &call);
}

static void a_status_that_is_no_number_is_unknown(void **state)
{
	struct call call = { .status = "ok" };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_RETRY, "grpc_2");
	end(&f, &call);
}

static void pushback_is_how_long_to_wait(void **state)
{
	struct call call = { .status = "14", .pushback = "2500" };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_RETRY, "grpc_14");
	assert_true(f.result.retry_after_ns == UINT64_C(2500000000));
	end(&f, &call);
}

static void a_proxy_in_between_speaks_http(void **state)
{
	struct call call = { .http_status = "503", .content_type = "text/html" };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_RETRY, "503");
	end(&f, &call);
}

static void a_page_that_says_200_is_another_server(void **state)
{
	struct call call = { .content_type = "text/html" };
	struct remote_fixture f;

	(void)state;
	send_one(&f, &call);
	assert_verdict(&f, REMOTE_DENIED, "not_grpc");
	end(&f, &call);
}

/* ---- the JSON gateway ------------------------------------------------------------------------ */
static void http1_only(struct fault_connection *c)
{
	struct fault_request *request = c->context;
	char preface[24];

	if (c->number == 1 && !c->ssl) {
		fault_read(c, preface, sizeof(preface));
		fault_text(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
			      "Content-Length: 0\r\n\r\n");
		fault_wait_for_end(c);
		return;
	}
	free(request->body);
	if (fault_read_request(c, request) &&
		strncmp(request->head, "POST /api/profiles/writeraw ", 28))
		fault_text(c, "HTTP/1.1 415 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	else
		fault_text(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			      "Connection: close\r\nContent-Length: 2\r\n\r\n{}");
}

static const char json[] = "{\"normalized\":true,\"series\":[{\"labels\":{\"labels\":["
			   "{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
			   "{\"name\":\"service_name\",\"value\":\"shop\"},"
			   "{\"name\":\"zone\",\"value\":\"a,b=\\\"c\\\"\"}"
			   "]},\"samples\":[{\"rawProfile\":\"UFJPRklMRQ==\"}]}]}";

static void assert_json_arrived(const struct fault_request *request)
{
	assert_int_equal(request->body_size, sizeof(json) - 1);
	assert_memory_equal(request->body, json, sizeof(json) - 1);
}

static void a_server_of_http1_gets_json(void **state)
{
	struct fault_request request = { 0 };
	struct remote_fixture f;

	(void)state;
	remote_fixture_init(&f, http1_only, &request, NULL);
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PARCA });
	remote_fixture_send(&f);
	assert_verdict(&f, REMOTE_SENT, "200");
	assert_json_arrived(&request);
	/* The choice of the gateway is remembered. */
	remote_fixture_send(&f);
	assert_int_equal(fault_server_connections(f.server), 3);
	remote_fixture_deinit(&f);
	free(request.body);
}

static void a_tls_server_without_h2_gets_json(void **state)
{
	char directory[] = "/tmp/fathom-test-XXXXXX", ca[64], certificate[64], key[64];
	struct authority *authority = authority_create("ours");
	struct fault_request request = { 0 };
	struct remote_fixture f;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(ca, sizeof(ca), "%s/ca", directory);
	snprintf(certificate, sizeof(certificate), "%s/crt", directory);
	snprintf(key, sizeof(key), "%s/key", directory);
	authority_write(authority, ca);
	authority_sign(authority, &(struct leaf){ "localhost", -60, 3600, certificate, key });
	remote_fixture_init(
		&f, http1_only, &request, &(struct fault_tls){ certificate, key, NULL, false });
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PARCA, .ca_file = ca });
	remote_fixture_send(&f);
	assert_verdict(&f, REMOTE_SENT, "200");
	assert_json_arrived(&request);
	remote_fixture_deinit(&f);
	free(request.body);
	authority_destroy(authority);
	unlink(ca);
	unlink(certificate);
	unlink(key);
	rmdir(directory);
}

static void grpc_over_tls_keeps_its_connection(void **state)
{
	char directory[] = "/tmp/fathom-test-XXXXXX", ca[64], certificate[64], key[64];
	struct authority *authority = authority_create("ours");
	struct remote_fixture f;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(ca, sizeof(ca), "%s/ca", directory);
	snprintf(certificate, sizeof(certificate), "%s/crt", directory);
	snprintf(key, sizeof(key), "%s/key", directory);
	authority_write(authority, ca);
	authority_sign(authority, &(struct leaf){ "localhost", -60, 3600, certificate, key });
	remote_fixture_init(
		&f, serve_many, NULL, &(struct fault_tls){ certificate, key, NULL, true });
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PARCA, .ca_file = ca });
	for (int i = 0; i < 4; i++) {
		remote_fixture_send(&f);
		assert_verdict(&f, REMOTE_SENT, "grpc_0");
	}
	assert_int_equal(fault_server_connections(f.server), 1);
	remote_fixture_deinit(&f);
	authority_destroy(authority);
	unlink(ca);
	unlink(certificate);
	unlink(key);
	rmdir(directory);
}

static void one_payload_after_another(void **state)
{
	struct remote_fixture f;

	(void)state;
	remote_fixture_init(&f, serve_many, NULL, NULL);
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PARCA });
	for (int i = 0; i < 4; i++) {
		remote_fixture_send(&f);
		assert_verdict(&f, REMOTE_SENT, "grpc_0");
	}
	remote_fixture_deinit(&f);
}

/* A proxy that answers CONNECT, then is the server on the same connection. */
static void tunnel(struct fault_connection *c)
{
	struct fault_request *request = c->context;

	if (!fault_read_request(c, request) || !fault_text(c, "HTTP/1.1 200 Connected\r\n\r\n"))
		return;
	serve_many(c);
}

static void a_proxy_gives_a_tunnel_and_sees_no_token(void **state)
{
	struct fault_request request = { 0 };
	struct remote_fixture f;
	char proxy[64];

	(void)state;
	remote_fixture_init(&f, tunnel, &request, NULL);
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", fault_server_port(f.server));
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PARCA,
					.address = "http://parca.invalid:7070",
					.bearer_token = "geheim",
					.proxy_url = proxy });
	remote_fixture_send(&f);
	assert_verdict(&f, REMOTE_SENT, "grpc_0");
	remote_fixture_deinit(&f);
	assert_true(!strncmp(request.head, "CONNECT parca.invalid:7070 HTTP/1.1\r\n", 37));
	assert_null(strstr(request.head, "geheim"));
	free(request.body);
}

static void no_tunnel(struct fault_connection *c)
{
	struct fault_request request = { 0 };

	if (fault_read_request(c, &request))
		fault_text(c, c->context);
	free(request.body);
}

/* The server got no request: it is not an older one, and nothing can have arrived. */
static void a_proxy_gives_no_tunnel(void **state)
{
	static const struct {
		const char *answer, *address, *code;
		enum remote_verdict verdict;
	} cases[] = {
		{ "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "http://parca.invalid:7070",
			"proxy_407", REMOTE_DENIED },
		{ "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "https://parca.invalid:7070",
			"proxy_404", REMOTE_DENIED },
		{ "HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n", "https://parca.invalid:7070",
			"proxy_502", REMOTE_RETRY },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct remote_fixture f;
		char proxy[64];

		remote_fixture_init(&f, no_tunnel, (void *)(uintptr_t)cases[i].answer, NULL);
		snprintf(proxy, sizeof(proxy), "http://u:geheim@127.0.0.1:%d",
			fault_server_port(f.server));
		remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PARCA,
						.address = cases[i].address,
						.proxy_url = proxy });
		remote_fixture_send(&f);
		assert_verdict(&f, cases[i].verdict, cases[i].code);
		assert_non_null(strstr(f.result.message, "proxy"));
		assert_null(strstr(f.result.message, "geheim"));
		assert_int_equal(fault_server_connections(f.server), 1);
		remote_fixture_deinit(&f);
	}
}

static void nobody_listens(void **state)
{
	struct remote_fixture f;

	(void)state;
	remote_fixture_init(&f, NULL, NULL, NULL);
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PARCA });
	remote_fixture_send(&f);
	assert_verdict(&f, REMOTE_RETRY, "connect");
	remote_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_raw_carries_labels_and_profile),
		cmocka_unit_test(statuses_and_their_verdicts),
		cmocka_unit_test(a_message_is_decoded_and_printable),
		cmocka_unit_test(a_status_counts_whatever_becomes_of_the_stream),
		cmocka_unit_test(a_status_in_one_piece_with_its_reset_is_at_least_blurred),
		cmocka_unit_test(a_reset_without_a_status_is_ambiguous),
		cmocka_unit_test(a_server_that_dies_is_ambiguous),
		cmocka_unit_test(an_end_without_a_status_is_ambiguous),
		cmocka_unit_test(a_status_that_is_no_number_is_unknown),
		cmocka_unit_test(pushback_is_how_long_to_wait),
		cmocka_unit_test(a_proxy_in_between_speaks_http),
		cmocka_unit_test(a_page_that_says_200_is_another_server),
		cmocka_unit_test(a_server_of_http1_gets_json),
		cmocka_unit_test(a_tls_server_without_h2_gets_json),
		cmocka_unit_test(grpc_over_tls_keeps_its_connection),
		cmocka_unit_test(one_payload_after_another),
		cmocka_unit_test(a_proxy_gives_a_tunnel_and_sees_no_token),
		cmocka_unit_test(a_proxy_gives_no_tunnel),
		cmocka_unit_test(nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
