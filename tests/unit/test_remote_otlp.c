/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP receivers: their requests, the meaning of their answers, and the choice of protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "proto/otlp_profiles.pb-c.h"
#include "proto/rpc_status.pb-c.h"
#include "tests/unit/remote_fixture.h"

enum { H2_DATA = 0, ANSWER_BYTES = 512 };

/* What a server answers, and the request it received. */
struct call {
	const char *status; /* of HTTP: "200 OK"; of gRPC: "0" */
	const char *content_type; /* NULL = the protocol's */
	const char *header; /* one more HTTP header, with its line end */
	const char *details; /* grpc-status-details-bin */
	uint8_t body[ANSWER_BYTES]; /* message without gRPC frame */
	size_t body_size;
	bool compressed; /* compress the message of the gRPC answer */
	unsigned int hung_up; /* connections closed without an answer */
	struct fault_request request;
};

/* ---- answers -------------------------------------------------------------------------------- */
static void put_partial(struct call *call, int64_t rejected, const char *message)
{
	Otlp__ExportProfilesPartialSuccess partial = OTLP__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;
	Otlp__ExportProfilesServiceResponse response = OTLP__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;

	partial.rejected_profiles = rejected;
	partial.error_message = (char *)message;
	response.partial_success = &partial;
	call->body_size = otlp__export_profiles_service_response__pack(&response, call->body);
}

enum { NO_RETRY_INFO = -1, NO_DELAY = -2 };

static size_t pack_status(const char *message, int64_t delay_s, uint8_t *bytes)
{
	Rpc__Duration delay = RPC__DURATION__INIT;
	Rpc__RetryInfo info = RPC__RETRY_INFO__INIT;
	Rpc__Any any = RPC__ANY__INIT, *details = &any;
	Rpc__Status status = RPC__STATUS__INIT;
	uint8_t packed[64];

	delay.seconds = delay_s;
	delay.nanos = 500000000;
	info.retry_delay = delay_s == NO_DELAY ? NULL : &delay;
	any.type_url = (char *)"x/google.rpc.RetryInfo";
	any.value.data = packed;
	any.value.len = rpc__retry_info__pack(&info, packed);
	status.message = (char *)message;
	status.n_details = delay_s != NO_RETRY_INFO;
	status.details = &details;
	return rpc__status__pack(&status, bytes);
}

static void base64(const uint8_t *bytes, size_t size, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, held = 0;

	for (size_t i = 0; i < size; i++) {
		bits = bits << 8 | bytes[i];
		for (held += 8; held >= 6; held -= 6)
			*out++ = digits[bits >> (held - 6) & 63];
	}
	if (held)
		*out++ = digits[bits << (6 - held) & 63];
	*out = 0;
}

/* ---- servers -------------------------------------------------------------------------------- */
static void serve_http(struct fault_connection *c)
{
	struct call *call = c->context;
	char head[256];

	if (c->number <= call->hung_up || !fault_read_request(c, &call->request))
		return;
	snprintf(head, sizeof(head),
		"HTTP/1.1 %s\r\nContent-Type: %s\r\n%sContent-Length: %zu\r\n\r\n",
		call->status ? call->status : "200 OK",
		call->content_type ? call->content_type : "application/x-protobuf",
		call->header ? call->header : "", call->body_size);
	fault_text(c, head);
	fault_write(c, call->body, call->body_size);
	fault_wait_for_end(c);
}

static void serve_grpc(struct fault_connection *c)
{
	struct call *call = c->context;
	const struct fault_header head[] = { { ":status", "200" },
		{ "content-type", "application/grpc" } };
	struct fault_header trailers[2];
	uint8_t message[ANSWER_BYTES + 5] = { call->compressed };
	size_t count = 0;
	uint32_t stream;

	if (c->number <= call->hung_up || !fault_h2_read_request(c, &call->request, &stream))
		return;
	message[3] = (uint8_t)(call->body_size >> 8);
	message[4] = (uint8_t)call->body_size;
	memcpy(message + 5, call->body, call->body_size);
	trailers[count++] =
		(struct fault_header){ "grpc-status", call->status ? call->status : "0" };
	if (call->details)
		trailers[count++] =
			(struct fault_header){ "grpc-status-details-bin", call->details };
	fault_h2_headers(c, stream, head, ARRAY_SIZE(head), false);
	fault_h2_frame(c, H2_DATA, 0, stream, message, call->body_size + 5);
	fault_h2_headers(c, stream, trailers, count, true);
	fault_wait_for_end(c);
}

