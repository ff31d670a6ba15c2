/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes foreign names safe for a terminal. Control characters, escape sequences, marks that change
 * the writing direction and bytes that are not text in the user's locale become `?`. Measures text
 * in columns (wcwidth), so that a name never leaves its column. Uses the locale's LC_CTYPE.
 */
#include <stddef.h>

#include "base/buffer.h"

/* Appends as much of TEXT as fits into COLUMNS; returns the columns used. */
size_t text_put(struct buffer *out, const char *text, size_t columns);
/* Like text_put(), padded with blanks to COLUMNS. */
void text_put_padded(struct buffer *out, const char *text, size_t columns);
