/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file helper from inside: a child with its parent's rights, because it opens what the parent
 * may open, that makes one call of base/foreign.h after the other. It parses nothing; build IDs
 * come from the kernel or from a sandboxed reader of its own. It exits when its parent closes the
 * socket, and dies with the thread that started it.
 */
#include <stdbool.h>

/* Returns true if NAME is the hidden command that agent/main.c must pass to file_child_main(). */
bool file_child_is_command(const char *name);
int file_child_main(int argc, char **argv);
