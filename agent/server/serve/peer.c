/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/serve/peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

union peer_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* The two ends as the client sees them, in the form of sock_diag. */
struct peer_tuple {
	uint8_t family;
	struct inet_diag_sockid id;
};

/* Writes an address as sock_diag has it; an IPv4 address in IPv6 form becomes IPv4. */
static int peer_put_address(
	const union peer_address *a, uint8_t *ret_family, __be32 ret_words[4], __be16 *ret_port)
{
	memset(ret_words, 0, 4 * sizeof(*ret_words));
	if (a->any.sa_family == AF_INET) {
		*ret_family = AF_INET;
		*ret_port = a->in.sin_port;
		ret_words[0] = a->in.sin_addr.s_addr;
		return 0;
	}
	if (a->any.sa_family != AF_INET6)
		return -EOPNOTSUPP;
	*ret_port = a->in6.sin6_port;
	if (IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) {
		*ret_family = AF_INET;
		memcpy(ret_words, a->in6.sin6_addr.s6_addr + 12, sizeof(*ret_words));
		return 0;
	}
	*ret_family = AF_INET6;
	memcpy(ret_words, &a->in6.sin6_addr, sizeof(a->in6.sin6_addr));
	return 0;
}

static int peer_read_tuple(int fd, struct peer_tuple *ret_tuple)
{
	struct peer_tuple tuple = { .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } };
	union peer_address client = { 0 }, server = { 0 };
	socklen_t client_size = sizeof(client), server_size = sizeof(server);
	uint8_t family;
	int err;

	if (getpeername(fd, &client.any, &client_size) ||
		getsockname(fd, &server.any, &server_size))
		return -errno;
	err = peer_put_address(&client, &tuple.family, tuple.id.idiag_src, &tuple.id.idiag_sport);
	if (!err)
		err = peer_put_address(&server, &family, tuple.id.idiag_dst, &tuple.id.idiag_dport);
	if (!err && family != tuple.family)
		err = -EOPNOTSUPP;
	if (!err)
		*ret_tuple = tuple;
	return err;
}

static bool peer_address_is_loopback(uint8_t family, const __be32 words[4])
{
	if (family == AF_INET)
		return ntohl(words[0]) >> 24 == 127;
	return !words[0] && !words[1] && !words[2] && ntohl(words[3]) == 1;
}

static bool peer_tuple_is_loopback(const struct peer_tuple *tuple)
{
	return peer_address_is_loopback(tuple->family, tuple->id.idiag_src) &&
	       peer_address_is_loopback(tuple->family, tuple->id.idiag_dst);
}

/* Asks the kernel for the one socket with these ends. */
static int peer_send_question(int netlink_fd, const struct peer_tuple *tuple)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 question;
	} message = {
		.head = { .nlmsg_len = sizeof(message),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST },
		.question = { .sdiag_family = tuple->family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = UINT32_MAX,
			.id = tuple->id },
	};

	return send(netlink_fd, &message, sizeof(message), 0) == sizeof(message) ? 0 : -errno;
}

/*
 * Whether ANSWER describes the client's own, open socket. With no such connection the kernel
 * answers with a listening socket. A socket that its program has closed has no inode and shows uid
 * 0: nothing may be concluded from it. The kernel reads the uid before the inode and a closed
 * socket stays closed, so a uid that comes with an inode is the owner's.
 */
static bool peer_is_open(const struct inet_diag_msg *answer, const struct peer_tuple *tuple)
{
	static const uint8_t MAPPED[12] = { [10] = 0xff, [11] = 0xff };
	const struct inet_diag_sockid *id = &answer->id;
	const uint8_t *server = (const uint8_t *)id->idiag_dst;

	/* An IPv6 socket that is connected to an IPv4 address. */
	if (answer->idiag_family == AF_INET6 && tuple->family == AF_INET) {
		if (memcmp(server, MAPPED, sizeof(MAPPED)))
			return false;
		server += sizeof(MAPPED);
	}
	return answer->idiag_inode && answer->idiag_state != TCP_LISTEN &&
	       id->idiag_sport == tuple->id.idiag_sport &&
	       id->idiag_dport == tuple->id.idiag_dport &&
	       !memcmp(server, tuple->id.idiag_dst, tuple->family == AF_INET ? 4 : 16);
}

static int peer_read_answer(int netlink_fd, const struct peer_tuple *tuple, uid_t *ret_uid)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} message;
	ssize_t got = recv(netlink_fd, &message, sizeof(message), MSG_DONTWAIT);
	const struct inet_diag_msg *answer = NLMSG_DATA(&message.head);
	const struct nlmsgerr *failure = NLMSG_DATA(&message.head);

	if (got < 0)
		return -errno;
	if (!NLMSG_OK(&message.head, (size_t)got))
		return -EBADMSG;
	if (message.head.nlmsg_type == NLMSG_ERROR)
		return message.head.nlmsg_len >= NLMSG_LENGTH(sizeof(*failure)) &&
				       failure->error < 0
			       ? failure->error
			       : -EBADMSG;
	if (message.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		message.head.nlmsg_len < NLMSG_LENGTH(sizeof(*answer)))
		return -EBADMSG;
	if (!peer_is_open(answer, tuple))
		return -ENOENT;
	*ret_uid = answer->idiag_uid;
	return 0;
}

static int peer_ask(const struct peer_tuple *tuple, uid_t *ret_uid)
{
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int err;

	if (fd < 0)
		return -errno;
	/* The kernel answers within send(): nothing to read afterwards means no answer. */
	err = peer_send_question(fd, tuple);
	return err ? err : peer_read_answer(fd, tuple, ret_uid);
}

static int peer_local_uid(int fd, uid_t *ret_uid)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size))
		return -errno;
	*ret_uid = credentials.uid;
	return 0;
}

int peer_uid(int fd, uid_t *ret_uid)
{
	struct peer_tuple tuple;
	socklen_t size = sizeof(int);
	int domain, err;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size))
		return -errno;
	if (domain == AF_UNIX)
		return peer_local_uid(fd, ret_uid);
	err = peer_read_tuple(fd, &tuple);
	if (err)
		return err;
	return peer_tuple_is_loopback(&tuple) ? peer_ask(&tuple, ret_uid) : -ENOENT;
}

bool peer_is_in_group(int fd, gid_t gid)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials), bytes = 0;
	autofree gid_t *groups = NULL;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size))
		return false;
	if (credentials.gid == gid)
		return true;
	/* Fails with ERANGE and the size if there are any. */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) || errno != ERANGE)
		return false;
	groups = malloc(bytes);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes))
		return false;
	for (size_t i = 0; i < bytes / sizeof(*groups); i++) {
		if (groups[i] == gid)
			return true;
	}
	return false;
}
