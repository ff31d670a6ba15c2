/* SPDX-License-Identifier: Apache-2.0 */
#include "base/items.h"

#include <stdlib.h>
#include <string.h>

char *items_next(char **next, const char *separators)
{
	char *item = *next, *from, *to;

	if (!item)
		return NULL;
	for (from = to = item; *from && !strchr(separators, *from); from++) {
		if (*from == '\\' && from[1] && strchr(separators, from[1]))
			from++;
		*to++ = *from;
	}
	*next = *from ? from + 1 : NULL;
	*to = 0;
	return item;
}

char *items_escape(const char *item, const char *separators)
{
	char *escaped = malloc(2 * strlen(item) + 1), *to = escaped;

	if (!escaped)
		return NULL;
	for (const char *from = item; *from; from++) {
		if (strchr(separators, *from) && (from == item || from[-1] != '\\'))
			*to++ = '\\';
		*to++ = *from;
	}
	*to = 0;
	return escaped;
}
