/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/kubernetes/api_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/kubernetes/pod_json.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	CONNECT_TIMEOUT_MS = 5000,
	CA_CACHE_SECONDS = 60, /* the file may be replaced */
	KEEPALIVE_SECONDS = 30,
	HEADER_BYTES = 64 << 10,
};

static const uint64_t MILLISECOND_NS = 1000000;

/* ---- the answer ----------------------------------------------------------------------------- */

static int api_call_ignore(void *context, const void *bytes, size_t size)
{
	(void)context;
	(void)bytes;
	(void)size;
	return 0;
}

static size_t api_call_on_body(char *bytes, size_t one, size_t size, void *context)
{
	struct api_call *call = context;

	size *= one;
	if (!call->status) {
		curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
		/* A refusal is one object, whatever was asked for. */
		if (call->status != 200)
			json_pieces_init(
				&call->pieces, JSON_PIECES_ITEMS, 0, api_call_ignore, NULL);
	}
	call->over_limit = size > call->left_bytes;
	if (call->over_limit)
		return 0; /* any other number ends the transfer */
	call->left_bytes -= call->left_bytes == UINT64_MAX ? 0 : size;
	if (!json_pieces_take(&call->pieces, bytes, size))
		return size;
	return call->status == 200 ? 0 : size;
}

static enum api_result api_call_judge_transfer(
	const struct api_call *call, CURLcode code, char why[API_MESSAGE_BYTES])
{
	const int error = call->pieces.error;

	if (call->over_limit || error == -E2BIG) {
		snprintf(why, API_MESSAGE_BYTES, "the answer is too large");
		return API_TOO_LARGE;
	}
	if (error) {
		snprintf(why, API_MESSAGE_BYTES, "%s",
			error == -ENOMEM ? strerror(ENOMEM)
					 : "the answer is not of the expected form");
		return API_NONSENSE;
	}
	snprintf(why, API_MESSAGE_BYTES, "%.*s", API_MESSAGE_BYTES - 1,
		*call->error_text ? call->error_text : curl_easy_strerror(code));
	utf8_clean(why, strlen(why));
	return code == CURLE_OPERATION_TIMEDOUT ? API_TIMEOUT : API_UNREACHABLE;
}

static enum api_result api_call_judge_status(
	const struct api_call *call, char why[API_MESSAGE_BYTES])
{
	const struct buffer *rest = &call->pieces.rest;
	struct pod_json_answer answer = { 0 };
	bool told = rest->size && !pod_json_answer(rest->bytes, rest->size, &answer);

	snprintf(why, API_MESSAGE_BYTES, "HTTP status %ld%s%s", call->status,
		told && *answer.message ? ": " : "", told ? answer.message : "");
	return call->status == 410   ? API_EXPIRED
	       : call->status == 429 ? API_BUSY
	       : call->status >= 400 ? API_REFUSED
				     : API_NONSENSE;
}

enum api_result api_call_judge(
	struct api_call *call, CURLcode code, char why[API_MESSAGE_BYTES], uint64_t *ret_retry_s)
{
	curl_off_t retry = 0;

	*ret_retry_s = 0;
	if (code != CURLE_OK)
		return api_call_judge_transfer(call, code, why);
	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
	curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry);
	*ret_retry_s = retry > 0 ? (uint64_t)retry : 0;
	if (call->status != 200)
		return api_call_judge_status(call, why);
	if (json_pieces_is_whole(&call->pieces))
		return API_OK;
	snprintf(why, API_MESSAGE_BYTES, "the answer is incomplete");
	return API_NONSENSE;
}

/* ---- the request ---------------------------------------------------------------------------- */

static void api_call_wipe(struct buffer *line)
{
	if (line->bytes)
		explicit_bzero(line->bytes, line->capacity);
	buffer_deinit(line);
}

static int api_call_add_header(struct api_call *call, const char *name, const char *value)
{
	autocall(api_call_wipe) struct buffer line;
	struct curl_slist *longer = NULL;

	buffer_init(&line, HEADER_BYTES);
	if (!buffer_printf(&line, "%s%s", name, value) && !buffer_append(&line, "", 1))
		longer = curl_slist_append(call->headers, (const char *)line.bytes);
	if (!longer)
		return -ENOMEM;
	call->headers = longer;
	return 0;
}

static int api_call_set_headers(struct api_call *call, const struct api_call_options *o)
{
	int err = api_call_add_header(call, "Authorization: Bearer ", o->token);

	if (!err)
		err = api_call_add_header(call, "Accept: ", o->accept);
	if (!err)
		err = api_call_add_header(call, "User-Agent: ", "fathom/" FATHOM_VERSION);
	if (err)
		return err;
	return curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK
		       ? 0
		       : -ENOMEM;
}

static int api_call_set_target(struct api_call *call, const struct api_call_options *o)
{
	CURL *easy = call->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, o->url);

	/* What the environment says of proxies is about other machines. */
	code |= curl_easy_setopt(easy, CURLOPT_PROXY, "");
	code |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
	code |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	code |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	code |= curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	code |= curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	code |= curl_easy_setopt(easy, CURLOPT_CAINFO, o->ca_file);
	code |= curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_SECONDS);
	code |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_SECONDS);
	code |= curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_SECONDS);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

static int api_call_set_transfer(struct api_call *call, const struct api_call_options *o)
{
	CURL *easy = call->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);

	code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(o->timeout_ns / MILLISECOND_NS));
	code |= curl_easy_setopt(
		easy, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)o->bytes_per_second);
	code |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error_text);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, api_call_on_body);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	code |= curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

int api_call_start(struct api_call *call, const struct api_call_options *o)
{
	int err;

	*call = (struct api_call){
		.easy = curl_easy_init(),
		.left_bytes = o->answer_bytes ? o->answer_bytes : UINT64_MAX,
	};
	if (!call->easy)
		return -ENOMEM;
	json_pieces_init(&call->pieces, o->form, o->value_bytes, o->on_value, o->context);
	err = api_call_set_headers(call, o);
	if (!err)
		err = api_call_set_target(call, o);
	if (!err)
		err = api_call_set_transfer(call, o);
	if (!err && curl_multi_add_handle(o->multi, call->easy) != CURLM_OK)
		err = -ENOMEM;
	if (err)
		api_call_stop(call);
	else
		call->multi = o->multi;
	return err;
}

/* libcurl frees the headers without wiping them. */
static void api_call_free_headers(struct curl_slist *headers)
{
	for (struct curl_slist *line = headers; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	curl_slist_free_all(headers);
}

void api_call_stop(struct api_call *call)
{
	if (!call->easy)
		return;
	if (call->multi)
		curl_multi_remove_handle(call->multi, call->easy);
	curl_easy_cleanup(call->easy);
	api_call_free_headers(call->headers);
	json_pieces_deinit(&call->pieces);
	*call = (struct api_call){ 0 };
}
