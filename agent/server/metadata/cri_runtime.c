/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/cri_runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

enum {
	ANSWER_BYTES = 32 << 20, /* 10,000 pods with two containers each take about 20 MB */
	EVENT_BYTES = 4 << 20,
	EVENTS_BYTES_PER_SECOND = 1 << 20, /* of all events: a flood costs little */
	FAILURES_FOR_LONGEST = 6,
};

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t CALL_NS = UINT64_C(10000000000);
static const uint64_t POLL_NS = UINT64_C(10000000000);
static const uint64_t POLL_WITH_EVENTS_NS = UINT64_C(60000000000);
static const uint64_t SETTLE_NS = 200000000; /* what changes together is listed together */
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(60000000000);
static const uint64_t KEEP_NS = UINT64_C(300000000000);

void cri_runtime_init(
	struct cri_runtime *r, const char *path, bool anywhere, struct metrics *metrics)
{
	*r = (struct cri_runtime){ .path = path, .anywhere = anywhere, .metrics = metrics };
}

void cri_runtime_deinit(struct cri_runtime *r)
{
	cri_call_stop(&r->call);
	cri_call_stop(&r->events);
	containers_unref(r->next);
	containers_unref(r->table);
}

/* ---- the socket ----------------------------------------------------------------------------- */

/* Who owns it decides what is believed. Returns -ENOENT, or -EPERM if it is somebody's. */
static int cri_runtime_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISSOCK(st.st_mode))
		return -ENOENT;
	return st.st_uid == 0 || st.st_uid == geteuid() ? 0 : -EPERM;
}

/* An agent in a container sees the machine's files below init's root, if it shares its processes.
 */
static int cri_runtime_find(struct cri_runtime *r)
{
	const char *const roots[] = { "", "/proc/1/root" };
	int err = -ENOENT;

	for (size_t i = 0; err == -ENOENT && i < (r->anywhere ? ARRAY_SIZE(roots) : 1); i++) {
		if ((size_t)snprintf(r->socket, sizeof(r->socket), "%s%s", roots[i], r->path) >=
			sizeof(r->socket))
			return -ENOENT;
		err = cri_runtime_check(r->socket);
	}
	return err;
}

/* ---- failures ------------------------------------------------------------------------------- */

static const enum metric result_metrics[] = {
	[CRI_OK] = METRIC_METADATA_OK,
	[CRI_UNREACHABLE] = METRIC_METADATA_UNREACHABLE,
	[CRI_TIMEOUT] = METRIC_METADATA_TIMEOUT,
	[CRI_REFUSED] = METRIC_METADATA_REFUSED,
	[CRI_NONSENSE] = METRIC_METADATA_NONSENSE,
	[CRI_TOO_LARGE] = METRIC_METADATA_TOO_LARGE,
};

/* What was known stays. Logs the first failure of a row. */
static void cri_runtime_fail(struct cri_runtime *r, const char *why, uint64_t now_ns)
{
	uint64_t pause = SECOND_NS << MIN(r->failures, (unsigned int)FAILURES_FOR_LONGEST);

	if (!r->failures)
		log_warn("a container runtime does not answer as it should, trying again",
			"socket=\"%s\" error=\"%s\"", r->socket, why);
	r->failures++;
	snprintf(r->trouble, sizeof(r->trouble), "%s", why);
	cri_call_stop(&r->call);
	cri_call_stop(&r->events);
	containers_unref(take(r->next));
	r->name[0] = 0;
	r->no_events = false;
	r->state = CRI_IDLE;
	r->due_ns = now_ns + MIN(pause, LONGEST_PAUSE_NS);
}

static void cri_runtime_succeed(struct cri_runtime *r)
{
	if (r->failures || !r->has_told)
		log_info("a container runtime tells of its containers",
			"socket=\"%s\" runtime=\"%s\" containers=%zu pods=%zu", r->socket, r->name,
			containers_count(r->table), containers_pod_count(r->table));
	r->failures = 0;
	r->has_told = true;
	r->trouble[0] = 0;
}

