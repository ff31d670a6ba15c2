/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A request to a remote store that is not a profile: a gRPC call, or a PUT. Its body is read in
 * chunks while it is sent, so that it may be larger than memory. Uses the transport, credentials
 * and verdicts of remote_send().
 */
#include <sys/types.h>

#include "agent/server/export/remote/remote.h"
#include "base/cursor.h"

struct remote_call {
	const char *method; /* gRPC: "package.Service/Method"; the body has its messages' prefixes
			     */
	const char *put_url; /* if `method` is NULL: the whole URL */
	uint64_t size; /* bytes of the body */
	/* Reads up to ROOM bytes of the body at OFF. Returns how many, 0 or less on an error. */
	ssize_t (*read)(void *context, uint64_t off, void *bytes, size_t room);
	void *context;
	uint64_t timeout_ns; /* for the whole request */
	uint64_t bytes_per_second; /* 0 = unlimited */
};

/*
 * CALL must stay valid until DONE is called, exactly once, from remotes_run(). -EBUSY: a request is
 * under way.
 */
int remote_call(
	struct remote *remote, const struct remote_call *call, remote_done_fn *done, void *context);
/*
 * The answer message of the last gRPC call, valid from DONE to the next call; `bad` if there was
 * none or it exceeded some thousand bytes.
 */
struct cursor remote_call_answer(const struct remote *remote);
