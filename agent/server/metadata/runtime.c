/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

enum { FAILURES_FOR_LONGEST = 6 };

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t POLL_NS = UINT64_C(10000000000);
static const uint64_t POLL_WITH_EVENTS_NS = UINT64_C(60000000000);
static const uint64_t SETTLE_NS = 200000000; /* what changes together is listed together */
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(60000000000);
static const uint64_t KEEP_NS = UINT64_C(300000000000);

void runtime_init(struct runtime *r, const struct runtime_protocol *protocol, const char *path,
	bool anywhere, struct metrics *metrics)
{
	*r = (struct runtime){
		.protocol = protocol, .path = path, .anywhere = anywhere, .metrics = metrics
	};
}

void runtime_deinit(struct runtime *r)
{
	r->protocol->stop(r);
	containers_unref(r->next);
	containers_unref(r->table);
}

/* ---- the socket ----------------------------------------------------------------------------- */

/* Who owns it decides what is believed. Returns -ENOENT, or -EPERM if it is somebody's. */
static int runtime_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISSOCK(st.st_mode))
		return -ENOENT;
	return st.st_uid == 0 || st.st_uid == geteuid() ? 0 : -EPERM;
}

/* An agent in a container sees the machine's files below init's root, if it shares its processes.
 */
static int runtime_find(struct runtime *r)
{
	const char *const roots[] = { "", "/proc/1/root" };
	int err = -ENOENT;

	for (size_t i = 0; err == -ENOENT && i < (r->anywhere ? ARRAY_SIZE(roots) : 1); i++) {
		if ((size_t)snprintf(r->socket, sizeof(r->socket), "%s%s", roots[i], r->path) >=
			sizeof(r->socket))
			return -ENOENT;
		err = runtime_check(r->socket);
	}
	return err;
}

/* ---- failures ------------------------------------------------------------------------------- */

void runtime_fail(struct runtime *r, enum metric metric, const char *why, uint64_t now_ns)
{
	uint64_t pause = SECOND_NS << MIN(r->failures, (unsigned int)FAILURES_FOR_LONGEST);

	metrics_add(r->metrics, metric, 1);
	if (!r->failures) /* the first of a row */
		log_warn("a container runtime does not answer as it should, trying again",
			"socket=\"%s\" error=\"%s\"", r->socket, why);
	r->failures++;
	snprintf(r->trouble, sizeof(r->trouble), "%.*s", RUNTIME_MESSAGE_BYTES - 1, why);
	r->protocol->stop(r);
	r->event_count = 0;
	containers_unref(take(r->next));
	r->name[0] = 0;
	r->no_events = false;
	r->busy = false;
	r->due_ns = now_ns + MIN(pause, LONGEST_PAUSE_NS);
}

static void runtime_succeed(struct runtime *r)
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

bool runtime_create_table(struct runtime *r, uint64_t now_ns)
{
	int err = containers_create(r->name, &r->next);

	if (err)
		runtime_fail(r, METRIC_METADATA_NO_MEMORY, strerror(-err), now_ns);
	return !err;
}

static void runtime_hurry(struct runtime *r, uint64_t at_ns)
{
	/* A runtime in trouble has its pauses. */
	if (!r->failures)
		r->due_ns = MIN(r->due_ns, MAX(at_ns, r->begun_ns + SECOND_NS));
}

void runtime_ask(struct runtime *r, uint64_t now_ns)
{
	runtime_hurry(r, now_ns);
}

static void runtime_look_at_events(struct runtime *r, uint64_t now_ns)
{
	uint64_t count = r->protocol->event_count(r);

	if (count == r->event_count)
		return;
	metrics_add(r->metrics, METRIC_METADATA_EVENTS, count - r->event_count);
	r->event_count = count;
	runtime_hurry(r, now_ns + SETTLE_NS);
}

void runtime_on_events(struct runtime *r, uint64_t now_ns)
{
	r->event_count = 0;
	r->events_begun_ns = now_ns;
}

/* One that breaks as soon as it begins is no reason to hurry. */
void runtime_on_events_end(struct runtime *r, const char *why, uint64_t now_ns)
{
	bool lasted = now_ns - r->events_begun_ns >= POLL_NS;

	runtime_look_at_events(r, now_ns);
	r->event_count = 0;
	r->no_events = why != NULL;
	if (why)
		log_info("a container runtime tells no events: its containers are listed at "
			 "intervals",
			"socket=\"%s\" reason=\"%s\"", r->socket, why);
	runtime_hurry(r, now_ns + (lasted && !why ? SECOND_NS : POLL_NS));
}

bool runtime_is_due(struct runtime *r, uint64_t now_ns)
{
	int err;

	runtime_look_at_events(r, now_ns);
	if (r->busy || now_ns < r->due_ns)
		return false;
	err = runtime_find(r);
	if (!err)
		return true;
	if (err == -EPERM)
		runtime_fail(r, METRIC_METADATA_UNREACHABLE,
			"the socket belongs neither to root nor to us", now_ns);
	else
		r->due_ns = now_ns + POLL_NS;
	return false;
}

void runtime_begin(struct runtime *r, CURLM *multi, uint64_t now_ns)
{
	if (!multi) {
		runtime_fail(r, METRIC_METADATA_NO_MEMORY, "libcurl cannot be loaded", now_ns);
		return;
	}
	r->multi = multi;
	r->begun_ns = now_ns;
	r->busy = true;
	r->protocol->begin(r, now_ns);
}

uint64_t runtime_next_ns(const struct runtime *r)
{
	return r->busy ? UINT64_MAX : r->due_ns;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void runtime_count_refused(struct runtime *r)
{
	const struct containers_refused *refused = containers_refused(r->table);

	metrics_add(r->metrics, METRIC_METADATA_INVALID, refused->invalid);
	metrics_add(r->metrics, METRIC_METADATA_CONFLICT, refused->conflicts);
	metrics_add(r->metrics, METRIC_METADATA_OVER_LIMIT, refused->over_limit);
	metrics_add(r->metrics, METRIC_METADATA_PAIRS, refused->pairs);
}

int runtime_finish(struct runtime *r, uint64_t now_ns)
{
	int err = containers_finish(r->next, r->table, now_ns, now_ns - MIN(now_ns, KEEP_NS));

	if (err)
		return err;
	containers_set_times(r->next, (struct containers_times){ r->begun_ns, now_ns });
	containers_unref(r->table);
	r->table = take(r->next);
	runtime_count_refused(r);
	runtime_succeed(r);
	r->busy = false;
	r->due_ns = now_ns + (r->protocol->has_events(r) ? POLL_WITH_EVENTS_NS : POLL_NS);
	return 0;
}

void runtime_on_end(struct runtime *r, const void *call, CURLcode code, uint64_t now_ns)
{
	r->protocol->on_end(r, call, code, now_ns);
}
