/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks whether a link to many places of user code can be for one process: its breakpoints are in
 * that process's code only, so that others which execute the same file pay nothing. The kernel had
 * this wrong at first: Linux 6.6 ran the program in the first thread alone, 6.10 also in processes
 * that share the memory, and in none after the first thread's end.
 */

/* Returns 0 if all threads of the process are seen, and nobody else, or a negative errno. */
int process_uprobes_probe(void);
