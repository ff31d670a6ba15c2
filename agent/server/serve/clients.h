/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What clients may cost, so that they slow each other and never the sampling. Two classes have a
 * budget of CPU time each: owners (root and our own user on this machine, and whoever sends the
 * token) and everybody else. A request of a class in debt waits until the debt is paid. Accepting
 * has a budget of its own, because whose connection it is is known only afterwards. Everybody else
 * together has a part of the connections.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/serve/cpu_share.h"

enum client_class { CLIENT_OWNER, CLIENT_OTHER, CLIENT_CLASSES };

struct clients {
	struct cpu_share share[CLIENT_CLASSES];
	struct cpu_share accepting;
	unsigned int connections[CLIENT_CLASSES];
	unsigned int requests[CLIENT_CLASSES]; /* since the last clients_charge() */
	uint64_t cpu_ns; /* all that clients have cost so far */
	uint64_t delayed, refused; /* requests, connections */
};

void clients_init(struct clients *clients, uint64_t now_ns);
/* A new connection of CLASS; false = one too many: close it. Each has its clients_leave(). */
bool clients_enter(struct clients *clients, enum client_class class);
void clients_leave(struct clients *clients, enum client_class class);
/* The connection's client has sent the token. */
void clients_promote(struct clients *clients);
/* How long a request of CLASS has to wait; with 0 it counts as served, else as delayed. */
uint64_t clients_request(struct clients *clients, enum client_class class, uint64_t now_ns);
/*
 * Charges CPU_NS to those whose requests were served since the last call. Without any request the
 * cost is everybody else's if they have connections. Returns whether they are in debt and cost
 * something without a request: bytes that never become one.
 */
bool clients_charge(struct clients *clients, uint64_t cpu_ns, uint64_t now_ns);
/* What was done for an owner's request after it was answered, or before. */
void clients_charge_owners(struct clients *clients, uint64_t cpu_ns, uint64_t now_ns);
void clients_charge_accepting(struct clients *clients, uint64_t cpu_ns, uint64_t now_ns);
/* How long nobody may be accepted; 0 = go on. */
uint64_t clients_accept_wait_ns(struct clients *clients, uint64_t now_ns);