/* ---- asking --------------------------------------------------------------------------------- */

static void cri_runtime_call(
	struct cri_runtime *r, enum cri_state state, const char *method, uint64_t now_ns)
{
	int err = cri_call_start(&r->call, &(struct cri_call_options){
						   .multi = r->multi,
						   .socket = r->socket,
						   .method = method,
						   .timeout_ns = CALL_NS,
						   .limit_bytes = ANSWER_BYTES,
					   });

	r->state = state;
	if (!err)
		return;
	metrics_add(r->metrics, METRIC_METADATA_NO_MEMORY, 1);
	cri_runtime_fail(r, strerror(-err), now_ns);
}

/* Without the stream the lists come often enough. */
static void cri_runtime_watch(struct cri_runtime *r)
{
	if (r->events.easy || r->no_events)
		return;
	r->event_count = 0;
	if (cri_call_start(&r->events, &(struct cri_call_options){
					       .multi = r->multi,
					       .socket = r->socket,
					       .method = "GetContainerEvents",
					       .is_stream = true,
					       .limit_bytes = EVENT_BYTES,
					       .bytes_per_second = EVENTS_BYTES_PER_SECOND,
				       }))
		metrics_add(r->metrics, METRIC_METADATA_NO_MEMORY, 1);
}

static void cri_runtime_list(struct cri_runtime *r, uint64_t now_ns)
{
	int err = containers_create(r->name, &r->next);

	if (err) {
		metrics_add(r->metrics, METRIC_METADATA_NO_MEMORY, 1);
		cri_runtime_fail(r, strerror(-err), now_ns);
		return;
	}
	cri_runtime_watch(r);
	cri_runtime_call(r, CRI_ASKED_CONTAINERS, "ListContainers", now_ns);
}

static void cri_runtime_hurry(struct cri_runtime *r, uint64_t at_ns)
{
	/* A runtime in trouble has its pauses. */
	if (!r->failures)
		r->due_ns = MIN(r->due_ns, MAX(at_ns, r->begun_ns + SECOND_NS));
}

void cri_runtime_ask(struct cri_runtime *r, uint64_t now_ns)
{
	cri_runtime_hurry(r, now_ns);
}

static void cri_runtime_look_at_events(struct cri_runtime *r, uint64_t now_ns)
{
	uint64_t count = r->events.frames.count;

	if (!r->events.easy || count == r->event_count)
		return;
	metrics_add(r->metrics, METRIC_METADATA_EVENTS, count - r->event_count);
	r->event_count = count;
	cri_runtime_hurry(r, now_ns + SETTLE_NS);
}

bool cri_runtime_is_due(struct cri_runtime *r, uint64_t now_ns)
{
	int err;

	cri_runtime_look_at_events(r, now_ns);
	if (r->state != CRI_IDLE || now_ns < r->due_ns)
		return false;
	err = cri_runtime_find(r);
	if (!err)
		return true;
	if (err == -EPERM)
		cri_runtime_fail(r, "the socket belongs neither to root nor to us", now_ns);
	else
		r->due_ns = now_ns + POLL_NS;
	return false;
}

void cri_runtime_begin(struct cri_runtime *r, CURLM *multi, uint64_t now_ns)
{
	if (!multi) {
		metrics_add(r->metrics, METRIC_METADATA_NO_MEMORY, 1);
		cri_runtime_fail(r, "libcurl cannot be loaded", now_ns);
		return;
	}
	r->multi = multi;
	r->begun_ns = now_ns;
	if (*r->name)
		cri_runtime_list(r, now_ns);
	else
		cri_runtime_call(r, CRI_ASKED_VERSION, "Version", now_ns);
}

