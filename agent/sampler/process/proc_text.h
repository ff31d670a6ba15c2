/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the fields of /proc's text files with a cursor. A missing or too big number, or an
 * unexpected byte, sets the cursor's `bad`.
 */
#include "base/cursor.h"

/* Reads a number in BASE (10 or 16) that fits 64 bits. */
uint64_t proc_text_number(struct cursor *c, unsigned int base);
void proc_text_expect(struct cursor *c, char byte);
void proc_text_skip_blanks(struct cursor *c);

static inline uint64_t proc_text_hex(struct cursor *c)
{
	return proc_text_number(c, 16);
}

static inline uint64_t proc_text_decimal(struct cursor *c)
{
	return proc_text_number(c, 10);
}
