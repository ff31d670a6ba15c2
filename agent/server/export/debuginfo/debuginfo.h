/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Uploads debug information to Parca's server, which then symbolizes the frames that were sent as
 * addresses. A thread `debuginfo` takes programs and libraries as open files, asks each server
 * whether it wants them, has them stripped to what symbolizing needs, and uploads the result: one
 * file at a time, at a bounded rate, from a bounded queue. Files that were uploaded, are already
 * there or cannot be used are remembered for a day, also across restarts. It has its own
 * connections, so profiles never wait for it. Only files with a GNU build ID: Parca's server cannot
 * look up Go's, which contain slashes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/remote/remote.h"
#include "base/metrics.h"
#include "base/module_id.h"

struct debuginfo;

struct debuginfo_options {
	const struct remote_options *remotes; /* Parca stores only; borrowed for the call */
	size_t remote_count; /* DEBUGINFO_TARGETS_LIMIT at most */
	const char *directory; /* for the file being uploaded and `debuginfo-known` */
	/*
	 * Writes the part of ELF_FD to upload to OUTPUT_FD, in the calling thread; returns
	 * -ECANCELED once STOP_FD is readable. -ENODATA: it holds nothing useful; -E2BIG: too
	 * large; -ETIMEDOUT: it does not answer, so others come first; temporary errors (-ENOSPC,
	 * -EDQUOT, -EAGAIN, …) are retried; any other error: the file is unreadable.
	 */
	int (*strip)(void *context, int elf_fd, int output_fd, int stop_fd);
	void *context;
	struct metrics *metrics;
};

enum { DEBUGINFO_TARGETS_LIMIT = 16 };

/* -EINVAL: invalid option; *RET_MESSAGE (the caller's to free) says which. */
int debuginfo_create(const struct debuginfo_options *options, struct debuginfo **ret_debuginfo,
	char **ret_message);
/* Aborts the upload under way. */
void debuginfo_destroy(struct debuginfo *d);
/* Whether to open the file at all: some server has not been asked, and the queue has room. */
bool debuginfo_wants(struct debuginfo *d, const struct build_id *id);
/* Queues the file with that build ID; takes ownership of FD. */
void debuginfo_offer(struct debuginfo *d, const struct build_id *id, int fd);
/* Files queued or being uploaded. */
size_t debuginfo_pending(struct debuginfo *d);
