/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks: when whom, and how what they answered becomes visible. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/server/metadata/metadata_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { LONGEST_TURN_MS = 10000 };

static const uint64_t MILLISECOND_NS = 1000000;
static const uint64_t JOIN_NS = 1000000000; /* between two joins because pods have changed */

/* ---- what is told ---------------------------------------------------------------------------- */

/* Returns whether one that was found has neither answered nor failed yet. */
static bool metadata_write_runtimes(const struct metadata *m, struct metadata_figures *figures)
{
	bool waiting = false;

	for (size_t i = 0; i < m->count; i++) {
		const struct runtime *r = &m->runtimes[i];
		struct metadata_runtime_figures *f = &figures->runtimes[figures->count];

		if (!r->table && !*r->trouble) {
			waiting = waiting || r->busy;
			continue;
		}
		snprintf(f->socket, sizeof(f->socket), "%s", r->socket);
		snprintf(f->name, sizeof(f->name), "%s", r->name);
		snprintf(f->trouble, sizeof(f->trouble), "%s", r->trouble);
		f->containers = r->table ? containers_count(r->table) : 0;
		f->pods = r->table ? containers_pod_count(r->table) : 0;
		f->has_events = r->protocol->has_events(r);
		figures->count++;
	}
	return waiting;
}

static void metadata_write_api(const struct metadata *m, struct metadata_api_figures *f)
{
	const struct api_server *api = &m->api;

	f->is_asked = m->asks_api;
	if (!m->asks_api)
		return;
	snprintf(f->server, sizeof(f->server), "%.150s:%s", api->access.host, api->access.port);
	snprintf(f->node, sizeof(f->node), "%.*s", METADATA_TEXT_BYTES - 1, api->access.node);
	snprintf(f->trouble, sizeof(f->trouble), "%.*s", METADATA_TEXT_BYTES - 1, api->trouble);
	f->pods = api_pods_count(&api->pods);
	f->bytes = api->pods.bytes;
	f->is_watching = api->state == API_WATCHING;
	f->has_told = api->has_told;
}

static bool metadata_has_new_tables(const struct metadata *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->tables[i] != m->runtimes[i].table)
			return true;
	}
	return false;
}

/* NULL: memory is short, so pods have only what the runtimes tell. */
static struct joined *metadata_join(struct metadata *m, uint64_t now_ns)
{
	struct containers *tables[METADATA_RUNTIMES] = { NULL };
	struct joined *joined = NULL;

	for (size_t i = 0; i < m->count; i++)
		tables[i] = m->runtimes[i].table;
	if (joined_create(tables, m->count, &m->api.pods, &joined))
		metrics_add(m->metrics, METRIC_API_NO_MEMORY, 1);
	m->joined_changes = m->api.pods.changes;
	m->join_due_ns = now_ns + JOIN_NS;
	return joined;
}

static bool metadata_wants_join(const struct metadata *m, uint64_t now_ns)
{
	return m->asks_api && m->joined_changes != m->api.pods.changes && now_ns >= m->join_due_ns;
}

/* Tables and what is joined to them become visible together. */
static void metadata_publish(struct metadata *m, uint64_t now_ns)
{
	struct metadata_figures figures = { .count = 0 };
	struct containers *old[METADATA_RUNTIMES] = { NULL };
	bool joins = (m->asks_api && metadata_has_new_tables(m)) || metadata_wants_join(m, now_ns);
	struct joined *joined = joins ? metadata_join(m, now_ns) : NULL, *old_joined = NULL;
	bool waiting;

	waiting = metadata_write_runtimes(m, &figures);
	metadata_write_api(m, &figures.api);
	pthread_mutex_lock(&m->lock);
	m->figures = figures;
	m->waiting = waiting;
	for (size_t i = 0; i < m->count; i++) {
		struct containers *table = m->runtimes[i].table;

		if (m->tables[i] == table)
			continue;
		old[i] = m->tables[i];
		m->tables[i] = table ? containers_ref(table) : NULL;
	}
	if (joins) {
		old_joined = m->joined;
		m->joined = joined;
	}
	pthread_mutex_unlock(&m->lock);
	for (size_t i = 0; i < m->count; i++)
		containers_unref(old[i]);
	joined_unref(old_joined);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Loads libcurl when a runtime is to be asked for the first time. */
static CURLM *metadata_multi(struct metadata *m)
{
	if (!m->multi && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		m->multi = curl_multi_init();
	return m->multi;
}

static void metadata_step(struct metadata *m, uint64_t now_ns)
{
	for (size_t i = 0; i < m->count; i++) {
		if (runtime_is_due(&m->runtimes[i], now_ns))
			runtime_begin(&m->runtimes[i], metadata_multi(m), now_ns);
	}
	if (!m->asks_api)
		return;
	api_server_look(&m->api, now_ns);
	if (api_server_is_due(&m->api, now_ns))
		api_server_begin(&m->api, metadata_multi(m), now_ns);
}

static void metadata_take_answers(struct metadata *m)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(m->multi, &left)) != NULL) {
		CURLcode code = message->data.result;
		void *call = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
		for (size_t i = 0; i < m->count; i++)
			runtime_on_end(&m->runtimes[i], call, code, clock_monotonic_ns());
		if (m->asks_api)
			api_server_on_end(&m->api, call, code, clock_monotonic_ns());
	}
}

static int metadata_turn_ms(const struct metadata *m, uint64_t now_ns)
{
	uint64_t until = now_ns + LONGEST_TURN_MS * MILLISECOND_NS;

	for (size_t i = 0; i < m->count; i++)
		until = MIN(until, runtime_next_ns(&m->runtimes[i]));
	if (m->asks_api)
		until = MIN(until, api_server_next_ns(&m->api));
	if (m->asks_api && m->joined_changes != m->api.pods.changes)
		until = MIN(until, m->join_due_ns);
	return until <= now_ns ? 1 : (int)((until - now_ns) / MILLISECOND_NS) + 1;
}

static void metadata_wait(struct metadata *m, int milliseconds)
{
	struct pollfd fd = { .fd = m->wake_fd, .events = POLLIN };
	struct curl_waitfd extra = { .fd = m->wake_fd, .events = CURL_WAIT_POLLIN };
	uint64_t count;
	int running;

	if (!m->multi) {
		(void)poll(&fd, 1, milliseconds);
	} else {
		(void)curl_multi_poll(m->multi, &extra, 1, milliseconds, NULL);
		(void)curl_multi_perform(m->multi, &running);
		metadata_take_answers(m);
	}
	(void)!read(m->wake_fd, &count, sizeof(count));
}

/* False when the thread is to end. */
static bool metadata_take_wishes(struct metadata *m, uint64_t now_ns)
{
	bool stopping, asked;

	pthread_mutex_lock(&m->lock);
	stopping = m->stopping;
	asked = m->asked;
	m->asked = false;
	pthread_mutex_unlock(&m->lock);
	for (size_t i = 0; asked && i < m->count; i++)
		runtime_ask(&m->runtimes[i], now_ns);
	return !stopping;
}

void *metadata_run(void *context)
{
	struct metadata *m = context;
	uint64_t now = clock_monotonic_ns();

	pthread_setname_np(pthread_self(), "metadata");
	while (metadata_take_wishes(m, now)) {
		metadata_step(m, now);
		metadata_publish(m, now);
		metadata_wait(m, metadata_turn_ms(m, now));
		now = clock_monotonic_ns();
	}
	return NULL;
}
