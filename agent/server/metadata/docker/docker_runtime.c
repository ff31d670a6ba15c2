/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/docker/docker_runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/docker/docker_json.h"
#include "agent/server/metadata/runtime.h"
#include "base/cleanup.h"

static const char version_url[] = "http://localhost/version";
static const char containers_url[] = "http://localhost/containers/json?all=true";
/*
 * {"type":["container"],"event":["create","start","die","destroy","rename"]}. Podman says `died`
 * and `remove`.
 */
static const char events_url[] =
	"http://localhost/events?filters=%7B%22type%22%3A%5B%22container%22%5D%2C%22event%22%3A%5B"
	"%22create%22%2C%22start%22%2C%22die%22%2C%22died%22%2C%22destroy%22%2C%22remove%22%2C"
	"%22rename%22%5D%7D";

static const enum metric result_metrics[] = {
	[CALL_OK] = METRIC_METADATA_OK,
	[CALL_UNREACHABLE] = METRIC_METADATA_UNREACHABLE,
	[CALL_TIMEOUT] = METRIC_METADATA_TIMEOUT,
	[CALL_REFUSED] = METRIC_METADATA_REFUSED,
	[CALL_EXPIRED] = METRIC_METADATA_REFUSED,
	[CALL_BUSY] = METRIC_METADATA_REFUSED,
	[CALL_NONSENSE] = METRIC_METADATA_NONSENSE,
	[CALL_TOO_LARGE] = METRIC_METADATA_TOO_LARGE,
};

/* ---- values --------------------------------------------------------------------------------- */

/* One that cannot be believed is left out and counted. */
static int docker_runtime_refuse(struct runtime *r, int err)
{
	if (err == -EBADMSG)
		metrics_add(r->metrics, METRIC_METADATA_INVALID, 1);
	else if (err == -E2BIG)
		metrics_add(r->metrics, METRIC_METADATA_ITEM_TOO_LARGE, 1);
	else
		return err;
	return 0;
}

static int docker_runtime_on_version(void *context, const void *bytes, size_t size)
{
	struct runtime *r = context;

	return docker_json_version(bytes, size, r->name);
}

static int docker_runtime_on_container(void *context, const void *bytes, size_t size)
{
	struct runtime *r = context;

	return docker_runtime_refuse(r, docker_json_container(bytes, size, r->next));
}

static int docker_runtime_on_event(void *context, const void *bytes, size_t size)
{
	struct runtime *r = context;
	bool changes = false;
	int err = docker_runtime_refuse(r, docker_json_event(bytes, size, &changes));

	r->docker.event_count += changes;
	return err;
}

/* ---- asking --------------------------------------------------------------------------------- */

static void docker_runtime_call(struct runtime *r, enum docker_state state, uint64_t now_ns)
{
	const bool lists = state == DOCKER_ASKED_CONTAINERS;
	int err = json_call_start(&r->docker.call,
		&(struct json_call_options){
			.multi = r->multi,
			.socket = r->socket,
			.url = lists ? containers_url : version_url,
			.accept = "application/json",
			.form = lists ? JSON_PIECES_ARRAY : JSON_PIECES_VALUES,
			.on_value = lists ? docker_runtime_on_container : docker_runtime_on_version,
			.context = r,
			.value_bytes = lists ? DOCKER_JSON_VALUE_BYTES : DOCKER_JSON_VERSION_BYTES,
			.answer_bytes = lists ? RUNTIME_ANSWER_BYTES : DOCKER_JSON_VERSION_BYTES,
			.timeout_ns = RUNTIME_CALL_NS,
		});

	r->docker.state = state;
	if (err)
		runtime_fail(r, METRIC_METADATA_NO_MEMORY, strerror(-err), now_ns);
}

/* Without the stream the lists come often enough. */
static void docker_runtime_watch(struct runtime *r, uint64_t now_ns)
{
	if (r->docker.events.easy || r->no_events)
		return;
	r->docker.event_count = 0;
	runtime_on_events(r, now_ns);
	if (json_call_start(
		    &r->docker.events, &(struct json_call_options){
					       .multi = r->multi,
					       .socket = r->socket,
					       .url = events_url,
					       .accept = "application/json",
					       .form = JSON_PIECES_VALUES,
					       .on_value = docker_runtime_on_event,
					       .context = r,
					       .value_bytes = DOCKER_JSON_EVENT_BYTES,
					       .bytes_per_second = RUNTIME_EVENT_BYTES_PER_SECOND,
				       }))
		metrics_add(r->metrics, METRIC_METADATA_NO_MEMORY, 1);
}

