/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	KEPT_LIMIT = 64 << 20,
	LAST_WAIT_MS = 200,
};

struct output {
	struct output_options options;
	int fd;
	bool own_fd;
	struct buffer kept;
	size_t written; /* bytes of `kept` that were written */
};

/*
 * O_NONBLOCK belongs to the open file description, which the user's shell shares, so the file is
 * opened again. If that is impossible (sockets, another user's terminal), writes may block.
 */
static int open_again(int fd)
{
	char path[32];
	struct stat info;

	if (fstat(fd, &info) || !(S_ISFIFO(info.st_mode) || isatty(fd)))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int output_create(const struct output_options *options, struct output **ret_output)
{
	struct output *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->options = *options;
	buffer_init(&o->kept, KEPT_LIMIT);
	o->fd = open_again(options->fd);
	o->own_fd = o->fd >= 0;
	if (!o->own_fd)
		o->fd = options->fd;
	*ret_output = o;
	return 0;
}

static void output_forget(struct output *o)
{
	if (output_is_pending(o))
		loop_remove(o->options.loop, o->fd);
	buffer_deinit(&o->kept);
	buffer_init(&o->kept, KEPT_LIMIT);
	o->written = 0;
}

void output_destroy(struct output *o)
{
	if (!o)
		return;
	output_forget(o);
	buffer_deinit(&o->kept);
	if (o->own_fd)
		close(o->fd);
	free(o);
}

bool output_is_pending(const struct output *o)
{
	return o->kept.size > 0;
}

/* Writes until the descriptor would block. Returns the bytes written, or a negative errno. */
static ssize_t write_some(int fd, const uint8_t *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = write(fd, bytes + done, size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			break;
		if (got < 0)
			return -errno;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static void on_writable(void *context, int fd, uint32_t events)
{
	struct output *o = context;
	ssize_t got;

	(void)events;
	got = write_some(fd, o->kept.bytes + o->written, o->kept.size - o->written);
	if (got >= 0) {
		o->written += (size_t)got;
		if (o->written < o->kept.size)
			return;
	}
	output_forget(o);
	if (got < 0)
		o->options.failed(o->options.context, (int)got);
	else
		o->options.drained(o->options.context);
}

int output_put(struct output *o, const struct buffer *bytes)
{
	ssize_t got;
	int err;

	if (output_is_pending(o))
		return -EBUSY;
	got = write_some(o->fd, bytes->bytes, bytes->size);
	if (got < 0)
		return (int)got;
	if ((size_t)got == bytes->size)
		return 0;
	err = buffer_append(&o->kept, bytes->bytes + got, bytes->size - (size_t)got);
	if (err)
		return err;
	err = loop_add(o->options.loop, o->fd, EPOLLOUT, on_writable, o);
	if (err)
		o->kept.size = 0;
	return err;
}

void output_last(struct output *o, const char *text)
{
	struct pollfd ready = { .fd = o->fd, .events = POLLOUT };

	output_forget(o);
	if (poll(&ready, 1, LAST_WAIT_MS) == 1)
		(void)write_some(o->fd, (const uint8_t *)text, strlen(text));
}
