/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One request at a remote store that is no profile: a gRPC call, or a PUT. Its body is read piece
 * by piece while it is sent, so that it may be larger than memory. Same transport, credentials and
 * verdicts as remote_send().
 */
#include <sys/types.h>

#include "agent/server/export/remote/remote.h"
#include "base/cursor.h"

struct remote_call {
	const char *method; /* gRPC: "package.Service/Method"; the body has its messages' prefixes
			     */
	const char *put_url; /* without a method: the whole URL */
	uint64_t size; /* bytes of the body */
	/* Up to ROOM bytes of the body from OFF on; how many, 0 or less on an error. */
	ssize_t (*read)(void *context, uint64_t off, void *bytes, size_t room);
	void *context;
	uint64_t timeout_ns; /* of the whole request */
	uint64_t bytes_per_second; /* 0 = as fast as it goes */
};

/* CALL is read until DONE is called, exactly once, from remotes_run(). -EBUSY: one at a time. */
int remote_call(
	struct remote *remote, const struct remote_call *call, remote_done_fn *done, void *context);
/*
 * The message that the last gRPC call was answered with, from DONE to the next call; `bad` where
 * none came, or one of more than some thousand bytes.
 */
struct cursor remote_call_answer(const struct remote *remote);
