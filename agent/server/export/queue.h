/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is sent when: takes payloads from the spool, one at a time for each target and in their
 * order, hands them to a sender and draws the consequences of its verdicts. Knows no protocol. One
 * thread; the time is handed in.
 *
 * A failure is tried again after 500 ms, then twice as long each time up to 5 minutes, each with
 * jitter (between half and all of it), never earlier than the server asked for. Wrong credentials
 * or addresses begin at 30 s. Nothing is given up for that: the spool's bounds decide.
 *
 * A payload that a server can only answer with an error (some say 500 to a bad profile as they do
 * when they are broken) must not hold up the others. When one has failed so PROBE_AFTER times, the
 * one behind it is tried. If that is taken, the server works: the first has one more attempt and is
 * then set aside. If not, the server is broken and everything waits.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/remote/remote.h"
#include "agent/server/export/spool/spool.h"

struct queue;

enum {
	QUEUE_CODES_LIMIT = 24, /* of a target; further ones are counted as "other" */
	QUEUE_CODE_BYTES = 16,
};

struct queue_target {
	const char *name;
	bool paced; /* 4 MB a second, and slower when the server says so */
};

struct queue_options {
	struct spool *spool;
	const struct queue_target *targets; /* as the spool's */
	size_t target_count;
	uint64_t seed; /* of the jitter */
	/* Sends PAYLOAD, which stays until DONE is called with DONE_CONTEXT. */
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
	char trouble[160]; /* of the last failure; "" = none */
};

int queue_create(const struct queue_options *options, struct queue **ret_queue);
/* Target TARGET of Q is what OLD_TARGET was in OLD, and goes on with its counts. */
void queue_inherit(struct queue *q, size_t target, const struct queue *old, size_t old_target);
/* What is being sent must not be answered any more. */
void queue_destroy(struct queue *q);
/* Handles answers and sends what is due. Returns when it wants to be called again, or UINT64_MAX.
 */
uint64_t queue_step(struct queue *q, uint64_t now_ns);
/* Something is being sent, or could be at once. */
bool queue_busy(const struct queue *q, uint64_t now_ns);
void queue_figures(const struct queue *q, size_t target, struct queue_figures *ret_figures);
