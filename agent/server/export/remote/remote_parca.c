/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca. The newer way is ProfileStoreService/WriteRaw over gRPC. If something between us and the
 * server does not support gRPC, the request goes to the JSON gateway, /api/profiles/writeraw.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "proto/parca_profilestore.pb-c.h"

/* ---- gRPC ---------------------------------------------------------------------------------- */
static int parca_pack(
	struct buffer *body, const Parca__Profilestore__V1alpha1__WriteRawRequest *request)
{
	uint8_t *room;
	int err = grpc_body(body,
		parca__profilestore__v1alpha1__write_raw_request__get_packed_size(request), &room);

	if (!err)
		parca__profilestore__v1alpha1__write_raw_request__pack(request, room);
	return err;
}

static int parca_build_grpc(
	struct remote *remote, const struct payload *payload, struct request *request)
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
	int err;

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
	err = grpc_request(
		remote, "parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", request);
	return err ? err : parca_pack(&remote->body, &write);
}

/* ---- JSON ---------------------------------------------------------------------------------- */
static int parca_build_json(
	struct remote *remote, const struct payload *payload, struct request *request)
{
	struct json j;

	request->content_type = "application/json";
	if ((size_t)snprintf(request->url, sizeof(request->url), "%s/api/profiles/writeraw",
		    remote->url) >= sizeof(request->url))
		return -E2BIG;
	json_init(&j, &remote->body, JSON_COMPACT);
	json_object(&j, NULL);
	json_bool(&j, "normalized", true);
	json_array(&j, "series");
	json_object(&j, NULL);
	json_object(&j, "labels");
	json_array(&j, "labels");
	for (size_t i = 0; i < payload->labels.count; i++) {
		json_object(&j, NULL);
		json_text(&j, "name", payload->labels.items[i].name);
		json_text(&j, "value", payload->labels.items[i].value);
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
	json_array(&j, "samples");
	json_object(&j, NULL);
	json_base64(&j, "rawProfile", payload->pprof.bytes, payload->pprof.size);
	for (int open = 5; open; open--)
		json_close(&j);
	return json_finish(&j);
}

static int parca_build(
	struct remote *remote, const struct payload *payload, struct request *request)
{
	return remote->old_way ? parca_build_json(remote, payload, request)
			       : parca_build_grpc(remote, payload, request);
}

/* ---- judging ------------------------------------------------------------------------------- */
static bool parca_judge_json(const struct outcome *o, struct remote_result *result)
{
	const struct answer *answer = o->answer;

	if (!verdict_answer(o, result))
		return false;
	if (verdict_is_success(answer->http_status) &&
		strncasecmp(answer->content_type, "application/json", 16))
		verdict_set(result, REMOTE_DENIED, "not_parca",
			"status %ld, but the answer is %s: is this the address of Parca?",
			answer->http_status,
			*answer->content_type ? answer->content_type : "without a type");
	return answer->http_status == 404 || answer->http_status == 405;
}

static bool parca_judge(
	struct remote *remote, const struct outcome *o, struct remote_result *result)
{
	return remote->old_way ? parca_judge_json(o, result) : grpc_judge(remote, o, result);
}

static bool parca_refuses(const struct payload *payload, struct remote_result *result)
{
	if (payload->pprof.size <= REMOTE_MESSAGE_BYTES)
		return false;
	verdict_set(result, REMOTE_REFUSED, "too_large", "%zu bytes, Parca accepts %d",
		payload->pprof.size, REMOTE_MESSAGE_BYTES);
	return true;
}

const struct protocol remote_parca = {
	.server = "Parca",
	.build = parca_build,
	.judge = parca_judge,
	.refuses = parca_refuses,
};
