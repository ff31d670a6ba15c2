/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/serve/clients.h"

#include <assert.h>

enum {
	MAX_OTHERS = 16, /* connections */
	OWNERS_PERMILLE = 100, /* of one CPU */
	OTHERS_PERMILLE = 10,
	ACCEPTING_PERMILLE = 10,
};

static const uint64_t OWNERS_BURST_NS = UINT64_C(5000000000);
static const uint64_t OTHERS_BURST_NS = UINT64_C(200000000);
static const uint64_t ACCEPTING_BURST_NS = UINT64_C(50000000);

void clients_init(struct clients *clients, uint64_t now_ns)
{
	*clients = (struct clients){ 0 };
	cpu_share_init(&clients->share[CLIENT_OWNER], OWNERS_PERMILLE, OWNERS_BURST_NS, now_ns);
	cpu_share_init(&clients->share[CLIENT_OTHER], OTHERS_PERMILLE, OTHERS_BURST_NS, now_ns);
	cpu_share_init(&clients->accepting, ACCEPTING_PERMILLE, ACCEPTING_BURST_NS, now_ns);
}

bool clients_enter(struct clients *clients, enum client_class class)
{
	clients->connections[class]++;
	if (class == CLIENT_OWNER || clients->connections[class] <= MAX_OTHERS)
		return true;
	clients->refused++;
	return false;
}

void clients_leave(struct clients *clients, enum client_class class)
{
	assert(clients->connections[class] > 0);
	clients->connections[class]--;
}

void clients_promote(struct clients *clients)
{
	clients_leave(clients, CLIENT_OTHER);
	clients->connections[CLIENT_OWNER]++;
}

uint64_t clients_request(struct clients *clients, enum client_class class, uint64_t now_ns)
{
	uint64_t wait_ns = cpu_share_wait_ns(&clients->share[class], now_ns);

	if (wait_ns)
		clients->delayed++;
	else
		clients->requests[class]++;
	return wait_ns;
}

bool clients_charge(struct clients *clients, uint64_t cpu_ns, uint64_t now_ns)
{
	unsigned int *requests = clients->requests;
	unsigned int all = requests[CLIENT_OWNER] + requests[CLIENT_OTHER];
	uint64_t others_ns = all ? cpu_ns / all * requests[CLIENT_OTHER]
			     : clients->connections[CLIENT_OTHER] ? cpu_ns
								  : 0;

	clients->cpu_ns += cpu_ns;
	cpu_share_spend(&clients->share[CLIENT_OTHER], others_ns, now_ns);
	cpu_share_spend(&clients->share[CLIENT_OWNER], cpu_ns - others_ns, now_ns);
	requests[CLIENT_OWNER] = requests[CLIENT_OTHER] = 0;
	return !all && others_ns && cpu_share_wait_ns(&clients->share[CLIENT_OTHER], now_ns);
}

void clients_charge_owners(struct clients *clients, uint64_t cpu_ns, uint64_t now_ns)
{
	clients->cpu_ns += cpu_ns;
	cpu_share_spend(&clients->share[CLIENT_OWNER], cpu_ns, now_ns);
}

void clients_charge_accepting(struct clients *clients, uint64_t cpu_ns, uint64_t now_ns)
{
	clients->cpu_ns += cpu_ns;
	cpu_share_spend(&clients->accepting, cpu_ns, now_ns);
}

uint64_t clients_accept_wait_ns(struct clients *clients, uint64_t now_ns)
{
	return cpu_share_wait_ns(&clients->accepting, now_ns);
}
