/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides what is sent when: takes payloads from the spool, in order and one at a time per target,
 * hands them to a sender and acts on its verdicts. Knows no protocol. Single-threaded; the caller
 * passes the time.
 *
 * Retries start after 500 ms and double up to 5 minutes, each with jitter (between half and all of
 * the delay), never earlier than the server asked for. After wrong credentials or addresses they
 * start at 30 s. Retries never give a payload up: only the spool's limits do.
 *
 * A payload that a server can only answer with an error (some answer 500 to a bad profile as they
 * do when they are broken) must not block the others. After PROBE_AFTER such failures of the first,
 * the one behind it is tried. If that is accepted, the server works: the first has one more attempt
 * and is then set aside. If not, the server is broken and everything waits.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/remote/remote.h"
#include "agent/server/export/spool/spool.h"

struct queue;

enum {
	QUEUE_CODES_LIMIT = 24, /* per target; further codes are counted as "other" */
	QUEUE_CODE_BYTES = 16,
};

struct queue_target {
	const char *name;
	bool paced; /* 4 MB a second, slower when the server asks for it */
};

struct queue_options {
	struct spool *spool;
	const struct queue_target *targets; /* in the spool's order */
	size_t target_count;
	uint64_t seed; /* for the jitter */
	/* Sends PAYLOAD, which stays valid until DONE is called with DONE_CONTEXT. */
	int (*send)(void *context, size_t target, const struct payload *payload,
		remote_done_fn *done, void *done_context);
	void *context;
};

struct queue_code {
	char code[QUEUE_CODE_BYTES];
	uint64_t count;
};

struct queue_figures {
	struct queue_code codes[QUEUE_CODES_LIMIT];
	size_t code_count;
	uint64_t sent_bytes, sent_payloads;
	uint64_t repeated; /* sent although an earlier attempt may have arrived */
	uint64_t refused, poisonous; /* set aside */
	uint64_t pending;
	bool failing;
	char trouble[160]; /* the last failure; "" = none */
};

int queue_create(const struct queue_options *options, struct queue **ret_queue);
/* TARGET of Q takes over the figures of OLD_TARGET of OLD, without its failure. */
void queue_inherit(struct queue *q, size_t target, const struct queue *old, size_t old_target);
/* DONE must not be called any more for payloads being sent. */
void queue_destroy(struct queue *q);
/* Handles answers and sends what is due. Returns when to call it again, or UINT64_MAX. */
uint64_t queue_step(struct queue *q, uint64_t now_ns);
/* Whether something is being sent or could be sent at once. */
bool queue_busy(const struct queue *q, uint64_t now_ns);
void queue_figures(const struct queue *q, size_t target, struct queue_figures *ret_figures);
