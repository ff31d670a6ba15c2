/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer, or its absence, means for the queue. Two rules decide doubtful cases. A payload
 * that may have arrived is AMBIGUOUS: servers add up what they receive twice. A server's "internal
 * error" may be about the payload or the server: it is retried, but marked `blurred`, so that the
 * queue bounds the retries.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/utf8.h"

void verdict_set(struct remote_result *result, enum remote_verdict verdict, const char *code,
	const char *format, ...)
{
	va_list args;

	result->verdict = verdict;
	snprintf(result->code, sizeof(result->code), "%s", code);
	va_start(args, format);
	vsnprintf(result->message, sizeof(result->message), format, args);
	va_end(args);
	utf8_clean(result->message, strlen(result->message));
}

/* ---- no answer ----------------------------------------------------------------------------- */
static const char *transport_code(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "dns";
	case CURLE_COULDNT_CONNECT:
		return "connect";
	case CURLE_PROXY:
		return "proxy";
	case CURLE_OPERATION_TIMEDOUT:
		return "timeout";
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_PARTIAL_FILE:
		return "reset";
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return "http2";
	case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9: bytes without a head */
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return "junk";
	case CURLE_SSL_CONNECT_ERROR:
		return "tls";
	default:
		return NULL;
	}
}

/*
 * A server that requires a client certificate sends an alert; with TLS 1.3 it arrives after the
 * handshake, as a read error.
 */
static bool is_certificate(const struct outcome *o)
{
	switch (o->code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_CRL_BADFILE:
	case CURLE_SSL_CIPHER:
		return true;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		return strstr(o->error_text, "alert") != NULL &&
		       strstr(o->error_text, "internal error") == NULL;
	default:
		return false;
	}
}

void verdict_transport(const struct outcome *o, struct remote_result *result)
{
	const char *text = *o->error_text ? o->error_text : curl_easy_strerror(o->code);
	const char *code = transport_code(o->code);
	char number[sizeof(result->code)];

	if (is_certificate(o)) {
		verdict_set(result, REMOTE_DENIED, "certificate", "%s", text);
		return;
	}
	if (o->code == CURLE_SSL_CONNECT_ERROR && strstr(text, "wrong version number")) {
		verdict_set(result, REMOTE_DENIED, "tls",
			"the server does not use TLS on this port: %s", text);
		return;
	}
	if (o->answer->too_long) {
		verdict_set(result, o->body_sent ? REMOTE_AMBIGUOUS : REMOTE_RETRY, "overlong",
			"an endless response (status %ld)", o->answer->http_status);
		return;
	}
	if (!code) {
		snprintf(number, sizeof(number), "curl_%d", (int)o->code);
		code = number;
	}
	verdict_set(result, o->body_sent ? REMOTE_AMBIGUOUS : REMOTE_RETRY, code, "%s", text);
}

/* ---- HTTP ---------------------------------------------------------------------------------- */
static enum remote_verdict of_status(long status)
{
	switch (status) {
	case 408:
	case 425:
	case 429:
		return REMOTE_RETRY;
	case 401:
	case 402:
	case 403:
	case 404:
	case 405:
	case 407:
	case 421:
	case 426:
	case 501:
	case 505:
		return REMOTE_DENIED;
	/* A gateway got no valid answer from the server that it forwarded the request to. */
	case 502:
	case 504:
		return REMOTE_AMBIGUOUS;
	default:
		break;
	}
	if (status >= 200 && status < 300)
		return REMOTE_SENT;
	if (status >= 300 && status < 400)
		return REMOTE_DENIED;
	return status >= 500 || status < 200 ? REMOTE_RETRY : REMOTE_REFUSED;
}

bool verdict_is_success(long http_status)
{
	return http_status >= 200 && http_status < 300;
}