/* ---- sending -------------------------------------------------------------------------------- */
static void open_and_send(
	struct remote_fixture *f, struct call *call, fault_script *script, enum remote_way way)
{
	remote_fixture_init(f, script, call, NULL);
	remote_fixture_put_profile(f);
	remote_fixture_open(f, (struct remote_options){ .type = REMOTE_OTLP, .way = way });
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

static void assert_request(const uint8_t *gzip, size_t size)
{
	autocall(buffer_deinit) struct buffer plain;
	Otlp__ExportProfilesServiceRequest *request;

	buffer_init(&plain, 1 << 20);
	assert_int_equal(gzip_inflate(gzip, size, &plain), 0);
	request = otlp__export_profiles_service_request__unpack(NULL, plain.size, plain.bytes);
	assert_non_null(request);
	assert_int_equal(request->resource_profiles[0]
				 ->scope_profiles[0]
				 ->profiles[0]
				 ->samples[0]
				 ->values[0],
		42);
	otlp__export_profiles_service_request__free_unpacked(request, NULL);
}

/* ---- requests ------------------------------------------------------------------------------- */
static void http_carries_a_compressed_request(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;

	(void)state;
	open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
	assert_verdict(&f, REMOTE_SENT, "200");
	assert_int_equal(
		strncmp(call.request.head, "POST /v1development/profiles HTTP/1.1\r\n", 39), 0);
	assert_non_null(strstr(call.request.head, "\r\nContent-Type: application/x-protobuf\r\n"));
	assert_non_null(strstr(call.request.head, "\r\nContent-Encoding: gzip\r\n"));
	assert_request(call.request.body, call.request.body_size);
	end(&f, &call);
}

static void grpc_carries_a_compressed_message(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;
	const uint8_t *body;

	(void)state;
	open_and_send(&f, &call, serve_grpc, REMOTE_WAY_GRPC);
	assert_verdict(&f, REMOTE_SENT, "grpc_0");
	body = call.request.body;
	assert_int_equal(body[0], 1);
	assert_int_equal(body[3] << 8 | body[4], call.request.body_size - 5);
	assert_request(body + 5, call.request.body_size - 5);
	end(&f, &call);
}

static void a_profile_that_makes_no_sense_is_refused_here(void **state)
{
	struct remote_fixture f;

	(void)state;
	remote_fixture_init(&f, NULL, NULL, NULL);
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_OTLP });
	remote_fixture_send(&f);
	assert_verdict(&f, REMOTE_REFUSED, "invalid");
	remote_fixture_deinit(&f);
}

