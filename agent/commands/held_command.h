/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A command that is started, but held back before its exec until measuring has begun. */
#include <stdbool.h>
#include <sys/types.h>

struct held_command {
	const char *name; /* argv[0], borrowed */
	pid_t pid; /* -1 = none */
	int go_fd; /* one byte written here starts it; -1 = started */
	int exec_fd; /* yields an errno if exec fails, otherwise EOF */
	int exec_error; /* a negative errno; 0 = it was executed, or not even tried */
	int status; /* from waitpid(), valid once `ended` is set */
	bool ended;
};

int held_command_spawn(char **argv, struct held_command *ret_command);
/* Starts the command. Returns 0, or `exec_error` if it cannot be executed. */
int held_command_go(struct held_command *command);
/* Call after SIGCHLD. Returns true if the command has ended. */
bool held_command_reap(struct held_command *command);
/* Tells stderr, as fathom NAME, if a signal has killed COMMAND, or that its status is not 0. */
void held_command_say_end(const struct held_command *command, const char *name);
/*
 * What to exit with in order to hand on what became of COMMAND, as shells do: its own status, 128 +
 * the signal that killed it, 126 if it cannot be executed, 127 if it is not there. 0 = it has ended
 * with status 0, or has not ended.
 */
int held_command_exit_status(const struct held_command *command);
/* Releases COMMAND: if it was never started its process exits, otherwise it keeps running. */
void held_command_deinit(struct held_command *command);
