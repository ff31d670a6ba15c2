/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/remote/retry_after.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

static const uint64_t SECOND_NS = 1000000000;

/* All three forms of RFC 9110, section 5.6.7; the first is what servers send today. */
static bool parse_date(const char *text, int64_t *ret_seconds)
{
	static const char *const forms[] = { "%a, %d %b %Y %H:%M:%S GMT",
		"%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y" };

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm time = { 0 };
		const char *end = strptime(text, forms[i], &time);

		if (!end || *end)
			continue;
		*ret_seconds = (int64_t)timegm(&time);
		return true;
	}
	return false;
}

/* A number that is too large becomes the largest. */
static bool parse_seconds(const char *text, uint64_t *ret_seconds)
{
	if (!*text || text[strspn(text, "0123456789")])
		return false;
	*ret_seconds = strtoull(text, NULL, 10);
	return true;
}

uint64_t retry_after_ns(const char *text, const char *date, int64_t now_s)
{
	int64_t at_s, from_s = now_s;
	uint64_t seconds = 0;

	if (!parse_seconds(text, &seconds) && parse_date(text, &at_s)) {
		(void)parse_date(date, &from_s);
		seconds = at_s > from_s ? (uint64_t)at_s - (uint64_t)from_s : 0;
	}
	return MIN(seconds, RETRY_AFTER_LONGEST_NS / SECOND_NS) * SECOND_NS;
}
