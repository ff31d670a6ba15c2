/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles (https://opentelemetry.io/docs/specs/otlp/). The newer way is
 * ProfilesService/Export over gRPC; if the address does not support gRPC, the same request goes to
 * /v1development/profiles over HTTP. The user may restrict it to one of them.
 *
 * OTLP defines which answers may be retried and forbids retrying all others: an internal error here
 * means that the payload is bad. Wrong credentials or addresses are not the payload's fault,
 * though: it waits, as with the other protocols.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/server/export/remote/otlp.h"
#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/utf8.h"
#include "proto/otlp_profiles.pb-c.h"
#include "proto/rpc_status.pb-c.h"

enum {
	/* As for pprof: level 6 takes more than twice the time to save a tenth. */
	GZIP_LEVEL = 1,
	RESPONSE_BYTES = 64 << 10, /* uncompressed */
	GRPC_OK = 0,
	GRPC_UNKNOWN = 2,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_INTERNAL = 13,
};

static const int64_t LONGEST_DELAY_S = 24 * 3600;
static const uint64_t SECOND_NS = 1000000000;

/* 4318 is registered for OTLP over HTTP, 4317 for gRPC. */
static bool is_http_port(const char *url)
{
	static const char port[] = ":4318";
	const char *host = strstr(url, "://"), *end;

	if (!host)
		return false;
	end = host + 3 + strcspn(host + 3, "/");
	return (size_t)(end - host) > strlen(port) &&
	       !memcmp(end - strlen(port), port, strlen(port));
}

/* With REMOTE_WAY_ANY the old way is the second choice. */
static bool by_http(const struct remote *remote)
{
	if (remote->way == REMOTE_WAY_ANY)
		return is_http_port(remote->url) != remote->old_way;
	return remote->way == REMOTE_WAY_HTTP;
}

/* ---- requests ------------------------------------------------------------------------------ */
static int set_url(struct request *request, const char *base, const char *path)
{
	int length = snprintf(request->url, sizeof(request->url), "%s%s", base, path);

	return (size_t)length < sizeof(request->url) ? 0 : -E2BIG;
}

static int otlp_build_grpc(const struct buffer *gzip, struct buffer *body)
{
	uint8_t *room;
	int err = grpc_body(body, gzip->size, &room);

	if (err)
		return err;
	memcpy(room, gzip->bytes, gzip->size);
	body->bytes[0] = 1; /* compressed */
	return 0;
}

static int compress(const struct payload *payload, struct buffer *gzip)
{
	autocall(buffer_deinit) struct buffer plain;
	int err;

	buffer_init(&plain, REMOTE_MESSAGE_BYTES);
	err = otlp_encode(payload, &plain);
	return err ? err : gzip_deflate(plain.bytes, plain.size, GZIP_LEVEL, gzip);
}

static int otlp_build(struct remote *remote, const struct payload *payload, struct request *request)
{
	autocall(buffer_deinit) struct buffer gzip;
	int err;

	buffer_init(&gzip, REMOTE_MESSAGE_BYTES);
	request->gzip = true;
	if (by_http(remote)) {
		request->content_type = "application/x-protobuf";
		err = set_url(request, remote->url, "/v1development/profiles");
		return err ? err : compress(payload, &remote->body);
	}
	err = grpc_request(remote,
		"opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
		request);
	if (!err)
		err = compress(payload, &gzip);
	return err ? err : otlp_build_grpc(&gzip, &remote->body);
}

/* ---- google.rpc.Status --------------------------------------------------------------------- */
static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes up to the first byte outside the alphabet: padding is optional. */
static size_t base64_decode(const char *text, uint8_t *bytes, size_t size)
{
	uint32_t bits = 0, held = 0;
	size_t used = 0;
	int digit;

	for (; (digit = base64_digit(*text)) >= 0 && used < size; text++) {
		bits = bits << 6 | (uint32_t)digit;
		held += 6;
		if (held < 8)
			continue;
		held -= 8;
		bytes[used++] = (uint8_t)(bits >> held);
	}
	return used;
}

static void free_status(Rpc__Status **status)
{
	if (*status)
		rpc__status__free_unpacked(*status, NULL);
}

static Rpc__Status *read_status(const struct answer *answer)
{
	uint8_t bytes[sizeof(answer->grpc_details)];
	size_t size;

	if (answer->grpc_status < 0)
		return rpc__status__unpack(NULL, answer->kept_bytes, (uint8_t *)answer->kept);
	size = base64_decode(answer->grpc_details, bytes, sizeof(bytes));
	return size ? rpc__status__unpack(NULL, size, bytes) : NULL;
}

/* True if the server says when to retry. */
static bool read_retry_info(const Rpc__Any *detail, uint64_t *ret_delay_ns)
{
	static const char type[] = "/google.rpc.RetryInfo";
	size_t length = strlen(detail->type_url);
	Rpc__RetryInfo *info;
	int64_t seconds = 0, nanos = 0;

	if (length < strlen(type) || strcmp(detail->type_url + length - strlen(type), type))
		return false;
	info = rpc__retry_info__unpack(NULL, detail->value.len, detail->value.data);
	if (!info)
		return false;
	if (info->retry_delay) {
		seconds = MAX(MIN(info->retry_delay->seconds, LONGEST_DELAY_S), (int64_t)0);
		nanos = MAX(MIN(info->retry_delay->nanos, 999999999), 0);
	}
	rpc__retry_info__free_unpacked(info, NULL);
	*ret_delay_ns = (uint64_t)seconds * SECOND_NS + (uint64_t)nanos;
	return true;
}

static bool may_retry(const Rpc__Status *status, struct remote_result *result)
{
	uint64_t delay_ns;

	for (size_t i = 0; status && i < status->n_details; i++) {
		if (!read_retry_info(status->details[i], &delay_ns))
			continue;
		result->retry_after_ns = MAX(result->retry_after_ns, delay_ns);
		return true;
	}
	return false;
}

static void set_message(struct remote_result *result, const char *text)
{
	snprintf(result->message, sizeof(result->message), "%s", text);
	utf8_clean(result->message, strlen(result->message));
}

/* ---- what was taken ------------------------------------------------------------------------ */
/* A partly rejected profile was partly accepted: sending it again would duplicate that part. */
static void read_partial_success(struct cursor message, struct remote_result *result)
{
	Otlp__ExportProfilesServiceResponse *response;
	const Otlp__ExportProfilesPartialSuccess *partial;
	size_t size = cursor_left(&message);

	response = otlp__export_profiles_service_response__unpack(
		NULL, size, cursor_bytes(&message, size));
	if (!response)
		return;
	partial = response->partial_success;
	if (partial && partial->rejected_profiles > 0)
		verdict_set(result, REMOTE_REFUSED, "partial", "%lld profiles rejected: %s",
			(long long)partial->rejected_profiles, partial->error_message);
	else if (partial)
		set_message(result, partial->error_message);
	otlp__export_profiles_service_response__free_unpacked(response, NULL);
}

static void read_grpc_response(const struct answer *answer, struct remote_result *result)
{
	autocall(buffer_deinit) struct buffer plain;
	struct cursor message;
	bool compressed;
	size_t size;

	buffer_init(&plain, RESPONSE_BYTES);
	if (!grpc_read_message(answer, &compressed, &message))
		return;
	if (!compressed) {
		read_partial_success(message, result);
		return;
	}
	/* Servers compress the answer if the request was compressed. */
	size = cursor_left(&message);
	if (!gzip_inflate(cursor_bytes(&message, size), size, &plain))
		read_partial_success(cursor_over(plain.bytes, plain.size), result);
}

/* ---- judging ------------------------------------------------------------------------------- */
/* A server of the one protocol cannot read the other: nothing arrived. */
static bool was_hung_up(const struct outcome *o, const struct remote_result *result)
{
	if (o->answer->http_status || result->verdict == REMOTE_DENIED)
		return false;
	switch (o->code) {
	case CURLE_HTTP2:
	case CURLE_UNSUPPORTED_PROTOCOL: /* taken for HTTP/0.9 */
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		return true;
	default:
		return false;
	}
}

static bool otlp_judge_grpc(
	struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	autocall(free_status) Rpc__Status *status = NULL;
	bool other_way = grpc_judge(remote, o, result);

	switch (o->answer->grpc_status) {
	case -1:
		return other_way || (!remote->new_way_works && was_hung_up(o, result));
	case GRPC_OK:
		read_grpc_response(o->answer, result);
		return other_way;
	case GRPC_UNKNOWN:
	case GRPC_INTERNAL:
		result->verdict = REMOTE_REFUSED;
		break;
	case GRPC_OUT_OF_RANGE:
		result->verdict = REMOTE_RETRY;
		break;
	default:
		break;
	}
	result->blurred = false;
	status = read_status(o->answer);
	/* Either overloaded or too large for ever: a server that wants it again says when. */
	if (!may_retry(status, result) && o->answer->grpc_status == GRPC_RESOURCE_EXHAUSTED)
		result->verdict = REMOTE_REFUSED;
	return other_way;
}

static bool is_protobuf(const struct answer *answer)
{
	return !strncasecmp(answer->content_type, "application/x-protobuf", 22);
}

static void otlp_judge_http_error(const struct answer *answer, struct remote_result *result)
{
	autocall(free_status) Rpc__Status *status =
		is_protobuf(answer) ? read_status(answer) : NULL;

	if (is_protobuf(answer))
		set_message(result, status ? status->message : "");
	may_retry(status, result);
	result->blurred = false;
	/* OTLP does not list 408: HTTP defines it as an incomplete request (RFC 9110, 15.5.9). */
	switch (answer->http_status) {
	case 408:
	case 429:
	case 502:
	case 503:
	case 504:
		break;
	default:
		if (result->verdict == REMOTE_RETRY)
			result->verdict = REMOTE_REFUSED;
	}
}

static bool otlp_judge_http(
	struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	const struct answer *answer = o->answer;

	if (!verdict_answer(o, result))
		return !remote->old_way_works && was_hung_up(o, result);
	remote->old_way_works = true;
	if (!verdict_is_success(answer->http_status))
		otlp_judge_http_error(answer, result);
	else if (!is_protobuf(answer))
		verdict_set(result, REMOTE_DENIED, "not_otlp",
			"status %ld, but the answer is %s: is this the address of an OTLP "
			"receiver?",
			answer->http_status,
			*answer->content_type ? answer->content_type : "without a type");
	else
		read_partial_success(cursor_over(answer->kept, answer->kept_bytes), result);
	return answer->http_status == 404 || answer->http_status == 405;
}

static bool otlp_judge(struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	bool other_way = by_http(remote) ? otlp_judge_http(remote, o, result)
					 : otlp_judge_grpc(remote, o, result);

	return other_way && remote->way == REMOTE_WAY_ANY;
}

const struct protocol remote_otlp = {
	.server = "an OTLP receiver", .build = otlp_build, .judge = otlp_judge
};