/* A text for an answer without one. */
static const char *in_words(long status)
{
	switch (status) {
	case 401:
		return "the server requires credentials or a tenant ID, or rejects these";
	case 403:
		return "these credentials are not allowed to do that";
	case 404:
	case 405:
		return "there is no such service at this address";
	case 407:
		return "the proxy requires credentials";
	case 408:
	case 425:
	case 429:
		return "the server asks to retry later";
	case 413:
		return "too large for the server";
	case 502:
	case 504:
		return "the gateway got no response from the server";
	case 503:
		return "the server is not available";
	default:
		return verdict_is_success(status) ? "" : "the server gave no reason";
	}
}

bool verdict_proxy(const struct outcome *o, struct remote_result *result)
{
	long status = o->proxy_status;
	char code[sizeof(result->code)];
	bool denied = of_status(status) == REMOTE_DENIED;

	if (o->code == CURLE_OK || status < 300)
		return false;
	snprintf(code, sizeof(code), "proxy_%d", (int)MIN(status, 999));
	verdict_set(result, denied ? REMOTE_DENIED : REMOTE_RETRY, code,
		"the proxy cannot connect to the server: status %ld%s", status,
		status == 407 ? ", it requires credentials (in its URL)" : "");
	return true;
}

void verdict_http(const struct outcome *o, struct remote_result *result)
{
	long status = o->answer->http_status;
	char code[sizeof(result->code)], text[256];

	snprintf(code, sizeof(code), "%ld", status);
	answer_message(o->answer, text, sizeof(text));
	if (!*text)
		snprintf(text, sizeof(text), "%s", in_words(status));
	if (status >= 300 && status < 400)
		snprintf(text, sizeof(text), "a redirect to %s, which is not followed",
			*o->answer->location ? o->answer->location : "another page");
	verdict_set(result, of_status(status), code, "%s", text);
	result->blurred = status == 500;
	if (result->verdict == REMOTE_RETRY)
		result->retry_after_ns = o->retry_after_ns;
}

bool verdict_answer(const struct outcome *o, struct remote_result *result)
{
	long status = o->answer->http_status;
	bool whole = status && (!verdict_is_success(status) || o->code == CURLE_OK);

	if (whole)
		verdict_http(o, result);
	else
		verdict_transport(o, result);
	return whole;
}

/* ---- gRPC ---------------------------------------------------------------------------------- */
/* Codes of gRPC: https://grpc.io/docs/guides/status-codes/ */
enum {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_ABORTED = 10,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

static enum remote_verdict of_grpc(const struct answer *answer)
{
	switch (answer->grpc_status) {
	case GRPC_OK:
		return REMOTE_SENT;
	case GRPC_CANCELLED:
	case GRPC_DEADLINE_EXCEEDED:
		return REMOTE_AMBIGUOUS;
	case GRPC_RESOURCE_EXHAUSTED:
		/* One code for both "not now" and "too large". */
		return strstr(answer->grpc_message, "larger than max") ? REMOTE_REFUSED
								       : REMOTE_RETRY;
	case GRPC_UNKNOWN:
	case GRPC_ABORTED:
	case GRPC_INTERNAL:
	case GRPC_UNAVAILABLE:
	case GRPC_DATA_LOSS:
		return REMOTE_RETRY;
	case GRPC_PERMISSION_DENIED:
	case GRPC_UNAUTHENTICATED:
	case GRPC_UNIMPLEMENTED:
		return REMOTE_DENIED;
	default:
		return REMOTE_REFUSED;
	}
}

void verdict_grpc(const struct outcome *o, struct remote_result *result)
{
	int status = o->answer->grpc_status;
	char code[sizeof(result->code)];

	snprintf(code, sizeof(code), "grpc_%d", status);
	verdict_set(result, of_grpc(o->answer), code, "%s", o->answer->grpc_message);
	result->blurred =
		status == GRPC_UNKNOWN || status == GRPC_INTERNAL || status == GRPC_DATA_LOSS;
	if (result->verdict == REMOTE_RETRY)
		result->retry_after_ns = MAX(o->answer->pushback_ns, o->retry_after_ns);
}
