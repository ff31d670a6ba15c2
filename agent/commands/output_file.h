/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The file that a user names for a command's output; "-" is standard output. */
#include "base/buffer.h"

/* Checks that PATH can be written, so that a long run does not fail at its end. */
int output_file_check(const char *path);
/* A regular file is replaced atomically; a pipe or a device is written in place. */
int output_file_write(const char *path, const struct buffer *bytes);
