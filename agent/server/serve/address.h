/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Listen addresses, and the host names by which a browser may reach us. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct address {
	struct sockaddr_storage socket;
	socklen_t size;
	bool loopback; /* only this machine can connect */
	bool any; /* `:PORT` */
};

/*
 * Parses `127.0.0.1:7071`, `[::1]:7071`, `localhost:7071`, `:7071` (all interfaces) or
 * `unix:/path`. Names are not resolved. Returns -EINVAL for anything else.
 */
int address_parse(const char *text, struct address *ret_address);
/* Returns a bound, listening, non-blocking socket. A socket file without a listener is replaced. */
int address_listen(const struct address *address, int *ret_fd);
bool address_is_socket_file(const struct address *address); /* `unix:/path` */
/* Whether ADDRESS is the socket file PATH or, if PATH is NULL, none. */
bool address_has_path(const struct address *address, const char *path);
/* Removes the socket file, if ADDRESS is one. */
void address_remove(const struct address *address);
/* Whether HOST (`NAME[:PORT]`) is a loopback name or address, which no one else's domain can be. */
bool address_host_is_loopback(const char *host);
