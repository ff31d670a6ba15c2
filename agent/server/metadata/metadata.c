/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/server/metadata/cri_runtime.h"
#include "agent/server/metadata/joined.h"
#include "agent/server/metadata/kubernetes/api_server.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum { LONGEST_TURN_MS = 10000 };

static const uint64_t MILLISECOND_NS = 1000000;
static const uint64_t JOIN_NS = 1000000000; /* between two joins because pods have changed */

/* Where runtimes listen by default. Kubernetes, k3s and RKE2, k0s, MicroK8s, CRI-O, Docker's shim.
 */
static const char *const known_sockets[] = {
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
	"/run/k3s/containerd/containerd.sock",
	"/run/k0s/containerd.sock",
	"/var/snap/microk8s/common/run/containerd.sock",
	"/run/cri-dockerd.sock",
};

_Static_assert(ARRAY_SIZE(known_sockets) <= METADATA_RUNTIMES, "known_sockets");

struct metadata {
	pthread_t thread;
	bool running;
	int wake_fd;
	char *path; /* as configured; NULL = known_sockets */
	struct metrics *metrics;

	pthread_mutex_t lock; /* protects the fields up to the blank line */
	bool stopping, asked;
	bool waiting; /* as in struct metadata_view */
	struct containers *tables[METADATA_RUNTIMES]; /* NULL = none yet */
	struct joined *joined; /* of these tables; NULL = none yet, or memory is short */
	struct metadata_figures figures;

	/* Used by the thread only. */
	CURLM *multi; /* NULL until there is a socket: libcurl is loaded then */
	struct cri_runtime runtimes[METADATA_RUNTIMES];
	size_t count;
	bool asks_api;
	struct api_server api; /* if ASKS_API */
	uint64_t joined_changes; /* of the API server's pods, in `joined` */
	uint64_t join_due_ns; /* not before */
};

/* ---- the thread ----------------------------------------------------------------------------- */

/* Returns whether one that was found has neither answered nor failed yet. */
static bool metadata_write_runtimes(const struct metadata *m, struct metadata_figures *figures)
{
	bool waiting = false;

	for (size_t i = 0; i < m->count; i++) {
		const struct cri_runtime *r = &m->runtimes[i];
		struct metadata_runtime_figures *f = &figures->runtimes[figures->count];

		if (!r->table && !*r->trouble) {
			waiting = waiting || r->state != CRI_IDLE;
			continue;
		}
		snprintf(f->socket, sizeof(f->socket), "%s", r->socket);
		snprintf(f->name, sizeof(f->name), "%s", r->name);
		snprintf(f->trouble, sizeof(f->trouble), "%s", r->trouble);
		f->containers = r->table ? containers_count(r->table) : 0;
		f->pods = r->table ? containers_pod_count(r->table) : 0;
		f->has_events = r->events.easy != NULL;
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
		if (cri_runtime_is_due(&m->runtimes[i], now_ns))
			cri_runtime_begin(&m->runtimes[i], metadata_multi(m), now_ns);
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
			(void)cri_runtime_on_end(&m->runtimes[i], call, code, clock_monotonic_ns());
		if (m->asks_api)
			api_server_on_end(&m->api, call, code, clock_monotonic_ns());
	}
}

static int metadata_turn_ms(const struct metadata *m, uint64_t now_ns)
{
	uint64_t until = now_ns + LONGEST_TURN_MS * MILLISECOND_NS;

	for (size_t i = 0; i < m->count; i++)
		until = MIN(until, cri_runtime_next_ns(&m->runtimes[i]));
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
		cri_runtime_ask(&m->runtimes[i], now_ns);
	return !stopping;
}

static void *metadata_run(void *context)
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

/* ---- making --------------------------------------------------------------------------------- */

static void metadata_add_runtimes(struct metadata *m)
{
	if (m->path) {
		cri_runtime_init(&m->runtimes[m->count++], m->path, false, m->metrics);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known_sockets); i++)
		cri_runtime_init(&m->runtimes[m->count++], known_sockets[i], true, m->metrics);
}

/* Blocks all signals in the thread: the loop's thread handles them. */
static int metadata_start(struct metadata *m)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&m->thread, NULL, metadata_run, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	m->running = !err;
	return -err;
}

static const char *metadata_socket_path(const char *socket)
{
	static const char scheme[] = "unix://";

	return socket + (strncmp(socket, scheme, strlen(scheme)) ? 0 : strlen(scheme));
}

bool metadata_socket_is_valid(const char *socket)
{
	const char *path = metadata_socket_path(socket);

	return *path == '/' && strlen(path) < CRI_SOCKET_BYTES;
}

static int metadata_make(struct metadata *m, const struct metadata_options *o)
{
	if (o->socket && !metadata_socket_is_valid(o->socket))
		return -EINVAL;
	m->path = o->socket ? strdup(metadata_socket_path(o->socket)) : NULL;
	if (o->socket && !m->path)
		return -ENOMEM;
	m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->wake_fd < 0)
		return -errno;
	metadata_add_runtimes(m);
	m->asks_api = o->api != NULL;
	if (o->api)
		api_server_init(&m->api, o->api, m->metrics);
	return metadata_start(m);
}

int metadata_create(const struct metadata_options *options, struct metrics *metrics,
	struct metadata **ret_metadata)
{
	struct metadata *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	m->metrics = metrics;
	m->wake_fd = -1;
	m->waiting = true;
	err = metadata_make(m, options);
	if (err) {
		metadata_destroy(m);
		return err;
	}
	*ret_metadata = m;
	return 0;
}

static void metadata_wake(struct metadata *m)
{
	const uint64_t one = 1;

	(void)!write(m->wake_fd, &one, sizeof(one));
}

void metadata_destroy(struct metadata *m)
{
	if (!m)
		return;
	if (m->running) {
		pthread_mutex_lock(&m->lock);
		m->stopping = true;
		pthread_mutex_unlock(&m->lock);
		metadata_wake(m);
		pthread_join(m->thread, NULL);
	}
	for (size_t i = 0; i < m->count; i++) {
		cri_runtime_deinit(&m->runtimes[i]);
		containers_unref(m->tables[i]);
	}
	if (m->asks_api)
		api_server_deinit(&m->api);
	joined_unref(m->joined);
	if (m->multi)
		curl_multi_cleanup(m->multi);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
	pthread_mutex_destroy(&m->lock);
	free(m->path);
	free(m);
}

void metadata_ask(struct metadata *m)
{
	pthread_mutex_lock(&m->lock);
	m->asked = true;
	pthread_mutex_unlock(&m->lock);
	metadata_wake(m);
}

/* ---- reading -------------------------------------------------------------------------------- */

void metadata_view_init(struct metadata_view *view, struct metadata *m)
{
	*view = (struct metadata_view){ 0 };
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	view->waiting = m->waiting;
	for (size_t i = 0; i < METADATA_RUNTIMES; i++) {
		if (m->tables[i])
			view->tables[view->count++] = containers_ref(m->tables[i]);
	}
	view->joined = m->joined ? joined_ref(m->joined) : NULL;
	pthread_mutex_unlock(&m->lock);
}

void metadata_figures(struct metadata *m, struct metadata_figures *ret_figures)
{
	pthread_mutex_lock(&m->lock);
	*ret_figures = m->figures;
	pthread_mutex_unlock(&m->lock);
}
