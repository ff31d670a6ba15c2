/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca. The newer way is ProfileStoreService/WriteRaw over gRPC
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md): a POST over HTTP/2 whose body
 * is one message behind five bytes, answered by a status in the trailers. That status counts,
 * whatever curl says of the transfer: a server that refuses early resets the stream behind it,
 * which curl reports as an error of its own. Where something between us and the server takes no
 * gRPC, the same goes to the JSON gateway, /api/profiles/writeraw.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/export/remote_internal.h"
#include "base/cleanup.h"
#include "proto/parca_profilestore.pb-c.h"

enum { GRPC_PREFIX_BYTES = 5, GRPC_UNIMPLEMENTED = 12 };

/* ---- gRPC ---------------------------------------------------------------------------------- */
static int pack(struct buffer *body, const Parca__Profilestore__V1alpha1__WriteRawRequest *request)
{
	size_t size = parca__profilestore__v1alpha1__write_raw_request__get_packed_size(request);
	uint8_t *room;

	if (size > REMOTE_MESSAGE_BYTES)
		return -E2BIG;
	room = buffer_room(body, GRPC_PREFIX_BYTES + size);
	if (!room)
		return body->error;
	room[0] = 0; /* not compressed: the profile is */
	for (int i = 0; i < 4; i++)
		room[1 + i] = (uint8_t)(size >> (24 - 8 * i));
	parca__profilestore__v1alpha1__write_raw_request__pack(request, room + GRPC_PREFIX_BYTES);
	body->size += GRPC_PREFIX_BYTES + size;
	return 0;
}

static int build_grpc(struct remote *remote, const struct payload *payload, struct request *request)
{
	Parca__Profilestore__V1alpha1__Label labels[LABELS_LIMIT], *label_pointers[LABELS_LIMIT];
	Parca__Profilestore__V1alpha1__LabelSet set =
		PARCA__PROFILESTORE__V1ALPHA1__LABEL_SET__INIT;
	Parca__Profilestore__V1alpha1__RawSample
		sample = PARCA__PROFILESTORE__V1ALPHA1__RAW_SAMPLE__INIT,
		*samples = &sample;
	Parca__Profilestore__V1alpha1__RawProfileSeries
		series = PARCA__PROFILESTORE__V1ALPHA1__RAW_PROFILE_SERIES__INIT,
		*all = &series;
	Parca__Profilestore__V1alpha1__WriteRawRequest write =
		PARCA__PROFILESTORE__V1ALPHA1__WRITE_RAW_REQUEST__INIT;

	for (size_t i = 0; i < payload->labels.count; i++) {
		parca__profilestore__v1alpha1__label__init(&labels[i]);
		labels[i].name = payload->labels.items[i].name;
		labels[i].value = payload->labels.items[i].value;
		label_pointers[i] = &labels[i];
	}
	set.n_labels = payload->labels.count;
	set.labels = label_pointers;
	sample.raw_profile.data = payload->pprof.bytes;
	sample.raw_profile.len = payload->pprof.size;
	series.labels = &set;
	series.n_samples = 1;
	series.samples = &samples;
	write.n_series = 1;
	write.series = &all;
	write.normalized = 1;
	request->content_type = "application/grpc";
	request->grpc = true;
	if ((size_t)snprintf(request->url, sizeof(request->url),
		    "%s/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
		    remote->url) >= sizeof(request->url))
		return -E2BIG;
	return pack(&remote->body, &write);
}

/* ---- JSON ---------------------------------------------------------------------------------- */
static void append_json_text(struct buffer *json, const char *text)
{
	buffer_string(json, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			buffer_printf(json, "\\%c", c);
		else if (c < 0x20)
			buffer_printf(json, "\\u%04x", c);
		else
			buffer_append(json, text, 1);
	}
	buffer_string(json, "\"");
}

static int append_base64(struct buffer *out, const uint8_t *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *room = buffer_room(out, (size + 2) / 3 * 4);

	if (!room)
		return out->error;
	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t three = (uint32_t)bytes[i] << 16 |
				 (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				 (left > 2 ? (uint32_t)bytes[i + 2] : 0);

		*room++ = digits[three >> 18];
		*room++ = digits[three >> 12 & 63];
		*room++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*room++ = left > 2 ? digits[three & 63] : '=';
	}
	out->size += (size + 2) / 3 * 4;
	return 0;
}