/* ---- answers over HTTP ---------------------------------------------------------------------- */
static void http_statuses_and_their_verdicts(void **state)
{
	static const struct {
		const char *status;
		enum remote_verdict verdict;
	} cases[] = {
		{ "200 OK", REMOTE_SENT },
		{ "400 Bad Request", REMOTE_REFUSED },
		{ "401 Unauthorized", REMOTE_DENIED },
		{ "403 Forbidden", REMOTE_DENIED },
		{ "404 Not Found", REMOTE_DENIED },
		{ "408 Request Timeout", REMOTE_RETRY },
		{ "413 Too Large", REMOTE_REFUSED },
		{ "425 Too Early", REMOTE_REFUSED },
		{ "429 Too Many Requests", REMOTE_RETRY },
		{ "500 Internal Server Error", REMOTE_REFUSED },
		{ "502 Bad Gateway", REMOTE_AMBIGUOUS },
		{ "503 Service Unavailable", REMOTE_RETRY },
		{ "504 Gateway Timeout", REMOTE_AMBIGUOUS },
		{ "507 Insufficient Storage", REMOTE_REFUSED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct call call = { .status = cases[i].status };
		struct remote_fixture f;
		char code[4];

		snprintf(code, sizeof(code), "%.3s", cases[i].status);
		open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
		assert_verdict(&f, cases[i].verdict, code);
		assert_false(f.result.blurred);
		end(&f, &call);
	}
}

static void an_error_over_http_is_a_status_message(void **state)
{
	struct call call = { .status = "400 Bad Request" };
	struct remote_fixture f;

	(void)state;
	call.body_size = pack_status("no \x01 such\ntable", NO_RETRY_INFO, call.body);
	open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
	assert_verdict(&f, REMOTE_REFUSED, "400");
	assert_string_equal(f.result.message, "no ? such?table");
	end(&f, &call);
	/* An invalid message is ignored. */
	call.body_size = 1;
	call.body[0] = 0xff;
	open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
	assert_verdict(&f, REMOTE_REFUSED, "400");
	assert_string_equal(f.result.message, "");
	end(&f, &call);
}

static void retry_after_is_how_long_to_wait(void **state)
{
	struct call call = { .status = "503 Busy", .header = "Retry-After: 7\r\n" };
	struct remote_fixture f;

	(void)state;
	open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
	assert_verdict(&f, REMOTE_RETRY, "503");
	assert_true(f.result.retry_after_ns == UINT64_C(7000000000));
	end(&f, &call);
}

static void a_page_that_says_200_is_another_server(void **state)
{
	static const char *const types[] = { "text/html", "application/json",
		"application/x-www-form-urlencoded", "application/x-protobus" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct call call = { .content_type = types[i] };
		struct remote_fixture f;

		open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
		assert_verdict(&f, REMOTE_DENIED, "not_otlp");
		end(&f, &call);
	}
}

/* A media type's case does not matter, and parameters may follow it (RFC 9110, 8.3.1). */
static void a_media_type_may_have_parameters(void **state)
{
	static const char *const types[] = { "application/x-protobuf; charset=utf-8",
		"Application/X-Protobuf" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct call call = { .content_type = types[i] };
		struct remote_fixture f;

		open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
		assert_verdict(&f, REMOTE_SENT, "200");
		end(&f, &call);
		call.status = "400 Bad Request";
		call.body_size = pack_status("no", NO_RETRY_INFO, call.body);
		open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
		assert_string_equal(f.result.message, "no");
		end(&f, &call);
	}
}

/* ---- partial success ------------------------------------------------------------------------ */
static void a_partial_rejection_is_a_refusal(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;

	(void)state;
	put_partial(&call, 2, "too old");
	for (int grpc = 0; grpc <= 1; grpc++) {
		open_and_send(&f, &call, grpc ? serve_grpc : serve_http,
			grpc ? REMOTE_WAY_GRPC : REMOTE_WAY_HTTP);
		assert_verdict(&f, REMOTE_REFUSED, "partial");
		assert_string_equal(f.result.message, "2 profiles rejected: too old");
		end(&f, &call);
	}
}

static void servers_answer_compressed_as_they_were_asked(void **state)
{
	autocall(buffer_deinit) struct buffer gzip;
	struct call call = { .compressed = true };
	struct remote_fixture f;

	(void)state;
	buffer_init(&gzip, ANSWER_BYTES);
	put_partial(&call, 1, "too new");
	assert_int_equal(gzip_deflate(call.body, call.body_size, 1, &gzip), 0);
	memcpy(call.body, gzip.bytes, gzip.size);
	call.body_size = gzip.size;
	open_and_send(&f, &call, serve_grpc, REMOTE_WAY_GRPC);
	assert_verdict(&f, REMOTE_REFUSED, "partial");
	assert_string_equal(f.result.message, "1 profiles rejected: too new");
	end(&f, &call);
}

static void a_warning_is_no_refusal(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;

	(void)state;
	put_partial(&call, 0, "send less");
	open_and_send(&f, &call, serve_http, REMOTE_WAY_HTTP);
	assert_verdict(&f, REMOTE_SENT, "200");
	assert_string_equal(f.result.message, "send less");
	end(&f, &call);
}

/* ---- answers over gRPC ---------------------------------------------------------------------- */
static void grpc_statuses_and_their_verdicts(void **state)
{
	static const enum remote_verdict verdicts[] = { REMOTE_SENT, REMOTE_AMBIGUOUS,
		REMOTE_REFUSED, REMOTE_REFUSED, REMOTE_AMBIGUOUS, REMOTE_REFUSED, REMOTE_REFUSED,
		REMOTE_DENIED, REMOTE_REFUSED, REMOTE_REFUSED, REMOTE_RETRY, REMOTE_RETRY,
		REMOTE_DENIED, REMOTE_REFUSED, REMOTE_RETRY, REMOTE_RETRY, REMOTE_DENIED };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		struct remote_fixture f;
		char status[4], code[16];
		struct call call = { .status = status };

		snprintf(status, sizeof(status), "%zu", i);
		snprintf(code, sizeof(code), "grpc_%zu", i);
		open_and_send(&f, &call, serve_grpc, REMOTE_WAY_GRPC);
		assert_verdict(&f, verdicts[i], code);
		assert_false(f.result.blurred);
		end(&f, &call);
	}
}

