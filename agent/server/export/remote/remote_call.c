/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/remote/remote_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"

/* ---- the body ------------------------------------------------------------------------------- */

static size_t on_read(char *bytes, size_t one, size_t room, void *context)
{
	struct remote *remote = context;
	const struct remote_call *call = remote->call;
	uint64_t left = call->size - MIN(remote->call_off, call->size);
	ssize_t got;

	room = MIN(room * one, left);
	if (!room)
		return 0;
	got = call->read(call->context, remote->call_off, bytes, room);
	if (got <= 0 || (size_t)got > room)
		return CURL_READFUNC_ABORT;
	remote->call_off += (uint64_t)got;
	return (size_t)got;
}

/* libcurl sends again if a reused connection turns out to be closed. */
static int on_seek(void *context, curl_off_t off, int origin)
{
	struct remote *remote = context;

	if (origin != SEEK_SET || off < 0)
		return CURL_SEEKFUNC_CANTSEEK;
	remote->call_off = (uint64_t)off;
	return CURL_SEEKFUNC_OK;
}

int remote_call_setup(struct remote *remote)
{
	const struct remote_call *call = remote->call;
	CURL *easy = remote->easy;
	CURLcode code = CURLE_OK;

	remote->call_off = 0;
	code |= curl_easy_setopt(easy, CURLOPT_POST, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
	code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->size);
	code |= curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
	code |= curl_easy_setopt(easy, CURLOPT_READDATA, remote);
	code |= curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
	code |= curl_easy_setopt(easy, CURLOPT_SEEKDATA, remote);
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(call->timeout_ns / 1000000));
	code |= curl_easy_setopt(
		easy, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)call->bytes_per_second);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

/* ---- the request ---------------------------------------------------------------------------- */

int remote_call_request(struct remote *remote, struct request *request)
{
	const struct remote_call *call = remote->call;

	if (call->method)
		return grpc_request(remote, call->method, request);
	/* No content type at all: the URL's signature may cover it. */
	request->content_type = NULL;
	request->put = true;
	if ((size_t)snprintf(request->url, sizeof(request->url), "%s", call->put_url) >=
		sizeof(request->url))
		return -E2BIG;
	return 0;
}

void remote_call_judge(struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	if (remote->call->method)
		(void)grpc_judge(remote, o, result);
	else
		(void)verdict_answer(o, result);
}

struct cursor remote_call_answer(const struct remote *remote)
{
	struct cursor c = cursor_over(remote->answer.kept, remote->answer.kept_bytes), message;
	bool compressed = cursor_u8(&c) != 0;
	uint32_t size = __builtin_bswap32(cursor_u32(&c));

	message = cursor_slice(&c, GRPC_PREFIX_BYTES, size);
	message.bad |= c.bad || compressed;
	return message;
}
