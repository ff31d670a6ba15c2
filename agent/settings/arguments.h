/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Any user who can run ps sees a process's arguments. Values of settings that may hold secrets
 * (tokens, headers, proxy URLs) are overwritten in argv; the program uses a copy.
 */

/* *RET_COPY has ARGC texts and a terminating NULL; free it with arguments_free(). */
int arguments_take(int argc, char **argv, char ***ret_copy);
void arguments_free(char **copy);
