/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/serve/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/server/serve/parameters.h"
#include "base/cleanup.h"

enum {
	BACKLOG = 64,
	SOCKET_FILE_MODE = 0660,
	NAME_BYTES = 64, /* of `NAME` in `NAME:PORT` */
};

static const char UNIX_PREFIX[] = "unix:";

/* Splits `NAME:PORT` or `[NAME]:PORT`; *RET_PORT is "" without a port. False if it is neither. */
static bool split(const char *text, char *name, const char **ret_port)
{
	const char *end;
	size_t length;

	if (*text == '[') {
		text++;
		end = strchr(text, ']');
		if (!end)
			return false;
		*ret_port = end + 1;
	} else {
		end = text + strcspn(text, ":");
		*ret_port = end;
	}
	length = (size_t)(end - text);
	if (length >= NAME_BYTES || (**ret_port && **ret_port != ':'))
		return false;
	memcpy(name, text, length);
	name[length] = 0;
	return true;
}

static bool is_loopback4(struct in_addr in)
{
	return ntohl(in.s_addr) >> 24 == 127;
}

static int parse_unix(const char *path, struct address *ret_address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t length = strlen(path);

	if (*path != '/' || length >= sizeof(un.sun_path))
		return -EINVAL;
	memcpy(un.sun_path, path, length + 1);
	*ret_address = (struct address){ .size = sizeof(un) };
	memcpy(&ret_address->socket, &un, sizeof(un));
	return 0;
}

int address_parse(const char *text, struct address *ret_address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
	char name[NAME_BYTES];
	const char *port_text;
	struct address a = { 0 };
	uint64_t port;

	if (!strncmp(text, UNIX_PREFIX, sizeof(UNIX_PREFIX) - 1))
		return parse_unix(text + sizeof(UNIX_PREFIX) - 1, ret_address);
	if (!split(text, name, &port_text) || !*port_text ||
		!parameters_number(port_text + 1, UINT16_MAX, &port))
		return -EINVAL;
	in.sin_port = in6.sin6_port = htons((uint16_t)port);
	if (*text == '[' ? inet_pton(AF_INET6, name, &in6.sin6_addr) == 1 : !*name) {
		a.any = !*name;
		a.loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
		a.size = sizeof(in6);
		memcpy(&a.socket, &in6, sizeof(in6));
	} else if (inet_pton(AF_INET, strcmp(name, "localhost") ? name : "127.0.0.1",
			   &in.sin_addr) == 1 &&
		   *text != '[') {
		a.loopback = is_loopback4(in.sin_addr);
		a.size = sizeof(in);
		memcpy(&a.socket, &in, sizeof(in));
	} else {
		return -EINVAL;
	}
	*ret_address = a;
	return 0;
}

bool address_host_is_loopback(const char *host)
{
	char name[NAME_BYTES];
	struct in6_addr in6;
	struct in_addr in;
	const char *port;

	if (!split(host, name, &port))
		return false;
	if (*host == '[')
		return inet_pton(AF_INET6, name, &in6) == 1 && IN6_IS_ADDR_LOOPBACK(&in6);
	return !strcasecmp(name, "localhost") ||
	       (inet_pton(AF_INET, name, &in) == 1 && is_loopback4(in));
}

static const char *socket_file(const struct address *address)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&address->socket;

	return un->sun_family == AF_UNIX ? un->sun_path : NULL;
}

bool address_is_socket_file(const struct address *address)
{
	return socket_file(address) != NULL;
}

bool address_has_path(const struct address *address, const char *path)
{
	const char *own = socket_file(address);

	return own && path ? !strcmp(own, path) : !own && !path;
}

void address_remove(const struct address *address)
{
	const char *path = socket_file(address);

	if (path)
		unlink(path);
}

/* Removes a socket file left by a killed run, but no other kind of file. */
static int remove_stale(const struct address *address, const char *path)
{
	autoclose int fd = -1;
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&address->socket, address->size) ||
		errno != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(path) ? -errno : 0;
}

static int address_prepare(const struct address *address, int fd)
{
	const char *path = socket_file(address);
	int on = 1, off = 0;

	if (path) {
		int err = remove_stale(address, path);

		/* bind() gives the file the socket's mode less the umask: nobody may connect before
		 * chmod() sets the final mode. */
		if (!err && fchmod(fd, 0600))
			err = -errno;
		return err;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (address->any && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		return -errno;
	return 0;
}

static int listen_on(const struct address *address, int *ret_fd)
{
	autoclose int fd =
		socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const char *path = socket_file(address);
	int err;

	if (fd < 0)
		return -errno;
	err = address_prepare(address, fd);
	if (err)
		return err;
	if (bind(fd, (const struct sockaddr *)&address->socket, address->size))
		return -errno;
	if ((path && chmod(path, SOCKET_FILE_MODE)) || listen(fd, BACKLOG)) {
		err = -errno;
		address_remove(address);
		return err;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

int address_listen(const struct address *address, int *ret_fd)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->socket;
	struct address any4 = { .size = sizeof(struct sockaddr_in) };
	struct sockaddr_in in = { .sin_family = AF_INET };
	int err = listen_on(address, ret_fd);

	if (err != -EAFNOSUPPORT || !address->any)
		return err;
	/* A kernel without IPv6. */
	in.sin_port = in6->sin6_port;
	memcpy(&any4.socket, &in, sizeof(in));
	return listen_on(&any4, ret_fd);
}
