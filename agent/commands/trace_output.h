/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes text to standard output without ever waiting for a reader while the loop runs: what cannot
 * be written is kept, up to a limit, and the rest is refused.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

struct loop;

struct trace_output {
	struct loop *loop; /* borrowed */
	int fd; /* borrowed */
	struct buffer pending;
	size_t written; /* of `pending` */
	bool waits; /* the loop watches the descriptor */
	bool is_file; /* which is always ready */
	int error; /* of writing; 0 = none */
	/* Nobody reads any more, or the file cannot be written: see `error`. */
	void (*failed)(void *context);
	void *context;
};

void trace_output_init(struct trace_output *out, struct loop *loop, int fd,
	void (*failed)(void *context), void *context);
void trace_output_deinit(struct trace_output *out);
/* Writes TEXT, now or later. Returns false if there is no room for it. */
bool trace_output_add(struct trace_output *out, const struct buffer *text);
/* The loop is over: waits until all is written, or a signal comes. Returns 0 or the error. */
int trace_output_finish(struct trace_output *out);