uint64_t cri_runtime_next_ns(const struct cri_runtime *r)
{
	return r->state == CRI_IDLE ? r->due_ns : UINT64_MAX;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void cri_runtime_count_refused(struct cri_runtime *r)
{
	const struct containers_refused *refused = containers_refused(r->table);

	metrics_add(r->metrics, METRIC_METADATA_INVALID, refused->invalid);
	metrics_add(r->metrics, METRIC_METADATA_CONFLICT, refused->conflicts);
	metrics_add(r->metrics, METRIC_METADATA_OVER_LIMIT, refused->over_limit);
	metrics_add(r->metrics, METRIC_METADATA_PAIRS, refused->pairs);
}

static int cri_runtime_finish(struct cri_runtime *r, uint64_t now_ns)
{
	int err = containers_finish(r->next, r->table, now_ns, now_ns - MIN(now_ns, KEEP_NS));

	if (err)
		return err;
	containers_set_times(r->next, (struct containers_times){ r->begun_ns, now_ns });
	containers_unref(r->table);
	r->table = take(r->next);
	cri_runtime_count_refused(r);
	cri_runtime_succeed(r);
	r->state = CRI_IDLE;
	r->due_ns = now_ns + (r->events.easy ? POLL_WITH_EVENTS_NS : POLL_NS);
	return 0;
}

/* Takes the answer of the state's request and goes on to the next. */
static int cri_runtime_take(struct cri_runtime *r, const struct buffer *body, uint64_t now_ns)
{
	uint64_t too_large = 0;
	int err;

	switch (r->state) {
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
			err = cri_runtime_finish(r, now_ns);
	}
	metrics_add(r->metrics, METRIC_METADATA_ITEM_TOO_LARGE, too_large);
	return err;
}

static void cri_runtime_go_on(struct cri_runtime *r, enum cri_state done, uint64_t now_ns)
{
	cri_call_stop(&r->call);
	if (done == CRI_ASKED_VERSION)
		cri_runtime_list(r, now_ns);
	else if (done == CRI_ASKED_CONTAINERS)
		cri_runtime_call(r, CRI_ASKED_PODS, "ListPodSandbox", now_ns);
}

static bool cri_runtime_on_answer(struct cri_runtime *r, CURLcode code, uint64_t now_ns)
{
	const enum cri_state done = r->state;
	char why[CRI_MESSAGE_BYTES] = "";
	enum cri_result result = cri_call_judge(&r->call, code, why);
	int err;

	if (result == CRI_OK) {
		err = cri_runtime_take(r, &r->call.frames.message, now_ns);
		if (!err) {
			metrics_add(r->metrics, METRIC_METADATA_OK, 1);
			cri_runtime_go_on(r, done, now_ns);
			return done == CRI_ASKED_PODS;
		}
		result = CRI_NONSENSE;
		snprintf(why, sizeof(why), "%s",
			err == -EBADMSG ? "the answer cannot be decoded" : strerror(-err));
	}
	metrics_add(r->metrics, result_metrics[result], 1);
	cri_runtime_fail(r, why, now_ns);
	return false;
}

/* It will be opened again with the next list, unless the runtime has none. */
static void cri_runtime_on_events_end(struct cri_runtime *r, CURLcode code, uint64_t now_ns)
{
	char why[CRI_MESSAGE_BYTES] = "";
	enum cri_result result;

	cri_runtime_look_at_events(r, now_ns);
	result = cri_call_judge(&r->events, code, why);
	r->no_events = result == CRI_REFUSED || result == CRI_NONSENSE || result == CRI_TOO_LARGE;
	if (r->no_events)
		log_info("a container runtime tells no events: its containers are listed at "
			 "intervals",
			"socket=\"%s\" reason=\"%s\"", r->socket, why);
	cri_call_stop(&r->events);
	cri_runtime_hurry(r, now_ns + POLL_NS);
}

bool cri_runtime_on_end(
	struct cri_runtime *r, struct cri_call *call, CURLcode code, uint64_t now_ns)
{
	if (call == &r->call)
		return cri_runtime_on_answer(r, code, now_ns);
	if (call == &r->events)
		cri_runtime_on_events_end(r, code, now_ns);
	return false;
}
