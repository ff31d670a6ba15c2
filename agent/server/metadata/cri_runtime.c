/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/cri_runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/cri_decode.h"
#include "agent/server/metadata/runtime.h"
#include "base/cleanup.h"

enum { EVENT_BYTES = 4 << 20 };

static const enum metric result_metrics[] = {
	[CRI_OK] = METRIC_METADATA_OK,
	[CRI_UNREACHABLE] = METRIC_METADATA_UNREACHABLE,
	[CRI_TIMEOUT] = METRIC_METADATA_TIMEOUT,
	[CRI_REFUSED] = METRIC_METADATA_REFUSED,
	[CRI_NONSENSE] = METRIC_METADATA_NONSENSE,
	[CRI_TOO_LARGE] = METRIC_METADATA_TOO_LARGE,
};

/* ---- asking --------------------------------------------------------------------------------- */

static void cri_runtime_call(
	struct runtime *r, enum cri_state state, const char *method, uint64_t now_ns)
{
	int err = cri_call_start(&r->cri.call, &(struct cri_call_options){
						       .multi = r->multi,
						       .socket = r->socket,
						       .method = method,
						       .timeout_ns = RUNTIME_CALL_NS,
						       .limit_bytes = RUNTIME_ANSWER_BYTES,
					       });

	r->cri.state = state;
	if (err)
		runtime_fail(r, METRIC_METADATA_NO_MEMORY, strerror(-err), now_ns);
}

/* Without the stream the lists come often enough. */
static void cri_runtime_watch(struct runtime *r, uint64_t now_ns)
{
	if (r->cri.events.easy || r->no_events)
		return;
	runtime_on_events(r, now_ns);
	if (cri_call_start(
		    &r->cri.events, &(struct cri_call_options){
					    .multi = r->multi,
					    .socket = r->socket,
					    .method = "GetContainerEvents",
					    .is_stream = true,
					    .limit_bytes = EVENT_BYTES,
					    .bytes_per_second = RUNTIME_EVENT_BYTES_PER_SECOND,
				    }))
		metrics_add(r->metrics, METRIC_METADATA_NO_MEMORY, 1);
}

static void cri_runtime_list(struct runtime *r, uint64_t now_ns)
{
	if (!runtime_create_table(r, now_ns))
		return;
	cri_runtime_watch(r, now_ns);
	cri_runtime_call(r, CRI_ASKED_CONTAINERS, "ListContainers", now_ns);
}

static void cri_runtime_begin(struct runtime *r, uint64_t now_ns)
{
	if (*r->name)
		cri_runtime_list(r, now_ns);
	else
		cri_runtime_call(r, CRI_ASKED_VERSION, "Version", now_ns);
}

static void cri_runtime_stop(struct runtime *r)
{
	cri_call_stop(&r->cri.call);
	cri_call_stop(&r->cri.events);
}

static bool cri_runtime_has_events(const struct runtime *r)
{
	return r->cri.events.easy != NULL;
}

static uint64_t cri_runtime_event_count(const struct runtime *r)
{
	return r->cri.events.frames.count;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* Takes the answer of the state's request and goes on to the next. */
static int cri_runtime_take(struct runtime *r, const struct buffer *body, uint64_t now_ns)
{
	uint64_t too_large = 0;
	int err;

	switch (r->cri.state) {
	case CRI_ASKED_VERSION:
		err = cri_decode_version(body->bytes, body->size, r->name);
		if (!err && !*r->name)
			snprintf(r->name, sizeof(r->name), "unknown");
		break;
	case CRI_ASKED_CONTAINERS:
		err = cri_decode_containers(body->bytes, body->size, r->next, &too_large);
		break;
	default:
		err = cri_decode_pods(body->bytes, body->size, r->next, &too_large);
		if (!err)
			err = runtime_finish(r, now_ns);
	}
	metrics_add(r->metrics, METRIC_METADATA_ITEM_TOO_LARGE, too_large);
	return err;
}

static void cri_runtime_go_on(struct runtime *r, enum cri_state done, uint64_t now_ns)
{
	cri_call_stop(&r->cri.call);
	if (done == CRI_ASKED_VERSION)
		cri_runtime_list(r, now_ns);
	else if (done == CRI_ASKED_CONTAINERS)
		cri_runtime_call(r, CRI_ASKED_PODS, "ListPodSandbox", now_ns);
}

static void cri_runtime_on_answer(struct runtime *r, CURLcode code, uint64_t now_ns)
{
	const enum cri_state done = r->cri.state;
	char why[CRI_MESSAGE_BYTES] = "";
	enum cri_result result = cri_call_judge(&r->cri.call, code, why);
	int err;

	if (result == CRI_OK) {
		err = cri_runtime_take(r, &r->cri.call.frames.message, now_ns);
		if (!err) {
			metrics_add(r->metrics, METRIC_METADATA_OK, 1);
			cri_runtime_go_on(r, done, now_ns);
			return;
		}
		result = CRI_NONSENSE;
		snprintf(why, sizeof(why), "%s",
			err == -EBADMSG ? "the answer cannot be decoded" : strerror(-err));
	}
	runtime_fail(r, result_metrics[result], why, now_ns);
}

static void cri_runtime_on_events_end(struct runtime *r, CURLcode code, uint64_t now_ns)
{
	char why[CRI_MESSAGE_BYTES] = "";
	enum cri_result result = cri_call_judge(&r->cri.events, code, why);
	bool has_none = result == CRI_REFUSED || result == CRI_NONSENSE || result == CRI_TOO_LARGE;

	runtime_on_events_end(r, has_none ? why : NULL, now_ns);
	cri_call_stop(&r->cri.events);
}

static void cri_runtime_on_end(struct runtime *r, const void *call, CURLcode code, uint64_t now_ns)
{
	if (call == &r->cri.call)
		cri_runtime_on_answer(r, code, now_ns);
	else if (call == &r->cri.events)
		cri_runtime_on_events_end(r, code, now_ns);
}

const struct runtime_protocol cri_protocol = {
	.begin = cri_runtime_begin,
	.on_end = cri_runtime_on_end,
	.stop = cri_runtime_stop,
	.has_events = cri_runtime_has_events,
	.event_count = cri_runtime_event_count,
};
