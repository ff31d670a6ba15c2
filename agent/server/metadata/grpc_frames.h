/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The messages in the body of a gRPC answer (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md): each has
 * a byte that says whether it is compressed and four of its size, big-endian. The body comes in
 * pieces of any length.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { GRPC_HEAD_BYTES = 5 };

struct grpc_frames {
	bool is_stream; /* any number of messages, whose content is dropped; else one, which is kept
			 */
	uint32_t limit_bytes; /* of one message */
	uint8_t head[GRPC_HEAD_BYTES];
	size_t head_bytes; /* of the message that is being received */
	uint32_t left_bytes; /* of its content */
	uint64_t count; /* complete messages */
	struct buffer message;
	int error; /* of the first failure; 0 = none */
};

void grpc_frames_init(struct grpc_frames *f, bool is_stream, uint32_t limit_bytes);
void grpc_frames_deinit(struct grpc_frames *f); /* fine on a zeroed struct */
/*
 * Takes the next SIZE bytes of the body. Returns -EBADMSG for a compressed message, which nobody
 * asked for, and for a second one unless it is a stream; -E2BIG over the limit; -ENOMEM.
 */
int grpc_frames_take(struct grpc_frames *f, const void *bytes, size_t size);
/* Whether the body may end here. */
bool grpc_frames_is_whole(const struct grpc_frames *f);
