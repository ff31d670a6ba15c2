/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is at the other end of a connection: the user who owns the client's socket. The kernel knows
 * it for a client on this machine: SO_PEERCRED for a socket file, sock_diag(7) for loopback TCP.
 */
#include <stdbool.h>
#include <sys/types.h>

/*
 * The user who owns the socket that is connected to FD, a TCP socket with both ends on loopback or
 * a connected AF_UNIX socket. Returns -ENOENT if that socket is closed, is not on this machine, or
 * the kernel has no tcp_diag; -EOPNOTSUPP for another kind of socket; or what netlink reports. A
 * user whom our user namespace does not map is reported as the kernel's overflow uid (65534).
 */
int peer_uid(int fd, uid_t *ret_uid);
/* Whether the process that connected the AF_UNIX socket FD was in group GID then. */
bool peer_is_in_group(int fd, gid_t gid);
