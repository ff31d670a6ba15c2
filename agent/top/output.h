/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Non-blocking output to a terminal or pipe whose reader may be slow or gone. Bytes that cannot be
 * written at once are buffered and written from the loop. A regular file takes everything.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/loop/loop.h"
#include "base/buffer.h"

struct output;

struct output_options {
	int fd; /* borrowed; reopened where possible, for O_NONBLOCK */
	struct loop *loop;
	void (*drained)(void *context); /* the buffer has been written */
	void (*failed)(void *context, int error); /* from the loop, once */
	void *context;
};

int output_create(const struct output_options *options, struct output **ret_output);
void output_destroy(struct output *o);
/*
 * Writes BYTES and buffers what does not fit. Returns -EBUSY if bytes are still buffered; otherwise
 * 0 or the error of the write or of buffering.
 */
int output_put(struct output *o, const struct buffer *bytes);
bool output_is_pending(const struct output *o);
/* Drops buffered bytes and writes TEXT, waiting 200 ms at most. For the end of the program. */
void output_last(struct output *o, const char *text);
