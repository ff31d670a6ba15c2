/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The hidden commands, which this program runs as a sandboxed child of itself. agent/main.c calls
 * them before anything else has run.
 */
#include <stdbool.h>

#include "symbolizer/sandbox/job.h"

/* Returns true if NAME is a hidden command. */
bool sandboxed_is_command(const char *name);
/*
 * Runs a hidden command with the arguments from sandbox_start(): enters the sandbox, does the task,
 * reports and exits. Returns an exit status only if it could not begin.
 */
int sandboxed_main(int argc, char **argv);

typedef int sandboxed_task(const struct sandbox_files *files, struct sandbox_result *ret_result);
/* Like sandboxed_main(), with TASK instead of the indexer. */
int sandboxed_run(int argc, char **argv, sandboxed_task *task);
