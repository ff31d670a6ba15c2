/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which file execvp(3) would execute. */

/*
 * Sets *RET_PATH, to be freed, to the program that NAME is found as in $PATH, without symbolic
 * links. Returns -ENOENT, -EACCES if none of the files may be executed, or -ENOMEM.
 */
int program_path(const char *name, char **ret_path);