static int build_json(struct remote *remote, const struct payload *payload, struct request *request)
{
	struct buffer *json = &remote->body;

	request->content_type = "application/json";
	if ((size_t)snprintf(request->url, sizeof(request->url), "%s/api/profiles/writeraw",
		    remote->url) >= sizeof(request->url))
		return -E2BIG;
	buffer_string(json, "{\"normalized\":true,\"series\":[{\"labels\":{\"labels\":[");
	for (size_t i = 0; i < payload->labels.count; i++) {
		buffer_string(json, i ? ",{\"name\":" : "{\"name\":");
		append_json_text(json, payload->labels.items[i].name);
		buffer_string(json, ",\"value\":");
		append_json_text(json, payload->labels.items[i].value);
		buffer_string(json, "}");
	}
	buffer_string(json, "]},\"samples\":[{\"rawProfile\":\"");
	append_base64(json, payload->pprof.bytes, payload->pprof.size);
	buffer_string(json, "\"}]}]}");
	return json->error;
}

static int build(struct remote *remote, const struct payload *payload, struct request *request)
{
	return remote->old_way ? build_json(remote, payload, request)
			       : build_grpc(remote, payload, request);
}

/* ---- judging ------------------------------------------------------------------------------- */
static bool is_success(long status)
{
	return status >= 200 && status < 300;
}

/*
 * What only a peer without gRPC answers. A server of HTTP/1.1 cannot read the first bytes of
 * HTTP/2, so that nothing arrived; but libcurl reports its answer to them as none at all, as it
 * does when a real server closes. That is taken for HTTP/1.1 only until gRPC was answered once.
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
	case 464: /* of a load balancer: incompatible versions */
	case 501:
	case 505:
		return true;
	default:
		return false;
	}
}

static bool judge_grpc(struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	const struct answer *answer = o->answer;

	if (answer->grpc_status >= 0) {
		verdict_grpc(o, result);
		remote->new_way_works = true;
		return answer->grpc_status == GRPC_UNIMPLEMENTED;
	}
	if (!answer->http_status || (is_success(answer->http_status) && o->code != CURLE_OK)) {
		verdict_transport(o, result);
		/* A refusal that comes in one piece with the reset behind it is lost in libcurl. */
		result->blurred = o->code == CURLE_HTTP2_STREAM;
		return takes_no_grpc(remote, o);
	}
	verdict_http(o, result);
	if (is_success(answer->http_status) &&
		strncasecmp(answer->content_type, "application/grpc", 16))
		verdict_set(result, REMOTE_DENIED, "not_grpc",
			"status %ld, but the answer is %s: is this the address of Parca?",
			answer->http_status,
			*answer->content_type ? answer->content_type : "of no type");
	else if (is_success(answer->http_status))
		verdict_set(result, REMOTE_AMBIGUOUS, "no_status", "an answer without grpc-status");
	return takes_no_grpc(remote, o);
}

static bool judge_json(const struct outcome *o, struct remote_result *result)
{
	const struct answer *answer = o->answer;

	if (!answer->http_status || (is_success(answer->http_status) && o->code != CURLE_OK)) {
		verdict_transport(o, result);
		return false;
	}
	verdict_http(o, result);
	if (is_success(answer->http_status) &&
		strncasecmp(answer->content_type, "application/json", 16))
		verdict_set(result, REMOTE_DENIED, "not_parca",
			"status %ld, but the answer is %s: is this the address of Parca?",
			answer->http_status,
			*answer->content_type ? answer->content_type : "of no type");
	return answer->http_status == 404 || answer->http_status == 405;
}

static bool judge(struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	return remote->old_way ? judge_json(o, result) : judge_grpc(remote, o, result);
}

static bool refuses(const struct payload *payload, struct remote_result *result)
{
	if (payload->pprof.size <= REMOTE_MESSAGE_BYTES)
		return false;
	verdict_set(result, REMOTE_REFUSED, "too_large", "%zu bytes, Parca takes %d",
		payload->pprof.size, REMOTE_MESSAGE_BYTES);
	return true;
}

const struct protocol remote_parca = { .build = build, .judge = judge, .refuses = refuses };
