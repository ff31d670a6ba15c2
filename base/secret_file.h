/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads a token or password from a file that holds nothing else. */
#include <stddef.h>

/*
 * Reads the file, without trailing white space (editors and `echo` add a newline). Free *RET_SECRET
 * with secret_free(). Returns -ENODATA if nothing is left, -E2BIG if longer than LIMIT bytes, and
 * -EBADMSG if there are control characters (a line break would start another HTTP header); else
 * the system call's error.
 */
int secret_file_read(const char *path, size_t limit, char **ret_secret);
/* Describes an error of secret_file_read() for messages. */
const char *secret_file_explain(int err);
/* Wipes and frees *SECRET, and sets it to NULL. */
void secret_free(char **secret);
