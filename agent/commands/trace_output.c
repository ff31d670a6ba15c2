/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/trace_output.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/loop/loop.h"
#include "base/cleanup.h"
#include "base/interrupted.h"

enum {
	PENDING_LIMIT = 16 << 20, /* beyond it nothing is added */
	TEXT_LIMIT = 64 << 20, /* of what is added at once */
	PIECE_BYTES = 4096, /* PIPE_BUF: a descriptor that is ready takes so many without waiting */
	POLL_MS = 100,
};

void trace_output_init(struct trace_output *out, struct loop *loop, int fd,
	void (*failed)(void *context), void *context)
{
	struct stat info;

	*out = (struct trace_output){
		.loop = loop,
		.fd = fd,
		.is_file = !fstat(fd, &info) && S_ISREG(info.st_mode),
		.failed = failed,
		.context = context,
	};
	buffer_init(&out->pending, PENDING_LIMIT + TEXT_LIMIT);
}

static void trace_output_unwatch(struct trace_output *out)
{
	if (out->waits)
		loop_remove(out->loop, out->fd);
	out->waits = false;
}

void trace_output_deinit(struct trace_output *out)
{
	if (out->loop)
		trace_output_unwatch(out);
	buffer_deinit(&out->pending);
}

static bool trace_output_is_ready(const struct trace_output *out, int wait_ms)
{
	struct pollfd ready = { .fd = out->fd, .events = POLLOUT };

	return out->is_file || poll(&ready, 1, wait_ms) > 0;
}

/* CMD may write to the same pipe: what is written at once ends with a line, if it has one. */
static size_t trace_output_piece_bytes(const struct trace_output *out)
{
	size_t left = out->pending.size - out->written, bytes = MIN(left, (size_t)PIECE_BYTES);
	const uint8_t *from = out->pending.bytes + out->written, *end;

	if (out->is_file)
		return left;
	end = memrchr(from, '\n', bytes);
	return end ? (size_t)(end - from) + 1 : bytes;
}

/* Writes a piece to the descriptor, which is ready. */
static void trace_output_piece(struct trace_output *out)
{
	ssize_t wrote =
		write(out->fd, out->pending.bytes + out->written, trace_output_piece_bytes(out));

	if (wrote >= 0)
		out->written += (size_t)wrote;
	else if (errno != EINTR && errno != EAGAIN)
		out->error = -errno;
	if (out->written == out->pending.size || out->error)
		out->pending.size = out->written = 0;
}

static void trace_output_on_ready(void *context, int fd, uint32_t epoll_events);

/* Writes what can be written now, and has the loop watch for the rest. */
static void trace_output_write(struct trace_output *out)
{
	while (out->pending.size && trace_output_is_ready(out, 0))
		trace_output_piece(out);
	if (!out->pending.size)
		trace_output_unwatch(out);
	else if (!out->waits)
		out->waits = !loop_add(out->loop, out->fd, EPOLLOUT, trace_output_on_ready, out);
	if (out->error)
		out->failed(out->context);
}

static void trace_output_on_ready(void *context, int fd, uint32_t epoll_events)
{
	(void)fd;
	(void)epoll_events;
	trace_output_write(context);
}

/* Moves what is left to the beginning. */
static void trace_output_compact(struct trace_output *out)
{
	struct buffer *pending = &out->pending;

	if (!out->written)
		return;
	memmove(pending->bytes, pending->bytes + out->written, pending->size - out->written);
	pending->size -= out->written;
	out->written = 0;
}

bool trace_output_add(struct trace_output *out, const struct buffer *text)
{
	if (out->error)
		return false;
	if (out->pending.size - out->written >= PENDING_LIMIT)
		trace_output_write(out);
	if (out->error || out->pending.size - out->written >= PENDING_LIMIT)
		return false;
	trace_output_compact(out);
	if (buffer_append(&out->pending, text->bytes, text->size)) {
		/* The next one may fit. */
		out->pending.error = 0;
		return false;
	}
	trace_output_write(out);
	return true;
}

int trace_output_finish(struct trace_output *out)
{
	trace_output_unwatch(out);
	while (out->pending.size && !interrupted())
		if (trace_output_is_ready(out, POLL_MS))
			trace_output_piece(out);
	return out->error;
}
