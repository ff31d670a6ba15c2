/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/cri_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/version.h"

enum { URL_BYTES = 128, CONNECT_TIMEOUT_MS = 5000, HEADER_VALUE_BYTES = 256 };

static const uint64_t MILLISECOND_NS = 1000000;

/* ---- the answer ----------------------------------------------------------------------------- */

/* Copies the value if the line is header NAME. */
static bool cri_call_header(
	const char *line, size_t size, const char *name, char value[HEADER_VALUE_BYTES])
{
	size_t length = strlen(name), from = length + 1;

	if (size <= length || strncasecmp(line, name, length) || line[length] != ':')
		return false;
	while (from < size && line[from] == ' ')
		from++;
	while (size > from && (line[size - 1] == '\r' || line[size - 1] == '\n'))
		size--;
	size = MIN(size - from, (size_t)HEADER_VALUE_BYTES - 1);
	memcpy(value, line + from, size);
	value[size] = 0;
	return true;
}

static size_t cri_call_on_header(char *line, size_t one, size_t size, void *context)
{
	struct cri_call *call = context;
	char value[HEADER_VALUE_BYTES], *end;

	size *= one;
	if (cri_call_header(line, size, "grpc-status", value)) {
		long status = strtol(value, &end, 10);

		call->grpc_status = end != value && !*end && status >= 0 && status <= 16
					    ? (int)status
					    : 2; /* UNKNOWN, as gRPC says of invalid ones */
	} else if (cri_call_header(line, size, "grpc-message", value)) {
		snprintf(call->grpc_message, sizeof(call->grpc_message), "%.*s",
			CRI_MESSAGE_BYTES - 1, value);
		utf8_clean(call->grpc_message, strlen(call->grpc_message));
	}
	return size;
}

static size_t cri_call_on_body(char *bytes, size_t one, size_t size, void *context)
{
	struct cri_call *call = context;

	/* Any other number ends the transfer. */
	return grpc_frames_take(&call->frames, bytes, one * size) ? 0 : one * size;
}

static enum cri_result cri_call_judge_transfer(
	const struct cri_call *call, CURLcode code, char why[CRI_MESSAGE_BYTES])
{
	if (call->frames.error) {
		bool too_large = call->frames.error == -E2BIG;

		snprintf(why, CRI_MESSAGE_BYTES, "%s",
			too_large ? "the answer is too large" : "the answer is no gRPC message");
		return too_large ? CRI_TOO_LARGE : CRI_NONSENSE;
	}
	snprintf(why, CRI_MESSAGE_BYTES, "%.*s", CRI_MESSAGE_BYTES - 1,
		*call->error_text ? call->error_text : curl_easy_strerror(code));
	utf8_clean(why, strlen(why));
	return code == CURLE_OPERATION_TIMEDOUT ? CRI_TIMEOUT : CRI_UNREACHABLE;
}

/* A server that refuses early resets the stream afterwards, which is an error for libcurl. */
enum cri_result cri_call_judge(struct cri_call *call, CURLcode code, char why[CRI_MESSAGE_BYTES])
{
	long http_status = 0;

	if (call->grpc_status > 0) {
		snprintf(why, CRI_MESSAGE_BYTES, "gRPC status %d: %.160s", call->grpc_status,
			call->grpc_message);
		return CRI_REFUSED;
	}
	if (code != CURLE_OK)
		return cri_call_judge_transfer(call, code, why);
	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &http_status);
	if (http_status == 200 && call->grpc_status == 0 && grpc_frames_is_whole(&call->frames))
		return CRI_OK;
	snprintf(why, CRI_MESSAGE_BYTES, "HTTP status %ld, %s", http_status,
		call->grpc_status ? "without a gRPC status" : "with an incomplete message");
	return CRI_NONSENSE;
}

/* ---- the request ---------------------------------------------------------------------------- */

static int cri_call_set_headers(struct cri_call *call)
{
	static const char *const headers[] = { "Content-Type: application/grpc", "TE: trailers",
		"Expect:", "User-Agent: fathom/" FATHOM_VERSION };

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		struct curl_slist *longer = curl_slist_append(call->headers, headers[i]);

		if (!longer)
			return -ENOMEM;
		call->headers = longer;
	}
	return curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK
		       ? 0
		       : -ENOMEM;
}

static int cri_call_set_target(struct cri_call *call, const struct cri_call_options *o)
{
	CURL *easy = call->easy;
	CURLcode code = CURLE_OK;
	char url[URL_BYTES];

	snprintf(url, sizeof(url), "http://localhost/runtime.v1.RuntimeService/%s", o->method);
	code |= curl_easy_setopt(easy, CURLOPT_URL, url);
	code |= curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, o->socket);
	/* What the environment says of proxies is about other machines. */
	code |= curl_easy_setopt(easy, CURLOPT_PROXY, "");
	code |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
	code |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	code |= curl_easy_setopt(
		easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	code |= curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

static int cri_call_set_transfer(struct cri_call *call, const struct cri_call_options *o)
{
	static const char empty_message[GRPC_HEAD_BYTES];
	CURL *easy = call->easy;
	CURLcode code = CURLE_OK;

	code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)GRPC_HEAD_BYTES);
	code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, empty_message);
	code |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(o->timeout_ns / MILLISECOND_NS));
	code |= curl_easy_setopt(
		easy, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)o->bytes_per_second);
	code |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error_text);
	code |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, cri_call_on_header);
	code |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, cri_call_on_body);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	code |= curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

int cri_call_start(struct cri_call *call, const struct cri_call_options *o)
{
	int err;

	*call = (struct cri_call){ .easy = curl_easy_init(), .grpc_status = -1 };
	if (!call->easy)
		return -ENOMEM;
	grpc_frames_init(&call->frames, o->is_stream, o->limit_bytes);
	err = cri_call_set_headers(call);
	if (!err)
		err = cri_call_set_target(call, o);
	if (!err)
		err = cri_call_set_transfer(call, o);
	if (!err && curl_multi_add_handle(o->multi, call->easy) != CURLM_OK)
		err = -ENOMEM;
	if (err)
		cri_call_stop(call);
	else
		call->multi = o->multi;
	return err;
}

void cri_call_stop(struct cri_call *call)
{
	if (!call->easy)
		return;
	if (call->multi)
		curl_multi_remove_handle(call->multi, call->easy);
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	grpc_frames_deinit(&call->frames);
	*call = (struct cri_call){ 0 };
}
