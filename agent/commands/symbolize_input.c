/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/symbolize_input.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	READ_BYTES = 16 << 10,
	AHEAD_BYTES = 256 << 10, /* is not read ahead of the answers */
};

void symbolize_input_init(struct symbolize_input *in, int fd)
{
	struct stat st;

	*in = (struct symbolize_input){
		.fd = fd,
		.awaited = fstat(fd, &st) || !S_ISREG(st.st_mode),
	};
}

void symbolize_input_deinit(struct symbolize_input *in)
{
	free(in->bytes);
}

/* Reads more bytes, or notes the end. */
static void input_read(struct symbolize_input *in)
{
	ssize_t got;

	if (in->first)
		memmove(in->bytes, in->bytes + in->first, in->size - in->first);
	in->size -= in->first;
	in->searched -= MIN(in->searched, in->first);
	in->first = 0;
	/* One byte more, for the end of a last line without newline. */
	in->error = array_reserve(in->bytes, in->room, in->size + READ_BYTES + 1, SIZE_MAX / 2);
	if (!in->error) {
		do
			got = read(in->fd, in->bytes + in->size, READ_BYTES);
		while (got < 0 && errno == EINTR);
		in->error = got < 0 ? -errno : 0;
		in->size += got > 0 ? (size_t)got : 0;
		in->ended = got <= 0;
	}
	in->ended |= in->error != 0;
}

static bool can_read(const struct symbolize_input *in)
{
	struct pollfd input = { .fd = in->fd, .events = POLLIN };

	return !in->ended && poll(&input, 1, 0) > 0;
}

/* Returns the end of the line at FROM, or NULL if it is not whole. */
static char *line_end(const struct symbolize_input *in, size_t from)
{
	char *end = from < in->size ? memchr(in->bytes + from, '\n', in->size - from) : NULL;

	if (end || !in->ended || in->error || from >= in->size)
		return end;
	return in->bytes + in->size;
}

/* Returns the end of the next line, reading on until it is there; NULL if none is left. */
static char *next_line_end(struct symbolize_input *in)
{
	char *end;

	while (!(end = line_end(in, MAX(in->first, in->searched))) && !in->ended) {
		in->searched = in->size;
		input_read(in);
	}
	/* The last line may have no newline. */
	return end || in->first >= in->size ? end : line_end(in, in->first);
}

char *symbolize_input_take(struct symbolize_input *in)
{
	char *end = next_line_end(in), *line;

	if (!end)
		return NULL;
	line = in->bytes + in->first;
	in->first = MIN((size_t)(end - in->bytes) + 1, in->size);
	*end = 0;
	return line;
}

static void pass_line(const char *at, size_t size, symbolize_line_fn *fn, void *context)
{
	char line[256];

	if (size >= sizeof(line))
		return; /* no address is that long */
	memcpy(line, at, size);
	line[size] = 0;
	fn(context, line);
}

bool symbolize_input_peek(
	struct symbolize_input *in, size_t max, symbolize_line_fn *fn, void *context)
{
	size_t at, count = 0;
	char *end;

	(void)next_line_end(in);
	while (in->size - in->first < AHEAD_BYTES && can_read(in))
		input_read(in);
	for (at = in->first; (end = line_end(in, at)); count++) {
		if (count == max)
			return false;
		pass_line(in->bytes + at, (size_t)(end - in->bytes) - at, fn, context);
		at = (size_t)(end - in->bytes) + 1;
	}
	return in->size - in->first < AHEAD_BYTES;
}
