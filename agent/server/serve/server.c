/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs libmicrohttpd inside the agent's loop, without a thread. Its epoll descriptor is in the
 * loop's epoll; other pending work is asked for after each MHD_run().
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/server/serve/serve_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	CONNECTION_MEMORY_BYTES = 32 * 1024, /* headers and the chunk being sent */
	UPLOAD_LIMIT_BYTES = 4 << 20, /* pprof asks for many addresses in one request */
	LAST_TURNS = 4,
};

static const struct serve_limits FALLBACK_LIMITS = {
	.request_ns = UINT64_C(10000000000),
	.idle_ns = UINT64_C(30000000000),
	.sending_ns = UINT64_C(60000000000),
};

/* ---- turns ---------------------------------------------------------------------------------- */

static void server_on_run_timer(void *context)
{
	struct serve *s = context;

	s->run_timer = -1;
	server_run(s);
}

void server_run(struct serve *s)
{
	uint64_t before_ns = clock_thread_cpu_ns();
	unsigned long long wait;

	loop_step(s->loop, "http");
	(void)MHD_run(s->mhd);
	if (clients_charge(&s->clients, clock_thread_cpu_ns() - before_ns, clock_monotonic_ns()))
		connections_evict_idle(s, CLIENT_OTHER);
	connections_update_listening(s);
	if (s->run_timer >= 0 || MHD_get_timeout(s->mhd, &wait) != MHD_YES)
		return;
	/* A timer, not a loop here: other events get their turn in between. */
	(void)loop_timer(s->loop, wait * 1000000, 0, server_on_run_timer, s, &s->run_timer);
}

static void on_library_event(void *context, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	server_run(context);
}

/* ---- requests that wait --------------------------------------------------------------------- */

/* The library calls the request handler again for a request resumed without an answer. */
static void server_resume_waiting(struct serve *s)
{
	for (struct connection *c = s->connections; c; c = c->next) {
		if (!c->waits)
			continue;
		c->waits = false;
		MHD_resume_connection(c->mhd);
	}
}

static void server_on_waited(void *context)
{
	struct serve *s = context;

	s->waiting_timer = -1;
	server_resume_waiting(s);
	server_run(s);
}

/* Suspends a request whose class has used up its CPU time; false = it may be answered now. */
static bool server_defer(struct serve_reply *r)
{
	struct connection *c = r->connection;
	struct serve *s = r->serve;
	uint64_t wait_ns;

	if (s->stopping)
		return false;
	if (c->class == CLIENT_OTHER && routes_has_token(r)) {
		clients_promote(&s->clients);
		c->class = CLIENT_OWNER;
	}
	wait_ns = clients_request(&s->clients, c->class, clock_monotonic_ns());
	if (!wait_ns || (s->waiting_timer < 0 && loop_timer(s->loop, wait_ns, 0, server_on_waited,
							 s, &s->waiting_timer)))
		return false;
	c->waits = true;
	MHD_suspend_connection(c->mhd);
	return true;
}

/* ---- requests ------------------------------------------------------------------------------- */

static struct serve_reply *request_begin(struct serve *s, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *c = info ? info->socket_context : NULL;
	struct serve_reply *r = c ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->serve = s;
	r->mhd = mhd;
	r->connection = c;
	return r;
}

/* Called once the headers are complete, for each chunk of a body, and at the end of the request. */
static enum MHD_Result server_on_request(void *context, struct MHD_Connection *mhd, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size,
	void **request_context)
{
	struct serve_reply *r = *request_context;

	(void)version;
	(void)upload;
	if (!r) {
		*request_context = request_begin(context, mhd);
		return *request_context ? MHD_YES : MHD_NO;
	}
	if (r->failed)
		return MHD_NO;
	if (!*upload_size) {
		if (server_defer(r))
			return MHD_YES;
		r->connection->idle = false;
		return routes_answer(r, url, method);
	}
	/* No request uses a body: discard it. */
	r->upload_bytes += *upload_size;
	*upload_size = 0;
	return r->upload_bytes <= UPLOAD_LIMIT_BYTES ? MHD_YES : MHD_NO;
}

