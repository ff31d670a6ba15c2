/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/kubernetes/api_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret_file.h"

enum {
	API_URL_BYTES = 16 << 10,
	PAGE_PODS = 500,
	TOKEN_BYTES = 16 << 10,
	FAILURES_FOR_LONGEST = 9,
	FAILURES_FOR_LIST = 3, /* of a watch: perhaps its place is what the server does not like */
};

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t LIST_NS = UINT64_C(30000000000);
static const uint64_t LIST_BYTES = UINT64_C(128)
				   << 20; /* of one page: servers may ignore the limit */
static const uint64_t WATCH_BYTES_PER_SECOND = 4 << 20; /* a flood of events costs little */
/* The server ends a watch after so long, at random, lest all nodes come back at once. */
static const uint64_t WATCH_SECONDS = 240, WATCH_MORE_SECONDS = 240;
static const uint64_t WATCH_GRACE_NS = UINT64_C(30000000000); /* then we do */
static const uint64_t SHORT_WATCH_NS = UINT64_C(5000000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(60000000000);
static const uint64_t LONGEST_REFUSED_PAUSE_NS = UINT64_C(300000000000);
static const uint64_t KEEP_NS = UINT64_C(300000000000);

/* Without `spec` and `status`; a server that cannot do that sends whole pods. */
static const char list_type[] = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
				"application/json";
static const char watch_type[] = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
				 "application/json";

void api_server_init(struct api_server *s, const struct api_access *access, struct metrics *metrics)
{
	*s = (struct api_server){ .access = *access, .metrics = metrics };
	api_pods_init(&s->pods);
	/* Only pauses are made of it: a failure does not matter. */
	(void)!getrandom(&s->random, sizeof(s->random), GRND_NONBLOCK);
}

void api_server_deinit(struct api_server *s)
{
	json_call_stop(&s->call);
	api_pods_deinit(&s->pods);
}

/* SplitMix64 */
static uint64_t api_server_random(struct api_server *s, uint64_t below)
{
	uint64_t z = (s->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

/* What the call has left out is counted before. */
static void api_server_stop(struct api_server *s)
{
	json_call_stop(&s->call);
	s->counted_too_large = 0;
}

/* ---- failures ------------------------------------------------------------------------------- */

static const enum metric api_result_metrics[] = {
	[CALL_OK] = METRIC_API_OK,
	[CALL_UNREACHABLE] = METRIC_API_UNREACHABLE,
	[CALL_TIMEOUT] = METRIC_API_TIMEOUT,
	[CALL_REFUSED] = METRIC_API_REFUSED,
	[CALL_EXPIRED] = METRIC_API_EXPIRED,
	[CALL_BUSY] = METRIC_API_BUSY,
	[CALL_NONSENSE] = METRIC_API_NONSENSE,
	[CALL_TOO_LARGE] = METRIC_API_TOO_LARGE,
};

/* Half of it at least, the rest at random. RETRY_S: what the server asks for. */
static uint64_t api_server_pause_ns(
	struct api_server *s, enum json_call_result result, uint64_t retry_s)
{
	uint64_t longest = result == CALL_REFUSED ? LONGEST_REFUSED_PAUSE_NS : LONGEST_PAUSE_NS;
	uint64_t pause = SECOND_NS << MIN(s->failures, (unsigned int)FAILURES_FOR_LONGEST);
	uint64_t asked = MIN(retry_s, LONGEST_REFUSED_PAUSE_NS / SECOND_NS) * SECOND_NS;

	pause = MIN(pause, longest);
	pause = pause / 2 + api_server_random(s, pause / 2);
	return MAX(pause, asked + (asked ? api_server_random(s, SECOND_NS) : 0));
}

/* What was known stays. Logs the first failure of a row. */
static void api_server_fail(struct api_server *s, enum json_call_result result, const char *why,
	uint64_t retry_s, uint64_t now_ns)
{
	const bool watched = s->state == API_WATCHING;

	if (!s->failures)
		log_warn("the API server does not tell of this node's pods, trying again",
			"server=\"%s:%s\" error=\"%s\"", s->access.host, s->access.port, why);
	s->due_ns = now_ns + api_server_pause_ns(s, result, retry_s);
	s->failures++;
	snprintf(s->trouble, sizeof(s->trouble), "%s", why);
	api_server_stop(s);
	s->state = API_IDLE;
	s->next[0] = 0;
	if (watched && s->failures >= FAILURES_FOR_LIST)
		s->version[0] = 0;
}

static void api_server_succeed(struct api_server *s)
{
	if (s->failures || !s->has_told)
		log_info("the API server tells of this node's pods",
			"server=\"%s:%s\" node=\"%s\" pods=%zu", s->access.host, s->access.port,
			s->access.node, api_pods_count(&s->pods));
	s->failures = 0;
	s->has_told = true;
	s->trouble[0] = 0;
}

/* ---- values --------------------------------------------------------------------------------- */

static int api_server_refuse(struct api_server *s, int err)
{
	if (err == -EBADMSG)
		metrics_add(s->metrics, METRIC_API_INVALID, 1);
	else if (err == -E2BIG)
		metrics_add(s->metrics, METRIC_API_ITEM_TOO_LARGE, 1);
	else
		return err;
	return 0;
}

static int api_server_on_item(void *context, const void *bytes, size_t size)
{
	struct api_server *s = context;
	struct api_pod *pod;
	uint64_t refused = 0;
	int err = pod_json_pod(bytes, size, &pod, &refused);

	metrics_add(s->metrics, METRIC_METADATA_PAIRS, refused);
	return err ? api_server_refuse(s, err) : api_pods_set(&s->pods, pod);
}

/*
 * 410: the place where the watch should go on is forgotten (api-concepts, "410 Gone responses").
 * The watch ends, whether or not the server closes it.
 */
static int api_server_on_watch_error(struct api_server *s, const struct pod_json_event *event)
{
	s->watch_expired = event->code == 410;
	s->watch_failed = true;
	snprintf(s->trouble, sizeof(s->trouble), "the watch ended: %d %s", event->code,
		event->message);
	return -ECANCELED;
}

static int api_server_on_event(void *context, const void *bytes, size_t size)
{
	struct api_server *s = context;
	struct pod_json_event event;
	uint64_t refused = 0;
	int err = pod_json_event(bytes, size, &event, &refused);

	metrics_add(s->metrics, METRIC_METADATA_PAIRS, refused);
	if (err)
		return api_server_refuse(s, err);
	metrics_add(s->metrics, METRIC_API_EVENTS, 1);
	if (event.type == POD_JSON_ERROR)
		return api_server_on_watch_error(s, &event);
	if (*event.version)
		memcpy(s->version, event.version, sizeof(s->version));
	if (!event.pod)
		return event.pod_error ? api_server_refuse(s, event.pod_error) : 0;
	if (event.type == POD_JSON_IS)
		return api_pods_set(&s->pods, event.pod);
	api_pods_delete(&s->pods, event.pod, clock_monotonic_ns());
	api_pod_unref(event.pod);
	return 0;
}

/* ---- asking --------------------------------------------------------------------------------- */

static int api_server_escape(CURL *easy, struct buffer *url, const char *name, const char *value)
{
	char *escaped = curl_easy_escape(easy, value, 0);
	int err = escaped ? buffer_printf(url, "&%s=%s", name, escaped) : -ENOMEM;

	curl_free(escaped);
	return err;
}

/*
 * The first list may come from the server's cache (version 0), which costs it little. Pages and
 * what replaces a forgotten place must be newer.
 */
static int api_server_write_query(struct api_server *s, CURL *easy, struct buffer *url)
{
	int err;

	if (s->state == API_WATCHING) {
		err = buffer_printf(url,
			"&watch=1&allowWatchBookmarks=true&timeoutSeconds=%" PRIu64,
			s->watch_seconds);
		return err ? err : api_server_escape(easy, url, "resourceVersion", s->version);
	}
	err = buffer_printf(url, "&limit=%d", PAGE_PODS);
	if (!err && *s->next)
		return api_server_escape(easy, url, "continue", s->next);
	return err || s->wants_newest ? err : buffer_printf(url, "&resourceVersion=0");
}

static int api_server_write_url(struct api_server *s, struct buffer *url)
{
	const struct api_access *a = &s->access;
	const bool is_v6 = strchr(a->host, ':') != NULL;
	CURL *easy = curl_easy_init(); /* libcurl before 7.82 escapes only with one */
	int err = easy ? buffer_printf(url,
				 "https://%s%s%s:%s/api/v1/pods?fieldSelector=spec.nodeName%%3D%s",
				 is_v6 ? "[" : "", a->host, is_v6 ? "]" : "", a->port, a->node)
		       : -ENOMEM;

	if (!err)
		err = api_server_write_query(s, easy, url);
	if (!err)
		err = buffer_append(url, "", 1);
	if (easy)
		curl_easy_cleanup(easy);
	return err;
}

static int api_server_call(struct api_server *s, const char *token, const char *ca_file)
{
	autocall(buffer_deinit) struct buffer url;
	const bool watches = s->state == API_WATCHING;
	int err;

	buffer_init(&url, API_URL_BYTES);
	err = api_server_write_url(s, &url);
	if (err)
		return err;
	return json_call_start(&s->call,
		&(struct json_call_options){
			.multi = s->multi,
			.url = (const char *)url.bytes,
			.token = token,
			.ca_file = ca_file,
			.accept = watches ? watch_type : list_type,
			.form = watches ? JSON_PIECES_VALUES : JSON_PIECES_ITEMS,
			.on_value = watches ? api_server_on_event : api_server_on_item,
			.context = s,
			.value_bytes = POD_JSON_VALUE_BYTES,
			.answer_bytes = watches ? 0 : LIST_BYTES,
			.bytes_per_second = watches ? WATCH_BYTES_PER_SECOND : 0,
			.timeout_ns =
				watches ? s->watch_seconds * SECOND_NS + WATCH_GRACE_NS : LIST_NS,
		});
}

/* The token is read each time: kubelet replaces it long before it expires. */
static void api_server_ask(struct api_server *s, uint64_t now_ns)
{
	autocall(secret_free) char *token = NULL;
	char path[API_PATH_BYTES + 16], why[CALL_MESSAGE_BYTES + API_PATH_BYTES];
	int err;

	s->begun_ns = now_ns;
	snprintf(path, sizeof(path), "%s/token", s->access.directory);
	err = secret_file_read(path, TOKEN_BYTES, &token);
	if (err) {
		metrics_add(s->metrics, METRIC_API_NO_TOKEN, 1);
		snprintf(why, sizeof(why), "%s: %s", path, secret_file_explain(err));
		api_server_fail(s, CALL_REFUSED, why, 0, now_ns);
		return;
	}
	snprintf(path, sizeof(path), "%s/ca.crt", s->access.directory);
	err = api_server_call(s, token, path);
	if (!err)
		return;
	metrics_add(s->metrics, METRIC_API_NO_MEMORY, 1);
	api_server_fail(s, CALL_UNREACHABLE, strerror(-err), 0, now_ns);
}

static void api_server_list(struct api_server *s, uint64_t now_ns)
{
	s->state = API_LISTING;
	if (!*s->next)
		api_pods_begin_list(&s->pods);
	api_server_ask(s, now_ns);
}

static void api_server_watch(struct api_server *s, uint64_t now_ns)
{
	s->state = API_WATCHING;
	s->watch_expired = s->watch_failed = false;
	s->watch_seconds = WATCH_SECONDS + api_server_random(s, WATCH_MORE_SECONDS);
	api_server_ask(s, now_ns);
}

bool api_server_is_due(const struct api_server *s, uint64_t now_ns)
{
	return s->state == API_IDLE && now_ns >= s->due_ns;
}

void api_server_begin(struct api_server *s, CURLM *multi, uint64_t now_ns)
{
	if (!multi) {
		metrics_add(s->metrics, METRIC_API_NO_MEMORY, 1);
		api_server_fail(s, CALL_UNREACHABLE, "libcurl cannot be loaded", 0, now_ns);
		return;
	}
	s->multi = multi;
	if (*s->version)
		api_server_watch(s, now_ns);
	else
		api_server_list(s, now_ns);
}

uint64_t api_server_next_ns(const struct api_server *s)
{
	return s->state == API_IDLE ? s->due_ns : UINT64_MAX;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void api_server_count(struct api_server *s)
{
	metrics_add(s->metrics, METRIC_API_CONFLICT, s->pods.conflicts - s->counted_conflicts);
	metrics_add(s->metrics, METRIC_API_OVER_LIMIT, s->pods.over_limit - s->counted_over_limit);
	metrics_add(s->metrics, METRIC_API_ITEM_TOO_LARGE,
		s->call.pieces.too_large - s->counted_too_large);
	s->counted_conflicts = s->pods.conflicts;
	s->counted_over_limit = s->pods.over_limit;
	s->counted_too_large = s->call.pieces.too_large;
}

/* One page. */
static void api_server_on_list(struct api_server *s, uint64_t now_ns)
{
	const struct buffer *rest = &s->call.pieces.rest;
	struct pod_json_answer answer;
	int err = pod_json_answer(rest->bytes, rest->size, &answer);

	if (err || !answer.is_list || (!*answer.version && !*answer.next)) {
		metrics_add(s->metrics, METRIC_API_NONSENSE, 1);
		api_server_fail(s, CALL_NONSENSE, "the answer is no list of pods", 0, now_ns);
		return;
	}
	metrics_add(s->metrics, METRIC_API_OK, 1);
	api_server_stop(s);
	memcpy(s->next, answer.next, sizeof(s->next));
	if (*s->next) {
		api_server_list(s, now_ns);
		return;
	}
	memcpy(s->version, answer.version, sizeof(s->version));
	api_pods_end_list(&s->pods, now_ns);
	s->wants_newest = false;
	api_server_succeed(s);
	api_server_watch(s, now_ns);
}

/* Its place is forgotten: what a list from the cache says may be older than what we know. */
static void api_server_list_again(struct api_server *s)
{
	s->version[0] = 0;
	s->wants_newest = true;
}

/* The watch has ended as it should. One that ends at once is not opened again at once. */
static void api_server_on_watch_end(struct api_server *s, uint64_t now_ns)
{
	char why[CALL_MESSAGE_BYTES];

	snprintf(why, sizeof(why), "%s",
		s->watch_failed ? s->trouble : "the watch ended as soon as it began");
	if (s->watch_expired)
		api_server_list_again(s);
	if (s->watch_failed || now_ns < s->begun_ns + SHORT_WATCH_NS) {
		enum json_call_result result = s->watch_expired ? CALL_EXPIRED : CALL_REFUSED;

		metrics_add(s->metrics, api_result_metrics[result], 1);
		api_server_fail(s, result, why, 0, now_ns);
		return;
	}
	metrics_add(s->metrics, METRIC_API_OK, 1);
	api_server_succeed(s);
	api_server_stop(s);
	api_server_watch(s, now_ns);
}

void api_server_on_end(struct api_server *s, const void *call, CURLcode code, uint64_t now_ns)
{
	char why[CALL_MESSAGE_BYTES] = "";
	enum json_call_result result;
	uint64_t retry_s;

	if (call != &s->call || s->state == API_IDLE)
		return;
	api_server_count(s);
	result = json_call_judge(&s->call, code, why, &retry_s);
	if (s->state == API_WATCHING && (result == CALL_OK || s->watch_failed)) {
		api_server_on_watch_end(s, now_ns);
	} else if (result == CALL_OK) {
		api_server_on_list(s, now_ns);
	} else {
		metrics_add(s->metrics, api_result_metrics[result], 1);
		if (result == CALL_EXPIRED)
			api_server_list_again(s);
		api_server_fail(s, result, why, retry_s, now_ns);
	}
}

/* An answer that goes on is a good one, if it is more than an open connection. */
static bool api_server_is_watching(const struct api_server *s, uint64_t now_ns)
{
	long status = 0;

	if (s->state != API_WATCHING || s->watch_failed || now_ns < s->begun_ns + SHORT_WATCH_NS)
		return false;
	curl_easy_getinfo(s->call.easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200;
}

void api_server_look(struct api_server *s, uint64_t now_ns)
{
	api_server_count(s);
	if (s->failures && api_server_is_watching(s, now_ns))
		api_server_succeed(s);
	if (api_pods_forget(&s->pods, now_ns - MIN(now_ns, KEEP_NS)))
		metrics_add(s->metrics, METRIC_API_NO_MEMORY, 1);
}
