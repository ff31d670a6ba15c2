/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The terminal's modes: keys come one by one and unseen, on a screen of our own, and everything is
 * as it was after terminal_leave(). A dumb terminal gets no sequences, only the key mode.
 */
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "agent/top/output.h"

struct terminal {
	int keys_fd; /* -1 = no keys: standard input is no terminal */
	int size_fd;
	bool ansi;
	bool entered;
	struct termios saved;
};

/* KEYS_FD and SCREEN_FD are borrowed; NAME is $TERM, or NULL. */
void terminal_init(struct terminal *t, int keys_fd, int screen_fd, const char *name);
/* Again after a stop: what a shell has changed meanwhile is what is put back later. */
int terminal_enter(struct terminal *t, struct output *output);
void terminal_leave(struct terminal *t, struct output *output);
/* 80 columns and 24 lines where nobody says otherwise. */
void terminal_size(const struct terminal *t, size_t *ret_columns, size_t *ret_lines);