static void server_on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
	enum MHD_RequestTerminationCode code)
{
	struct serve_reply *r = *request_context;

	(void)context;
	(void)mhd;
	(void)code;
	if (!r)
		return;
	connections_become_idle(r->connection, r->serve->limits.idle_ns);
	free(r);
	*request_context = NULL;
}

/* ---- making --------------------------------------------------------------------------------- */

static int start_library(struct serve *s)
{
	const union MHD_DaemonInfo *info;
	int err = microhttpd_load();

	if (err)
		return err;
	s->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
		server_on_request, s, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)SERVE_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, 0U,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, server_on_completed,
		s, MHD_OPTION_NOTIFY_CONNECTION, connections_on_change, s, MHD_OPTION_END);
	if (!s->mhd)
		return -ENOMEM;
	info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -EOPNOTSUPP;
	s->epoll_fd = info->epoll_fd;
	return loop_add(s->loop, s->epoll_fd, EPOLLIN, on_library_event, s);
}

static struct serve_limits limits_or_fallback(struct serve_limits limits)
{
	if (!limits.request_ns)
		limits.request_ns = FALLBACK_LIMITS.request_ns;
	if (!limits.idle_ns)
		limits.idle_ns = FALLBACK_LIMITS.idle_ns;
	if (!limits.sending_ns)
		limits.sending_ns = FALLBACK_LIMITS.sending_ns;
	return limits;
}

int serve_create(const struct serve_options *options, struct serve **ret_serve)
{
	struct serve *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->loop = options->loop;
	s->handlers = options->handlers;
	s->page = options->page;
	s->limits = limits_or_fallback(options->limits);
	s->epoll_fd = -1;
	listeners_init(s);
	s->run_timer = s->deadline_timer = s->listen_timer = s->waiting_timer = -1;
	clients_init(&s->clients, clock_monotonic_ns());
	serve_set_token(s, options->token);
	err = start_library(s);
	if (!err && options->address)
		err = listeners_open(s, options->address);
	if (err) {
		serve_destroy(s);
		return err;
	}
	*ret_serve = s;
	return 0;
}

const char *serve_error(int err)
{
	return err == -ELIBACC ? microhttpd_missing : strerror(-err);
}

static struct serve_reply *any_held(const struct serve *s)
{
	for (const struct connection *c = s->connections; c; c = c->next) {
		if (c->held)
			return c->held;
	}
	return NULL;
}

/* Answers all held requests: the library must not be stopped with suspended ones. */
static void stop_library(struct serve *s)
{
	struct serve_reply *held;

	while ((held = any_held(s)) != NULL)
		reply_cancel(held);
	server_resume_waiting(s);
	for (int i = 0; i < LAST_TURNS; i++)
		(void)MHD_run(s->mhd);
	if (s->epoll_fd >= 0)
		loop_remove(s->loop, s->epoll_fd);
	MHD_stop_daemon(s->mhd);
}

void serve_destroy(struct serve *s)
{
	if (!s)
		return;
	s->stopping = true;
	listeners_unwatch(s);
	if (s->mhd)
		stop_library(s);
	listeners_deinit(s);
	loop_cancel(s->loop, s->run_timer);
	loop_cancel(s->loop, s->deadline_timer);
	loop_cancel(s->loop, s->listen_timer);
	loop_cancel(s->loop, s->waiting_timer);
	free(s);
}

void serve_set_token(struct serve *s, const char *token)
{
	assert(!token || strlen(token) <= SERVE_TOKEN_BYTES);
	s->token = token;
}

struct serve_figures serve_figures(const struct serve *s)
{
	return (struct serve_figures){ .cpu_ns = s->clients.cpu_ns,
		.delayed = s->clients.delayed,
		.refused = s->clients.refused };
}

void serve_charge(struct serve *s, uint64_t cpu_ns)
{
	clients_charge_owners(&s->clients, cpu_ns, clock_monotonic_ns());
}

unsigned int serve_port(const struct serve *s)
{
	return s->port;
}