static void retry_info_is_when_to_come_back(void **state)
{
	char details[128];
	uint8_t bytes[96];
	struct call call = { .status = "8", .details = details };
	struct remote_fixture f;

	(void)state;
	base64(bytes, pack_status("full", 3, bytes), details);
	open_and_send(&f, &call, serve_grpc, REMOTE_WAY_GRPC);
	assert_verdict(&f, REMOTE_RETRY, "grpc_8");
	assert_true(f.result.retry_after_ns == UINT64_C(3500000000));
	end(&f, &call);
	/* The receiver need not name a delay. */
	base64(bytes, pack_status("full", NO_DELAY, bytes), details);
	open_and_send(&f, &call, serve_grpc, REMOTE_WAY_GRPC);
	assert_verdict(&f, REMOTE_RETRY, "grpc_8");
	assert_true(f.result.retry_after_ns == 0);
	end(&f, &call);
	/* Without RetryInfo the request will never fit. */
	base64(bytes, pack_status("full", NO_RETRY_INFO, bytes), details);
	open_and_send(&f, &call, serve_grpc, REMOTE_WAY_GRPC);
	assert_verdict(&f, REMOTE_REFUSED, "grpc_8");
	end(&f, &call);
	snprintf(details, sizeof(details), "%s", "*no base64*");
	open_and_send(&f, &call, serve_grpc, REMOTE_WAY_GRPC);
	assert_verdict(&f, REMOTE_REFUSED, "grpc_8");
	end(&f, &call);
}

/* ---- which protocol ------------------------------------------------------------------------- */
/* Like a receiver at its HTTP port: closes the connection when the preface of HTTP/2 comes. */
static void serve_http_only(struct fault_connection *c)
{
	char preface[3];

	if (c->number == 1) {
		fault_read(c, preface, sizeof(preface));
		fault_reset(c);
		return;
	}
	serve_http(c);
}

static void a_port_for_http_is_found(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;

	(void)state;
	open_and_send(&f, &call, serve_http_only, REMOTE_WAY_ANY);
	assert_verdict(&f, REMOTE_SENT, "200");
	assert_int_equal(fault_server_connections(f.server), 2);
	end(&f, &call);
}

static void a_store_set_to_grpc_uses_nothing_else(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;

	(void)state;
	open_and_send(&f, &call, serve_http_only, REMOTE_WAY_GRPC);
	assert_int_not_equal(f.result.verdict, REMOTE_SENT);
	assert_int_equal(fault_server_connections(f.server), 1);
	end(&f, &call);
}

static void a_server_that_takes_neither_is_asked_twice(void **state)
{
	struct call call = { .hung_up = 9 };
	struct remote_fixture f;

	(void)state;
	open_and_send(&f, &call, serve_grpc, REMOTE_WAY_ANY);
	assert_int_not_equal(f.result.verdict, REMOTE_SENT);
	assert_int_not_equal(f.result.verdict, REMOTE_REFUSED);
	assert_int_equal(fault_server_connections(f.server), 2);
	end(&f, &call);
}

/* After an answer over gRPC, a server that closes the connection is being stopped. */
static void serve_grpc_then_end(struct fault_connection *c)
{
	if (c->number == 1)
		serve_grpc(c);
}

static void a_server_that_took_grpc_is_not_asked_by_http(void **state)
{
	struct call call = { 0 };
	struct remote_fixture f;

	(void)state;
	open_and_send(&f, &call, serve_grpc_then_end, REMOTE_WAY_ANY);
	assert_verdict(&f, REMOTE_SENT, "grpc_0");
	remote_fixture_send(&f);
	assert_int_not_equal(f.result.verdict, REMOTE_SENT);
	assert_int_equal(fault_server_connections(f.server), 2);
	end(&f, &call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(http_carries_a_compressed_request),
		cmocka_unit_test(grpc_carries_a_compressed_message),
		cmocka_unit_test(a_profile_that_makes_no_sense_is_refused_here),
		cmocka_unit_test(http_statuses_and_their_verdicts),
		cmocka_unit_test(an_error_over_http_is_a_status_message),
		cmocka_unit_test(retry_after_is_how_long_to_wait),
		cmocka_unit_test(a_page_that_says_200_is_another_server),
		cmocka_unit_test(a_media_type_may_have_parameters),
		cmocka_unit_test(a_partial_rejection_is_a_refusal),
		cmocka_unit_test(servers_answer_compressed_as_they_were_asked),
		cmocka_unit_test(a_warning_is_no_refusal),
		cmocka_unit_test(grpc_statuses_and_their_verdicts),
		cmocka_unit_test(retry_info_is_when_to_come_back),
		cmocka_unit_test(a_port_for_http_is_found),
		cmocka_unit_test(a_store_set_to_grpc_uses_nothing_else),
		cmocka_unit_test(a_server_that_takes_neither_is_asked_twice),
		cmocka_unit_test(a_server_that_took_grpc_is_not_asked_by_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
