/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Terminal modes: unbuffered keys without echo, on the alternate screen; terminal_leave() restores
 * everything. A dumb terminal gets the key mode but no sequences.
 */
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "agent/top/output.h"

struct terminal {
	int keys_fd; /* -1 = standard input is not a terminal */
	int size_fd;
	bool ansi;
	bool entered;
	struct termios saved;
};

/* KEYS_FD and SCREEN_FD are borrowed; NAME is $TERM, may be NULL. */
void terminal_init(struct terminal *t, int keys_fd, int screen_fd, const char *name);
/* Call again after the process was stopped: it saves the modes that the shell may have changed. */
int terminal_enter(struct terminal *t, struct output *output);
void terminal_leave(struct terminal *t, struct output *output);
/* The size from the kernel, else $COLUMNS and $LINES, else 80 by 24. */
void terminal_size(const struct terminal *t, size_t *ret_columns, size_t *ret_lines);
