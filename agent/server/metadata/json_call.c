/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/json_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/json_value.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/version.h"

enum {
	CONNECT_TIMEOUT_MS = 5000,
	KEEPALIVE_SECONDS = 30,
	HEADER_BYTES = 64 << 10,
};

static const uint64_t MILLISECOND_NS = 1000000;

/* ---- the answer ----------------------------------------------------------------------------- */

static int json_call_ignore(void *context, const void *bytes, size_t size)
{
	(void)context;
	(void)bytes;
	(void)size;
	return 0;
}

static size_t json_call_on_body(char *bytes, size_t one, size_t size, void *context)
{
	struct json_call *call = context;

	size *= one;
	if (!call->status) {
		curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
		/* A refusal is one object, whatever was asked for. */
		if (call->status != 200)
			json_pieces_init(
				&call->pieces, JSON_PIECES_ITEMS, 0, json_call_ignore, NULL);
	}
	call->over_limit = size > call->left_bytes;
	if (call->over_limit)
		return 0; /* any other number ends the transfer */
	call->left_bytes -= call->left_bytes == UINT64_MAX ? 0 : size;
	if (!json_pieces_take(&call->pieces, bytes, size))
		return size;
	return call->status == 200 ? 0 : size;
}

static enum json_call_result json_call_judge_transfer(
	const struct json_call *call, CURLcode code, char why[CALL_MESSAGE_BYTES])
{
	const int error = call->pieces.error;

	if (call->over_limit || error == -E2BIG) {
		snprintf(why, CALL_MESSAGE_BYTES, "the answer is too large");
		return CALL_TOO_LARGE;
	}
	if (error) {
		snprintf(why, CALL_MESSAGE_BYTES, "%s",
			error == -ENOMEM ? strerror(ENOMEM)
					 : "the answer is not of the expected form");
		return CALL_NONSENSE;
	}
	snprintf(why, CALL_MESSAGE_BYTES, "%.*s", CALL_MESSAGE_BYTES - 1,
		*call->error_text ? call->error_text : curl_easy_strerror(code));
	utf8_clean(why, strlen(why));
	return code == CURLE_OPERATION_TIMEDOUT ? CALL_TIMEOUT : CALL_UNREACHABLE;
}

/* Kubernetes and Docker give the reason in the same place. */
static enum json_call_result json_call_judge_status(
	const struct json_call *call, char why[CALL_MESSAGE_BYTES])
{
	autocall(json_value_free) json_t *answer = NULL;
	const struct buffer *rest = &call->pieces.rest;
	char message[CALL_MESSAGE_BYTES - 64] = "";

	if (rest->size && !json_value_load(rest->bytes, rest->size, &answer))
		json_value_printable(answer, "message", message, sizeof(message));
	snprintf(why, CALL_MESSAGE_BYTES, "HTTP status %ld%s%s", call->status, *message ? ": " : "",
		message);
	return call->status == 410   ? CALL_EXPIRED
	       : call->status == 429 ? CALL_BUSY
	       : call->status >= 400 ? CALL_REFUSED
				     : CALL_NONSENSE;
}

enum json_call_result json_call_judge(
	struct json_call *call, CURLcode code, char why[CALL_MESSAGE_BYTES], uint64_t *ret_retry_s)
{
	curl_off_t retry = 0;

	*ret_retry_s = 0;
	if (code != CURLE_OK)
		return json_call_judge_transfer(call, code, why);
	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
	curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry);
	*ret_retry_s = retry > 0 ? (uint64_t)retry : 0;
	if (call->status != 200)
		return json_call_judge_status(call, why);
	if (json_pieces_is_whole(&call->pieces))
		return CALL_OK;
	snprintf(why, CALL_MESSAGE_BYTES, "the answer is incomplete");
	return CALL_NONSENSE;
}

/* ---- the request ---------------------------------------------------------------------------- */

static void json_call_wipe(struct buffer *line)
{
	if (line->bytes)
		explicit_bzero(line->bytes, line->capacity);
	buffer_deinit(line);
}

static int json_call_add_header(struct json_call *call, const char *name, const char *value)
{
	autocall(json_call_wipe) struct buffer line;
	struct curl_slist *longer = NULL;

	buffer_init(&line, HEADER_BYTES);
	if (!buffer_printf(&line, "%s%s", name, value) && !buffer_append(&line, "", 1))
		longer = curl_slist_append(call->headers, (const char *)line.bytes);
	if (!longer)
		return -ENOMEM;
	call->headers = longer;
	return 0;
}

static int json_call_set_headers(struct json_call *call, const struct json_call_options *o)
{
	int err = json_call_add_header(call, "Accept: ", o->accept);

	if (!err && !o->socket)
		err = json_call_add_header(call, "Authorization: Bearer ", o->token);
	if (!err)
		err = json_call_add_header(call, "User-Agent: ", "fathom/" FATHOM_VERSION);
	if (err)
		return err;
	return curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK
		       ? 0
		       : -ENOMEM;
}

static CURLcode json_call_set_tls(CURL *easy, const struct json_call_options *o)
{
	CURLcode code = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");

	code |= curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	code |= curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	code |= curl_easy_setopt(easy, CURLOPT_CAINFO, o->ca_file);
	/* The file may have been replaced since the last request, as the token. */
	code |= curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	code |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_SECONDS);
	code |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_SECONDS);
	return code;
}

static CURLcode json_call_set_socket(CURL *easy, const struct json_call_options *o)
{
	CURLcode code = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");

	code |= curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, o->socket);
	/* Whoever listens there may be another the next time. */
	code |= curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	return code;
}

static int json_call_set_target(struct json_call *call, const struct json_call_options *o)
{
	CURL *easy = call->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, o->url);

	/* What the environment says of proxies is about other machines. */
	code |= curl_easy_setopt(easy, CURLOPT_PROXY, "");
	code |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	code |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	code |= o->socket ? json_call_set_socket(easy, o) : json_call_set_tls(easy, o);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

static int json_call_set_transfer(struct json_call *call, const struct json_call_options *o)
{
	CURL *easy = call->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);

	code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(o->timeout_ns / MILLISECOND_NS));
	code |= curl_easy_setopt(
		easy, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)o->bytes_per_second);
	code |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error_text);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, json_call_on_body);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	code |= curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

int json_call_start(struct json_call *call, const struct json_call_options *o)
{
	int err;

	*call = (struct json_call){
		.easy = curl_easy_init(),
		.left_bytes = o->answer_bytes ? o->answer_bytes : UINT64_MAX,
	};
	if (!call->easy)
		return -ENOMEM;
	json_pieces_init(&call->pieces, o->form, o->value_bytes, o->on_value, o->context);
	err = json_call_set_headers(call, o);
	if (!err)
		err = json_call_set_target(call, o);
	if (!err)
		err = json_call_set_transfer(call, o);
	if (!err && curl_multi_add_handle(o->multi, call->easy) != CURLM_OK)
		err = -ENOMEM;
	if (err)
		json_call_stop(call);
	else
		call->multi = o->multi;
	return err;
}

/* libcurl frees the headers without wiping them. */
static void json_call_free_headers(struct curl_slist *headers)
{
	for (struct curl_slist *line = headers; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	curl_slist_free_all(headers);
}

void json_call_stop(struct json_call *call)
{
	if (!call->easy)
		return;
	if (call->multi)
		curl_multi_remove_handle(call->multi, call->easy);
	curl_easy_cleanup(call->easy);
	json_call_free_headers(call->headers);
	json_pieces_deinit(&call->pieces);
	*call = (struct json_call){ 0 };
}
