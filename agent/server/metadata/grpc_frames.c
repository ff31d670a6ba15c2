/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/grpc_frames.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"

void grpc_frames_init(struct grpc_frames *f, bool is_stream, uint32_t limit_bytes)
{
	*f = (struct grpc_frames){ .is_stream = is_stream, .limit_bytes = limit_bytes };
	buffer_init(&f->message, limit_bytes);
}

void grpc_frames_deinit(struct grpc_frames *f)
{
	buffer_deinit(&f->message);
}

static int grpc_frames_begin(struct grpc_frames *f)
{
	uint32_t size = 0;

	for (size_t i = 1; i < GRPC_HEAD_BYTES; i++)
		size = size << 8 | f->head[i];
	if (f->head[0] || (!f->is_stream && f->count))
		return -EBADMSG;
	if (size > f->limit_bytes)
		return -E2BIG;
	f->left_bytes = size;
	return 0;
}

static void grpc_frames_end_if_complete(struct grpc_frames *f)
{
	if (f->head_bytes < GRPC_HEAD_BYTES || f->left_bytes)
		return;
	f->head_bytes = 0;
	f->count++;
}

static int grpc_frames_step(struct grpc_frames *f, struct cursor *c)
{
	const bool in_head = f->head_bytes < GRPC_HEAD_BYTES;
	size_t want = in_head ? GRPC_HEAD_BYTES - f->head_bytes : f->left_bytes;
	size_t size = MIN(want, cursor_left(c));
	const void *bytes = cursor_bytes(c, size);
	int err = 0;

	if (in_head) {
		memcpy(f->head + f->head_bytes, bytes, size);
		f->head_bytes += size;
		if (f->head_bytes == GRPC_HEAD_BYTES)
			err = grpc_frames_begin(f);
	} else {
		f->left_bytes -= (uint32_t)size;
		if (!f->is_stream)
			err = buffer_append(&f->message, bytes, size);
	}
	if (!err)
		grpc_frames_end_if_complete(f);
	return err;
}

int grpc_frames_take(struct grpc_frames *f, const void *bytes, size_t size)
{
	struct cursor c = cursor_over(bytes, size);

	while (!f->error && cursor_left(&c))
		f->error = grpc_frames_step(f, &c);
	return f->error;
}

bool grpc_frames_is_whole(const struct grpc_frames *f)
{
	return !f->error && !f->head_bytes && (f->is_stream || f->count == 1);
}
