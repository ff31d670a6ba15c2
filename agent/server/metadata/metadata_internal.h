/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What metadata.c and metadata_thread.c share. */
#include <pthread.h>

#include "agent/server/metadata/runtime.h"
#include "agent/server/metadata/joined.h"
#include "agent/server/metadata/kubernetes/api_server.h"
#include "agent/server/metadata/metadata.h"

struct metadata {
	pthread_t thread;
	bool running;
	int wake_fd;
	char *path; /* as configured; NULL = known_sockets */
	struct metrics *metrics;

	pthread_mutex_t lock; /* protects the fields up to the blank line */
	bool stopping, asked;
	bool waiting; /* as in struct metadata_view */
	struct containers *tables[METADATA_RUNTIMES]; /* NULL = none yet */
	struct joined *joined; /* of these tables; NULL = none yet, or memory is short */
	struct metadata_figures figures;

	/* Used by the thread only. */
	CURLM *multi; /* NULL until there is a socket: libcurl is loaded then */
	struct runtime runtimes[METADATA_RUNTIMES];
	size_t count;
	bool asks_api;
	struct api_server api; /* if ASKS_API */
	uint64_t joined_changes; /* of the API server's pods, in `joined` */
	uint64_t join_due_ns; /* not before */
};

/* The thread, for pthread_create(). CONTEXT: struct metadata. Ends when `stopping` is set. */
void *metadata_run(void *context);
