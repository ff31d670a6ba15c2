/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists in one text, `a,b`. A separator behind a backslash belongs to the item: `a\,b` is one. */

/* Cuts the next item off *NEXT, in place, without such backslashes; NULL at the end. */
char *items_next(char **next, const char *separators);
/*
 * ITEM with a backslash before each separator that has none; the caller frees it, NULL: no memory.
 */
char *items_escape(const char *item, const char *separators);
