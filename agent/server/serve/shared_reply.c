/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large texts that are the same for everybody: clients that take long to read share one. A new one
 * is made for those who come a second later, unless a few old ones are still being read; the newest
 * of these is then as new as it gets. The library counts who uses a response.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/server/serve/serve_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	SHARED_COPIES = 4,
	SHARED_BYTES = 1 << 20, /* smaller ones are not worth being old */
};

static const uint64_t SHARED_FOR_NS = UINT64_C(1000000000);

struct shared_reply {
	struct shared_replies *all;
	struct MHD_Response *response;
	uint8_t *bytes;
	uint64_t made_ns; /* CLOCK_MONOTONIC */
};

static void shared_reply_free(void *context)
{
	struct shared_reply *shared = context;

	shared->all->count--;
	if (shared->all->newest == shared)
		shared->all->newest = NULL;
	free(shared->bytes);
	free(shared);
}

struct MHD_Response *shared_reply_get(const struct shared_replies *all)
{
	const struct shared_reply *newest = all->newest;

	if (!newest || (all->count < SHARED_COPIES &&
			       clock_monotonic_ns() - newest->made_ns >= SHARED_FOR_NS))
		return NULL;
	return newest->response;
}

bool shared_reply_is_worth_it(const struct buffer *body)
{
	return body->size >= SHARED_BYTES;
}

struct MHD_Response *shared_reply_make(struct shared_replies *all, struct buffer *body)
{
	struct shared_reply *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	*shared = (struct shared_reply){
		.all = all,
		.bytes = body->bytes,
		.made_ns = clock_monotonic_ns(),
	};
	shared->response = MHD_create_response_from_buffer_with_free_callback_cls(
		body->size, body->bytes, shared_reply_free, shared);
	if (!shared->response) {
		free(shared);
		return NULL;
	}
	body->bytes = NULL;
	all->count++;
	all->newest = shared;
	return shared->response;
}
