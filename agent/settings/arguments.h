/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whoever may run ps sees a process's arguments. The values of settings that may hold secrets
 * (tokens, headers, proxy URLs) are overwritten there; the program goes on with a copy.
 */

/* *RET_COPY has ARGC texts and a NULL, and is the caller's to give to arguments_free(). */
int arguments_take(int argc, char **argv, char ***ret_copy);
void arguments_free(char **copy);
