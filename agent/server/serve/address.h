/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where to listen, and which names a browser may know us by. */
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
 * `127.0.0.1:7071`, `[::1]:7071`, `localhost:7071`, `:7071` (everywhere), `unix:/path`. Names are
 * not looked up. -EINVAL.
 */
int address_parse(const char *text, struct address *ret_address);
/* A bound, listening, non-blocking socket. A socket file that nobody listens on is replaced. */
int address_listen(const struct address *address, int *ret_fd);
/* Removes the socket file, if ADDRESS is one. */
void address_remove(const struct address *address);
/* A Host header's `NAME[:PORT]` that means this machine and can be nobody else's domain. */
bool address_host_is_loopback(const char *host);
