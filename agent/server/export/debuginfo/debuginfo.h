/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Debug information for Parca's server, which then names frames that we sent as addresses: a thread
 * `debuginfo` that is handed programs and libraries as open files, asks each server whether it
 * wants them, has them stripped to what naming needs, and uploads that. One file at a time, at a
 * bounded rate, with a bounded queue; what was uploaded, is there already or cannot be used is
 * remembered for a day, also over restarts. It has connections of its own: profiles never wait for
 * it. Only files with a GNU build ID: Parca's server finds nothing by Go's, which holds slashes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/remote/remote.h"
#include "base/metrics.h"
#include "base/module_id.h"

struct debuginfo;

struct debuginfo_options {
	const struct remote_options *remotes; /* of Parca; borrowed for the call */
	size_t remote_count; /* DEBUGINFO_TARGETS_LIMIT at most */
	const char *directory; /* what is being uploaded, and the file `debuginfo-known` */
	/*
	 * Writes what is to be uploaded of ELF_FD to OUTPUT_FD, in the calling thread; gives up
	 * with -ECANCELED once STOP_FD is readable. -ENODATA: nothing in there is of use; -E2BIG;
	 * another error: the file is not readable, but for -ENOSPC, -EDQUOT and -EAGAIN, which
	 * pass.
	 */
	int (*strip)(void *context, int elf_fd, int output_fd, int stop_fd);
	void *context;
	struct metrics *metrics;
};

enum { DEBUGINFO_TARGETS_LIMIT = 16 };

/* -EINVAL: an option makes no sense; *RET_MESSAGE (the caller's to free) says which. */
int debuginfo_create(const struct debuginfo_options *options, struct debuginfo **ret_debuginfo,
	char **ret_message);
/* What is under way is broken off. */
void debuginfo_destroy(struct debuginfo *d);
/* Whether to open the file at all: some server has not been asked, and the queue has room. */
bool debuginfo_wants(struct debuginfo *d, const struct build_id *id);
/* The file with that build ID; FD is taken. */
void debuginfo_offer(struct debuginfo *d, const struct build_id *id, int fd);
/* Files that wait or are being uploaded. */
size_t debuginfo_pending(struct debuginfo *d);
