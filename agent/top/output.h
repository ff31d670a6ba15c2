/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writing to a terminal or pipe whose reader may be slow or gone, without ever waiting: what is not
 * taken at once is kept and written when the loop says so. A regular file takes everything.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/loop/loop.h"
#include "base/buffer.h"

struct output;

struct output_options {
	int fd; /* borrowed; opened anew where that lets us write without waiting */
	struct loop *loop;
	void (*drained)(void *context); /* what was kept has been written */
	void (*failed)(void *context, int error); /* from the loop, once */
	void *context;
};

int output_create(const struct output_options *options, struct output **ret_output);
void output_destroy(struct output *o);
/* Writes BYTES or keeps the rest. -EBUSY: something is kept already; else a failed write. */
int output_put(struct output *o, const struct buffer *bytes);
bool output_is_pending(const struct output *o);
/* Drops what is kept and writes TEXT, waiting a moment at most: for the end. */
void output_last(struct output *o, const char *text);