static void docker_runtime_list(struct runtime *r, uint64_t now_ns)
{
	if (!runtime_create_table(r, now_ns))
		return;
	docker_runtime_watch(r, now_ns);
	docker_runtime_call(r, DOCKER_ASKED_CONTAINERS, now_ns);
}

static void docker_runtime_begin(struct runtime *r, uint64_t now_ns)
{
	if (*r->name)
		docker_runtime_list(r, now_ns);
	else
		docker_runtime_call(r, DOCKER_ASKED_VERSION, now_ns);
}

static void docker_runtime_stop(struct runtime *r)
{
	json_call_stop(&r->docker.call);
	json_call_stop(&r->docker.events);
	r->docker.event_count = 0;
}

/* A server that takes the request and says nothing has none. */
static bool docker_runtime_has_events(const struct runtime *r)
{
	long status = 0;

	if (r->docker.events.easy)
		curl_easy_getinfo(r->docker.events.easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200;
}

static uint64_t docker_runtime_event_count(const struct runtime *r)
{
	return r->docker.event_count;
}

/* ---- answers -------------------------------------------------------------------------------- */

static int docker_runtime_take(struct runtime *r, uint64_t now_ns)
{
	metrics_add(r->metrics, METRIC_METADATA_ITEM_TOO_LARGE, r->docker.call.pieces.too_large);
	if (r->docker.state == DOCKER_ASKED_VERSION)
		return *r->name ? 0 : -EBADMSG;
	return runtime_finish(r, now_ns);
}

static void docker_runtime_on_answer(struct runtime *r, CURLcode code, uint64_t now_ns)
{
	char why[CALL_MESSAGE_BYTES] = "";
	uint64_t retry_s;
	enum json_call_result result = json_call_judge(&r->docker.call, code, why, &retry_s);
	int err;

	if (result != CALL_OK) {
		runtime_fail(r, result_metrics[result], why, now_ns);
		return;
	}
	err = docker_runtime_take(r, now_ns);
	if (err) {
		runtime_fail(r, METRIC_METADATA_NONSENSE,
			err == -EBADMSG ? "the answer says no version" : strerror(-err), now_ns);
		return;
	}
	metrics_add(r->metrics, METRIC_METADATA_OK, 1);
	json_call_stop(&r->docker.call);
	if (r->docker.state == DOCKER_ASKED_VERSION)
		docker_runtime_list(r, now_ns);
}

/* One that only ends is opened again. */
static void docker_runtime_on_events_end(struct runtime *r, CURLcode code, uint64_t now_ns)
{
	char why[CALL_MESSAGE_BYTES] = "";
	uint64_t retry_s;
	enum json_call_result result = json_call_judge(&r->docker.events, code, why, &retry_s);
	bool has_none =
		result == CALL_REFUSED || result == CALL_NONSENSE || result == CALL_TOO_LARGE;

	metrics_add(r->metrics, METRIC_METADATA_ITEM_TOO_LARGE, r->docker.events.pieces.too_large);
	runtime_on_events_end(r, has_none ? why : NULL, now_ns);
	r->docker.event_count = 0;
	json_call_stop(&r->docker.events);
}

static void docker_runtime_on_end(
	struct runtime *r, const void *call, CURLcode code, uint64_t now_ns)
{
	if (call == &r->docker.call)
		docker_runtime_on_answer(r, code, now_ns);
	else if (call == &r->docker.events)
		docker_runtime_on_events_end(r, code, now_ns);
}

const struct runtime_protocol docker_protocol = {
	.begin = docker_runtime_begin,
	.on_end = docker_runtime_on_end,
	.stop = docker_runtime_stop,
	.has_events = docker_runtime_has_events,
	.event_count = docker_runtime_event_count,
};
