/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope. The newer way is push.v1.PusherService/Push as a Connect unary call with protobuf
 * (https://connectrpc.com/docs/protocol): one POST, HTTP statuses for errors, {"code","message"} as
 * their body. Servers that answer 404 get POST /ingest, with the labels in the query.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "proto/pyroscope_push.pb-c.h"

/* The server's default limits. */
enum {
	MAX_PROFILE_BYTES = 4 << 20, /* before compression */
	MAX_SAMPLES = 16000,
};

static const int64_t SECOND_NS = 1000000000;

static int pyroscope_pack(struct buffer *body, const Push__V1__PushRequest *request)
{
	size_t size = push__v1__push_request__get_packed_size(request);
	void *room = buffer_room(body, size);

	if (!room)
		return body->error;
	body->size += push__v1__push_request__pack(request, room);
	return 0;
}

static int pyroscope_build_push(
	struct remote *remote, const struct payload *payload, struct request *request)
{
	Push__V1__LabelPair pairs[SERIES_LABELS_LIMIT], *pair_pointers[SERIES_LABELS_LIMIT];
	Push__V1__RawSample sample = PUSH__V1__RAW_SAMPLE__INIT, *samples = &sample;
	Push__V1__RawProfileSeries series = PUSH__V1__RAW_PROFILE_SERIES__INIT, *all = &series;
	Push__V1__PushRequest push = PUSH__V1__PUSH_REQUEST__INIT;

	for (size_t i = 0; i < payload->labels.count; i++) {
		push__v1__label_pair__init(&pairs[i]);
		pairs[i].name = payload->labels.items[i].name;
		pairs[i].value = payload->labels.items[i].value;
		pair_pointers[i] = &pairs[i];
	}
	sample.raw_profile.data = payload->pprof.bytes;
	sample.raw_profile.len = payload->pprof.size;
	series.n_labels = payload->labels.count;
	series.labels = pair_pointers;
	series.n_samples = 1;
	series.samples = &samples;
	push.n_series = 1;
	push.series = &all;
	request->content_type = "application/proto";
	if ((size_t)snprintf(request->url, sizeof(request->url), "%s/push.v1.PusherService/Push",
		    remote->url) >= sizeof(request->url))
		return -E2BIG;
	return pyroscope_pack(&remote->body, &push);
}

/* Replaces characters that have a meaning in a name and cannot be quoted. */
static void append_plain(struct buffer *name, const char *text)
{
	for (; *text; text++) {
		char c = strchr("{},=\"", *text) ? '_' : *text;

		buffer_append(name, &c, 1);
	}
}

/* service{label=value,…} */
static int ingest_name(const struct labels *labels, struct buffer *name)
{
	const char *separator = "{";

	append_plain(name, labels_get(labels, "service_name"));
	for (size_t i = 0; i < labels->count; i++) {
		const struct label *label = &labels->items[i];

		if (!strcmp(label->name, "service_name") || !strcmp(label->name, "__name__"))
			continue;
		buffer_string(name, separator);
		append_plain(name, label->name);
		buffer_string(name, "=");
		append_plain(name, label->value);
		separator = ",";
	}
	if (*separator == ',')
		buffer_string(name, "}");
	return buffer_append(name, "", 1);
}

static void pyroscope_cleanup_curl_text(char **text)
{
	curl_free(*text);
}

static int pyroscope_build_ingest(
	struct remote *remote, const struct payload *payload, struct request *request)
{
	autocall(buffer_deinit) struct buffer name;
	autocall(pyroscope_cleanup_curl_text) char *escaped = NULL;
	int64_t from = payload->time_ns / SECOND_NS;
	int64_t until = (payload->time_ns + payload->duration_ns + SECOND_NS - 1) / SECOND_NS;
	int err;

	buffer_init(&name, REMOTE_URL_BYTES);
	err = ingest_name(&payload->labels, &name);
	if (err)
		return err;
	escaped = curl_easy_escape(remote->easy, (const char *)name.bytes, 0);
	if (!escaped)
		return -ENOMEM;
	request->content_type = "application/octet-stream";
	if ((size_t)snprintf(request->url, sizeof(request->url),
		    "%s/ingest?name=%s&format=pprof&from=%lld&until=%lld", remote->url, escaped,
		    (long long)from, (long long)until) >= sizeof(request->url))
		return -E2BIG;
	return buffer_append(&remote->body, payload->pprof.bytes, payload->pprof.size);
}

static int pyroscope_build(
	struct remote *remote, const struct payload *payload, struct request *request)
{
	return remote->old_way ? pyroscope_build_ingest(remote, payload, request)
			       : pyroscope_build_push(remote, payload, request);
}

static bool pyroscope_judge(
	struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	const struct answer *answer = o->answer;
	bool good = verdict_is_success(answer->http_status);

	if (!verdict_answer(o, result))
		return false;
	/* A login page or an index page also returns 200. */
	if (good && !remote->old_way && strncasecmp(answer->content_type, "application/proto", 17))
		verdict_set(result, REMOTE_DENIED, "not_pyroscope",
			"status %ld, but the answer is %s: is this the address of Pyroscope?",
			answer->http_status,
			*answer->content_type ? answer->content_type : "without a type");
	/* /ingest answers a corrupt profile and an unavailable backend alike. */
	if (remote->old_way && answer->http_status == 422) {
		result->verdict = REMOTE_RETRY;
		result->blurred = true;
	}
	return answer->http_status == 404 || answer->http_status == 405 ||
	       (!remote->old_way && answer->http_status == 501);
}

static bool pyroscope_refuses(const struct payload *payload, struct remote_result *result)
{
	if (payload->raw_bytes > MAX_PROFILE_BYTES)
		verdict_set(result, REMOTE_REFUSED, "too_large",
			"%llu bytes of pprof, Pyroscope accepts %d",
			(unsigned long long)payload->raw_bytes, MAX_PROFILE_BYTES);
	else if (payload->samples > MAX_SAMPLES)
		verdict_set(result, REMOTE_REFUSED, "too_large",
			"%llu samples, Pyroscope accepts %d", (unsigned long long)payload->samples,
			MAX_SAMPLES);
	else if (payload->labels.count > SERIES_LABELS_LIMIT)
		verdict_set(result, REMOTE_REFUSED, "labels", "%zu labels, Pyroscope accepts %d",
			payload->labels.count, SERIES_LABELS_LIMIT);
	else if (!labels_get(&payload->labels, "service_name"))
		verdict_set(result, REMOTE_REFUSED, "invalid", "the label service_name is missing");
	else
		return false;
	return true;
}

const struct protocol remote_pyroscope = {
	.server = "Pyroscope",
	.build = pyroscope_build,
	.judge = pyroscope_judge,
	.refuses = pyroscope_refuses,
};
