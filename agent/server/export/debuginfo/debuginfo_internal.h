/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by debuginfo.c (the thread), debuginfo_steps.c (one upload), debuginfo_file.c. */
#include <pthread.h>

#include "agent/server/export/debuginfo/debuginfo.h"
#include "agent/server/export/debuginfo/debuginfo_known.h"
#include "agent/server/export/debuginfo/debuginfo_queue.h"
#include "agent/server/export/remote/remote_call.h"

enum { DEBUGINFO_HASH_TEXT_BYTES = 17 };

struct debuginfo_target {
	struct remote *remote;
	char *name;
	/* For the object store behind a signed URL. */
	char *proxy_url, *ca_file;
	bool plain_text;
	uint64_t hash; /* hash of its identity */
	/* Protected by the lock. */
	uint64_t not_before_ns, backoff_ns;
};

enum debuginfo_outcome {
	DEBUGINFO_UPLOADED,
	DEBUGINFO_NOT_WANTED, /* the server has it, or gets it from elsewhere */
	DEBUGINFO_BEING_UPLOADED, /* by somebody else, according to the server */
	DEBUGINFO_NOTHING, /* the file has nothing that helps to symbolize */
	DEBUGINFO_UNREADABLE,
	DEBUGINFO_TOO_LARGE,
	DEBUGINFO_NO_ANSWER, /* of the file: no fault of the server */
	DEBUGINFO_REFUSED,
	DEBUGINFO_BROKEN_OFF, /* the server waits for this upload: retry after it has given up */
	DEBUGINFO_FAILED, /* retry later */
	DEBUGINFO_STOPPED, /* the agent is stopping */
};

struct debuginfo {
	pthread_t thread;
	bool running;
	struct metrics *metrics;
	int (*strip)(void *context, int elf_fd, int output_fd, int stop_fd);
	void *strip_context;
	char *directory;

	pthread_mutex_t lock; /* protects the fields up to the blank line */
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	struct debuginfo_queue queue; /* without the current one */
	struct debuginfo_job *current;
	struct debuginfo_known known; /* written by the thread only */
	bool stopping;

	/* Used by the thread only. */
	int stop_fd; /* readable once `stopping` */
	struct remotes *transport;
	struct debuginfo_target targets[DEBUGINFO_TARGETS_LIMIT];
	size_t target_count;
	bool answered;
	struct remote_result result; /* of the last request */
	uint64_t sent_bytes; /* of the last file; 0 = nothing was sent */
};

bool debuginfo_stopping(struct debuginfo *d);
/* debuginfo_file.c: DEBUGINFO_UPLOADED and the file to send, or why there is none. */
enum debuginfo_outcome debuginfo_strip(
	struct debuginfo *d, const struct debuginfo_job *job, int *ret_fd);
int debuginfo_hash(int fd, char text[DEBUGINFO_HASH_TEXT_BYTES], uint64_t *ret_size);
/* debuginfo_steps.c: one whole upload; d->result is the result of its last request. */
enum debuginfo_outcome debuginfo_upload(struct debuginfo *d, const struct debuginfo_job *job);
