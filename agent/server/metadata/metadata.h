/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pod a container belongs to, from the container runtimes of this machine, and what the API
 * server knows about that pod, if it may be asked. A thread of its own asks them; nobody waits for
 * it. Takes container IDs as the sampler gives them and believes only the part of one that root's
 * runtimes chose: the outermost.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/metadata/containers.h"
#include "base/metrics.h"

enum { METADATA_RUNTIMES = 8, METADATA_TEXT_BYTES = 200 };

struct api_access;
struct joined;
struct metadata;

/* Whether SOCKET can be a socket's path, with or without `unix://`. */
bool metadata_socket_is_valid(const char *socket);

struct metadata_options {
	const char *socket; /* of the runtime; NULL: those of the known ones, now or later */
	const struct api_access *api; /* NULL: the API server is not asked */
};

/* Starts the thread. Borrows METRICS only. -ENOMEM, -EAGAIN; -EINVAL if `socket` is not valid. */
int metadata_create(const struct metadata_options *options, struct metrics *metrics,
	struct metadata **ret_metadata);
void metadata_destroy(struct metadata *m); /* M may be NULL */
/* Somebody has seen a container that is not known: list again, at most once a second. */
void metadata_ask(struct metadata *m);

/* What is known at one time, from any thread. */
struct metadata_view {
	struct containers *tables[METADATA_RUNTIMES]; /* references */
	size_t count;
	struct joined *joined; /* a reference; NULL = nothing of the API server's */
	bool waiting; /* a runtime that was found has not answered, nor failed, for the first time
		       */
};

/* M may be NULL: nothing is known. */
void metadata_view_init(struct metadata_view *view, struct metadata *m);
void metadata_view_deinit(struct metadata_view *view);
/*
 * Whether a runtime in VIEW could have told of the container: not if no runtime has answered yet,
 * or if it is a user's own.
 */
bool metadata_can_know(const struct metadata_view *view, const char *container_id);
/*
 * NULL if no runtime has told of the container, or two of them different things. Its pod has the
 * API server's labels, annotations and controller if that has told of it. Valid as long as VIEW.
 */
const struct container_facts *metadata_view_find(
	const struct metadata_view *view, const char *container_id);

struct metadata_runtime_figures {
	char socket[METADATA_TEXT_BYTES], name[METADATA_TEXT_BYTES]; /* foreign, printable */
	char trouble[METADATA_TEXT_BYTES]; /* "" = none */
	size_t containers, pods;
	bool has_events;
};

struct metadata_api_figures {
	bool is_asked; /* else the rest is empty */
	bool has_told, is_watching;
	char server[METADATA_TEXT_BYTES], node[METADATA_TEXT_BYTES];
	char trouble[METADATA_TEXT_BYTES]; /* "" = none; foreign, printable */
	size_t pods; /* of this node */
	size_t bytes; /* of memory for them */
};

struct metadata_figures {
	struct metadata_runtime_figures runtimes[METADATA_RUNTIMES];
	size_t count; /* runtimes that have a socket */
	struct metadata_api_figures api;
};

void metadata_figures(struct metadata *m, struct metadata_figures *ret_figures);
