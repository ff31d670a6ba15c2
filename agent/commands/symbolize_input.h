/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lines of standard input, some of them before they are needed: an index of the addresses that
 * are known is cheaper than one of all.
 */
#include <stdbool.h>
#include <stddef.h>

struct symbolize_input {
	int fd; /* borrowed */
	bool awaited; /* the writer may wait for each answer: the input is no regular file */
	bool ended;
	int error; /* of reading, -errno; then the input ends */
	char *bytes;
	size_t first, size, room; /* [first, size) are not yet taken */
	size_t searched; /* no line ends in [first, searched) */
};

void symbolize_input_init(struct symbolize_input *in, int fd);
void symbolize_input_deinit(struct symbolize_input *in);
/* Takes the next line, without its newline; valid until the next call. NULL: none is left. */
char *symbolize_input_take(struct symbolize_input *in);
/*
 * Waits for a line, then reads what is there already. Passes each whole line of it, without taking
 * it, to FN, which may not keep it. Returns false if there are more than MAX, or more bytes than
 * are read ahead.
 */
typedef void symbolize_line_fn(void *context, const char *line);
bool symbolize_input_peek(
	struct symbolize_input *in, size_t max, symbolize_line_fn *fn, void *context);
