/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The hidden commands: what this program does as a child of itself, closed in. agent/main.c hands
 * over to it before anything else has run.
 */
#include <stdbool.h>

#include "symbolizer/sandbox/job.h"

/* Whether NAME is one of the hidden commands. */
bool sandboxed_is_command(const char *name);
/*
 * Their main, with the arguments that sandbox_start() gave: closes itself in, does the task,
 * reports and exits. Returns an exit status only where that could not begin.
 */
int sandboxed_main(int argc, char **argv);

typedef int sandboxed_task(const struct sandbox_files *files, struct sandbox_result *ret_result);
/* The same with TASK in the place of the indexer. */
int sandboxed_run(int argc, char **argv, sandboxed_task *task);
