/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets on which the server listens: an address and, beside it, a socket file for root and
 * root's group. That one is in a directory which is locked while we have it, so that the file in
 * it can only be one that a killed run has left, and no second agent takes it away.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/server/serve/serve_internal.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { DIRECTORY_MODE = 0750 };

void listeners_init(struct serve *s)
{
	for (size_t i = 0; i < SERVE_LISTENERS; i++)
		s->listeners[i] = (struct listener){ .serve = s, .fd = -1, .lock_fd = -1 };
}

void listeners_unwatch(struct serve *s)
{
	for (size_t i = 0; i < SERVE_LISTENERS; i++) {
		if (s->listeners[i].fd >= 0)
			loop_remove(s->loop, s->listeners[i].fd);
	}
}

void listeners_deinit(struct serve *s)
{
	for (size_t i = 0; i < SERVE_LISTENERS; i++) {
		struct listener *listener = &s->listeners[i];

		if (listener->fd >= 0) {
			address_remove(&listener->address);
			close(take_fd(&listener->fd));
		}
		if (listener->lock_fd >= 0)
			close(take_fd(&listener->lock_fd));
	}
}

static struct listener *unused_listener(struct serve *s)
{
	for (size_t i = 0; i < SERVE_LISTENERS; i++) {
		if (s->listeners[i].fd < 0)
			return &s->listeners[i];
	}
	return NULL;
}

static int listener_note_port(const struct listener *listener)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage storage;
	} bound = { 0 };
	socklen_t size = sizeof(bound);

	if (getsockname(listener->fd, &bound.any, &size))
		return -errno;
	if (bound.any.sa_family == AF_INET)
		listener->serve->port = ntohs(bound.in.sin_port);
	else if (bound.any.sa_family == AF_INET6)
		listener->serve->port = ntohs(bound.in6.sin6_port);
	return 0;
}

int listeners_open(struct serve *s, const char *address)
{
	struct listener *listener = unused_listener(s);
	int fd, err;

	if (!listener)
		return -EBUSY;
	err = address_parse(address, &listener->address);
	if (!err)
		err = address_listen(&listener->address, &fd);
	if (err)
		return err;
	err = loop_add(s->loop, fd, EPOLLIN, connections_on_client, listener);
	if (err) {
		address_remove(&listener->address);
		close(fd);
		return err;
	}
	listener->fd = fd;
	listener->watched = true;
	return listener_note_port(listener);
}

/* The library may report a client long after it was accepted: only the socket itself tells. */
const struct listener *listeners_find(const struct serve *s, int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_storage storage;
	} own = { 0 };
	socklen_t size = sizeof(own);
	const char *path;

	if (getsockname(fd, &own.any, &size))
		return NULL;
	path = own.any.sa_family == AF_UNIX ? own.un.sun_path : NULL;
	for (size_t i = 0; i < SERVE_LISTENERS; i++) {
		const struct listener *listener = &s->listeners[i];

		if (listener->fd >= 0 && address_has_path(&listener->address, path))
			return listener;
	}
	return NULL;
}

/* Locks the directory of PATH for us, after making it if need be. */
static int lock_directory(const char *path, int *ret_fd)
{
	char copy[PATH_MAX];
	size_t length = strlen(path);

	if (*path != '/' || length >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, path, length + 1);
	return io_open_own_directory(dirname(copy), DIRECTORY_MODE, ret_fd);
}

int serve_add_socket(struct serve *s, const char *path)
{
	struct listener *listener = unused_listener(s);
	char address[PATH_MAX + 8];
	autoclose int lock_fd = -1;
	int err = lock_directory(path, &lock_fd);

	if (err)
		return err;
	snprintf(address, sizeof(address), "unix:%s", path);
	err = listeners_open(s, address);
	if (!err)
		listener->lock_fd = take_fd(&lock_fd);
	return err;
}
