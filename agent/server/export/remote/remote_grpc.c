/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC over libcurl (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md): a POST over
 * HTTP/2 with length-prefixed messages (five bytes) as body, and the status in the trailers. That
 * status decides, whatever curl reports: a server that refuses early resets the stream afterwards,
 * which curl reports as an error of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cursor.h"

enum { GRPC_UNIMPLEMENTED = 12 };

void grpc_prefix(uint8_t prefix[GRPC_PREFIX_BYTES], size_t size)
{
	prefix[0] = 0; /* not compressed */
	for (int i = 0; i < 4; i++)
		prefix[1 + i] = (uint8_t)(size >> (24 - 8 * i));
}

int grpc_body(struct buffer *body, size_t size, uint8_t **ret_room)
{
	uint8_t *room;

	if (size > REMOTE_MESSAGE_BYTES)
		return -E2BIG;
	room = buffer_room(body, GRPC_PREFIX_BYTES + size);
	if (!room)
		return body->error;
	grpc_prefix(room, size);
	body->size += GRPC_PREFIX_BYTES + size;
	*ret_room = room + GRPC_PREFIX_BYTES;
	return 0;
}

int grpc_request(const struct remote *remote, const char *method, struct request *request)
{
	request->content_type = "application/grpc";
	request->grpc = true;
	if ((size_t)snprintf(request->url, sizeof(request->url), "%s/%s", remote->url, method) >=
		sizeof(request->url))
		return -E2BIG;
	return 0;
}

bool grpc_read_message(
	const struct answer *answer, bool *ret_compressed, struct cursor *ret_message)
{
	struct cursor c = cursor_over(answer->kept, answer->kept_bytes);
	bool compressed = cursor_u8(&c) == 1;
	uint32_t size = 0;

	for (int i = 0; i < 4; i++)
		size = size << 8 | cursor_u8(&c);
	if (c.bad || size > cursor_left(&c))
		return false;
	*ret_compressed = compressed;
	*ret_message = cursor_slice(&c, GRPC_PREFIX_BYTES, size);
	return true;
}

/*
 * Whether only a peer without gRPC answers so. An HTTP/1.1 server cannot read the first bytes of
 * HTTP/2, so nothing arrived; but libcurl reports its answer as no answer, as it does when a gRPC
 * server closes. That counts as HTTP/1.1 only until gRPC has been answered once.
 */
static bool takes_no_grpc(const struct remote *remote, const struct outcome *o)
{
	switch (o->answer->http_status) {
	case 0:
		return !remote->new_way_works &&
		       (o->code == CURLE_HTTP2 || o->code == CURLE_UNSUPPORTED_PROTOCOL ||
			       o->code == CURLE_WEIRD_SERVER_REPLY || o->code == CURLE_GOT_NOTHING);
	case 404:
	case 405:
	case 415:
	case 426:
	case 464: /* AWS load balancers: incompatible versions */
	case 501:
	case 505:
		return true;
	default:
		return false;
	}
}

bool grpc_judge(struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	const struct answer *answer = o->answer;
	bool success = verdict_is_success(answer->http_status);

	if (answer->grpc_status >= 0) {
		verdict_grpc(o, result);
		remote->new_way_works = true;
		return answer->grpc_status == GRPC_UNIMPLEMENTED;
	}
	if (!answer->http_status || (success && o->code != CURLE_OK)) {
		verdict_transport(o, result);
		/* libcurl loses a refusal that arrives together with the reset after it. */
		result->blurred = o->code == CURLE_HTTP2_STREAM;
		return takes_no_grpc(remote, o);
	}
	verdict_http(o, result);
	if (success && strncasecmp(answer->content_type, "application/grpc", 16))
		verdict_set(result, REMOTE_DENIED, "not_grpc",
			"status %ld, but the answer is %s: is this the address of %s?",
			answer->http_status,
			*answer->content_type ? answer->content_type : "without a type",
			remote->protocol->server);
	else if (success)
		verdict_set(
			result, REMOTE_AMBIGUOUS, "no_status", "a response without grpc-status");
	return takes_no_grpc(remote, o);
}
