/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A token or password that stands alone in a file. */
#include <stddef.h>

/*
 * What the file holds, without blanks and line breaks at its end: editors and `echo` leave them
 * there. *RET_SECRET is to be freed by secret_free(). -ENODATA: nothing is left; -E2BIG: longer
 * than LIMIT bytes; -EBADMSG: control characters are in it, of which a line break would end an HTTP
 * header and begin another; else the system call's error.
 */
int secret_file_read(const char *path, size_t limit, char **ret_secret);
/* For messages. */
const char *secret_file_explain(int err);
/* Wipes it; NULL after that. */
void secret_free(char **secret);
