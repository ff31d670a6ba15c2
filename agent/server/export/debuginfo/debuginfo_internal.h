/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What debuginfo.c (thread and queue), debuginfo_steps.c (one upload), debuginfo_file.c share. */
#include <pthread.h>

#include "agent/server/export/debuginfo/debuginfo.h"
#include "agent/server/export/debuginfo/debuginfo_known.h"
#include "agent/server/export/remote/remote_call.h"

enum { DEBUGINFO_ID_TEXT_BYTES = 2 * BUILD_ID_MAX_BYTES + 1, DEBUGINFO_HASH_TEXT_BYTES = 17 };

/* One file for one server. */
struct debuginfo_job {
	struct debuginfo_job *next;
	char build_id[DEBUGINFO_ID_TEXT_BYTES];
	uint64_t key; /* of both */
	size_t target;
	int fd;
	unsigned int attempts; /* that failed */
};

struct debuginfo_target {
	struct remote *remote;
	char *name;
	/* For the store behind a signed URL. */
	char *proxy_url, *ca_file;
	bool plain_text;
	uint64_t hash; /* of its address */
	/* Under the lock. */
	uint64_t not_before_ns, backoff_ns;
};

enum debuginfo_outcome {
	DEBUGINFO_UPLOADED,
	DEBUGINFO_NOT_WANTED, /* the server has it, or gets it elsewhere */
	DEBUGINFO_BEING_UPLOADED, /* by somebody else, says the server */
	DEBUGINFO_NOTHING, /* to be named by it */
	DEBUGINFO_UNREADABLE,
	DEBUGINFO_TOO_LARGE,
	DEBUGINFO_REFUSED,
	DEBUGINFO_BROKEN_OFF, /* the server waits for it now: not before it has given up */
	DEBUGINFO_FAILED, /* again later */
	DEBUGINFO_STOPPED, /* we end */
};

struct debuginfo {
	pthread_t thread;
	bool running;
	struct metrics *metrics;
	int (*strip)(void *context, int elf_fd, int output_fd, int stop_fd);
	void *strip_context;
	char *directory;

	pthread_mutex_t lock; /* over what follows, up to the blank line */
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	struct debuginfo_job *head, *tail; /* the one under way is none of them */
	struct debuginfo_job *current;
	size_t count;
	struct debuginfo_known known; /* changed by the thread only */
	bool stopping;

	/* The thread's own. */
	int stop_fd; /* readable once `stopping` */
	struct remotes *transport;
	struct debuginfo_target targets[DEBUGINFO_TARGETS_LIMIT];
	size_t target_count;
	bool answered;
	struct remote_result result; /* of the last request */
	uint64_t sent_bytes; /* of the last file; 0 = it did not come to that */
};

bool debuginfo_stopping(struct debuginfo *d);
/* debuginfo_file.c: DEBUGINFO_UPLOADED and the file to be sent, or why there is none. */
enum debuginfo_outcome debuginfo_strip(
	struct debuginfo *d, const struct debuginfo_job *job, int *ret_fd);
int debuginfo_hash(int fd, char text[DEBUGINFO_HASH_TEXT_BYTES], uint64_t *ret_size);
/* debuginfo_steps.c: all of it; d->result tells of the last request. */
enum debuginfo_outcome debuginfo_upload(struct debuginfo *d, const struct debuginfo_job *job);
