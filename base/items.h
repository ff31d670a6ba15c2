/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists in one string, `a,b`. An escaped separator belongs to the item: `a\,b` is one item. */

/*
 * Returns the next item, unescaped in place, and advances *NEXT; NULL at the end. Any character of
 * SEPARATORS separates.
 */
char *items_next(char **next, const char *separators);
/* Returns ITEM with unescaped separators escaped; the caller frees it. NULL if out of memory. */
char *items_escape(const char *item, const char *separators);
