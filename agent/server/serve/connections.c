/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients from accept() to close(). We accept connections ourselves, to decide what happens when
 * there are too many, and we keep the time limits: the library restarts its own with each byte, so
 * a slow client could hold a connection for ever. Here a connection has one deadline, which moves
 * only on whole steps: request complete, answer taken, next request.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/server/serve/peer.h"
#include "agent/server/serve/serve_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { ACCEPTS_PER_TURN = 16 };

/* after running out of descriptors or memory */
static const uint64_t RETRY_NS = UINT64_C(1000000000);

/* ---- deadlines ------------------------------------------------------------------------------ */

static void connections_on_deadline(void *context);

static void connections_arm_deadline(struct serve *s, uint64_t deadline_ns)
{
	uint64_t now = clock_monotonic_ns();

	if (s->deadline_timer >= 0 && s->deadline_timer_ns <= deadline_ns)
		return;
	if (s->deadline_timer >= 0)
		loop_cancel(s->loop, s->deadline_timer);
	s->deadline_timer = -1;
	s->deadline_timer_ns = deadline_ns;
	(void)loop_timer(s->loop, deadline_ns > now ? deadline_ns - now : 0, 0,
		connections_on_deadline, s, &s->deadline_timer);
}

void connections_set_deadline(struct connection *c, uint64_t delay_ns)
{
	c->deadline_ns = delay_ns ? clock_monotonic_ns() + delay_ns : 0;
	if (delay_ns)
		connections_arm_deadline(c->serve, c->deadline_ns);
}

/* shutdown() makes the library find the closed connection when it runs next. */
static void connections_on_deadline(void *context)
{
	struct serve *s = context;
	uint64_t now = clock_monotonic_ns(), next = UINT64_MAX;

	s->deadline_timer = -1;
	for (struct connection *c = s->connections; c; c = c->next) {
		if (c->deadline_ns && c->deadline_ns <= now) {
			shutdown(c->fd, SHUT_RDWR);
			c->deadline_ns = 0;
		}
		if (c->deadline_ns)
			next = MIN(next, c->deadline_ns);
	}
	if (next != UINT64_MAX)
		connections_arm_deadline(s, next);
	server_run(s);
}

/* ---- connections ---------------------------------------------------------------------------- */

/*
 * Closes the connection of CLASS that has gone longest without a complete request, so that neither
 * forgotten connections nor slow clients keep others out.
 */
void connections_evict_idle(struct serve *s, enum client_class class)
{
	struct connection *oldest = NULL;

	for (struct connection *c = s->connections; c; c = c->next) {
		if (c->class == class && c->idle && !c->waits &&
			(!oldest || c->idle_since_ns < oldest->idle_since_ns))
			oldest = c;
	}
	if (oldest)
		shutdown(oldest->fd, SHUT_RDWR);
}

/* False if no further client can be accepted now. */
static bool connections_accept_one(struct serve *s, const struct listener *listener)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	int fd = accept4(
		listener->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return errno == ECONNABORTED || errno == EINTR;
	/* Closes FD when it fails. */
	(void)MHD_add_connection(s->mhd, fd, (struct sockaddr *)&from, size);
	return true;
}

static void connections_on_retry(void *context)
{
	struct serve *s = context;

	s->listen_timer = -1;
	connections_update_listening(s);
}

static void connections_pause_listening(struct serve *s, uint64_t delay_ns)
{
	if (s->listen_timer < 0)
		(void)loop_timer(s->loop, delay_ns, 0, connections_on_retry, s, &s->listen_timer);
}

void connections_on_client(void *context, int fd, uint32_t events)
{
	const struct listener *listener = context;
	struct serve *s = listener->serve;
	uint64_t before_ns = clock_thread_cpu_ns(), wait_ns;
	bool more = true;

	(void)fd;
	(void)events;
	loop_step(s->loop, "http");
	for (int i = 0; more && i < ACCEPTS_PER_TURN && s->connection_count < SERVE_MAX_CONNECTIONS;
		i++)
		more = connections_accept_one(s, listener);
	/*
	 * Out of descriptors or memory: stop listening for a while, or the waiting client wakes us
	 * over and over.
	 */
	if (!more && errno != EAGAIN)
		connections_pause_listening(s, RETRY_NS);
	clients_charge_accepting(
		&s->clients, clock_thread_cpu_ns() - before_ns, clock_monotonic_ns());
	wait_ns = clients_accept_wait_ns(&s->clients, clock_monotonic_ns());
	if (wait_ns)
		connections_pause_listening(s, wait_ns);
	if (s->connection_count >= SERVE_MAX_CONNECTIONS)
		connections_evict_idle(s, CLIENT_OWNER);
	server_run(s);
}

void connections_update_listening(struct serve *s)
{
	bool wanted =
		s->connection_count < SERVE_MAX_CONNECTIONS && s->listen_timer < 0 && !s->stopping;

	for (size_t i = 0; i < SERVE_LISTENERS; i++) {
		struct listener *listener = &s->listeners[i];

		if (listener->fd < 0 || wanted == listener->watched)
			continue;
		loop_set_events(s->loop, listener->fd, wanted ? EPOLLIN : 0);
		listener->watched = wanted;
	}
}

void connections_become_idle(struct connection *c, uint64_t limit_ns)
{
	c->idle = true;
	c->idle_since_ns = clock_monotonic_ns();
	connections_set_deadline(c, limit_ns);
}

/*
 * Who listens on a socket file by --http-address gives it to others with its permissions. Elsewhere
 * the user who owns the client's socket decides, and on our own socket file the group, too.
 */
static enum client_class connection_class(const struct listener *listener, int fd)
{
	bool is_file = address_is_socket_file(&listener->address);
	uid_t uid;

	if (is_file && listener->lock_fd < 0)
		return CLIENT_OWNER;
	if (!peer_uid(fd, &uid) && (uid == 0 || uid == geteuid()))
		return CLIENT_OWNER;
	return is_file && peer_is_in_group(fd, getegid()) ? CLIENT_OWNER : CLIENT_OTHER;
}

static void connection_begin(struct serve *s, struct MHD_Connection *mhd, void **ret_context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	const struct listener *listener = info ? listeners_find(s, info->connect_fd) : NULL;
	struct connection *c = calloc(1, sizeof(*c));

	*ret_context = c;
	if (!c || !listener) {
		free(c);
		*ret_context = NULL;
		return;
	}
	c->serve = s;
	c->mhd = mhd;
	c->fd = info->connect_fd;
	c->next = s->connections;
	if (c->next)
		c->next->previous = c;
	s->connections = c;
	s->connection_count++;
	c->listener = listener;
	c->class = connection_class(listener, c->fd);
	c->owner = c->class == CLIENT_OWNER;
	connections_become_idle(c, s->limits.request_ns);
	if (!clients_enter(&s->clients, c->class))
		shutdown(c->fd, SHUT_RDWR);
}

static void connection_end(struct connection *c)
{
	struct serve *s = c->serve;

	if (c->next)
		c->next->previous = c->previous;
	if (c->previous)
		c->previous->next = c->next;
	else
		s->connections = c->next;
	s->connection_count--;
	clients_leave(&s->clients, c->class);
	free(c);
}

void connections_on_change(void *context, struct MHD_Connection *mhd, void **connection_context,
	enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		connection_begin(context, mhd, connection_context);
	else if (*connection_context)
		connection_end(*connection_context);
}
