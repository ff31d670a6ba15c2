/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Foreign names on a terminal: control characters, escape sequences, marks that change the writing
 * direction and bytes that are no text in the user's locale become `?`; what is left is measured in
 * columns (wcwidth), so that a name never leaves its place. Uses the locale's LC_CTYPE.
 */
#include <stddef.h>

#include "base/buffer.h"

/* Appends as much of TEXT as fits COLUMNS; returns how many columns it took. */
size_t text_put(struct buffer *out, const char *text, size_t columns);
/* The same, filled up with blanks. */
void text_put_padded(struct buffer *out, const char *text, size_t columns);
