/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The child that merges stored profiles: this program again, with lower priority, bounded memory
 * and CPU time, and without capabilities. It only reads files of the store.
 */
#include <stdbool.h>

bool merge_child_is_command(const char *name);
/* Returns the exit status. */
int merge_child_main(int argc, char **argv);
