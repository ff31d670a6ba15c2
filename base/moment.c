/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

static const int64_t SECOND_NS = 1000000000;
static const int64_t LATEST_S = INT64_C(9223372000); /* in 2262 */

/* Reads an unsigned decimal and advances *TEXT; -1 if there is none, or if it is too large. */
static int64_t moment_digits(const char **text)
{
	int64_t value = 0;

	if (!isdigit((unsigned char)**text))
		return -1;
	for (; isdigit((unsigned char)**text); (*text)++) {
		value = value * 10 + (**text - '0');
		if (value > LATEST_S)
			return -1;
	}
	return value;
}

static int moment_of_seconds(int64_t seconds, int64_t *ret_ns)
{
	if (seconds < 0 || seconds > LATEST_S)
		return -EINVAL;
	*ret_ns = seconds * SECOND_NS;
	return 0;
}

static int moment_ago(int64_t count, char unit, int64_t now_ns, int64_t *ret_ns)
{
	static const char units[] = "smhd";
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	const char *at = strchr(units, unit);

	if (count > LATEST_S / seconds[at - units])
		return -EINVAL;
	return moment_of_seconds(now_ns / SECOND_NS - count * seconds[at - units], ret_ns);
}

/* Reads `Z` or `+01:00`: seconds east of UTC. */
static bool moment_zone(const char *text, int64_t *ret_east_s)
{
	int sign = *text == '-' ? -1 : 1;

	*ret_east_s = 0;
	if (!strcmp(text, "Z") || !strcmp(text, "z"))
		return true;
	if (strlen(text) != strlen("+hh:mm") || !strchr("+-", text[0]) || text[3] != ':')
		return false;
	for (int i = 1; i < 6; i++) {
		if (i != 3 && !isdigit((unsigned char)text[i]))
			return false;
	}
	*ret_east_s = sign * (((text[1] - '0') * 10 + text[2] - '0') * 3600L +
				     ((text[4] - '0') * 10 + text[5] - '0') * 60L);
	return true;
}

static int moment_rfc3339(const char *text, int64_t *ret_ns)
{
	struct tm t = { 0 }, again;
	const char *rest = strptime(text, "%Y-%m-%d", &t);
	int64_t east_s, seconds;

	if (!rest || rest - text != strlen("2026-11-24") || !strchr("Tt ", *rest))
		return -EINVAL;
	rest = *rest ? strptime(rest + 1, "%H:%M:%S", &t) : NULL;
	if (!rest)
		return -EINVAL;
	if (*rest == '.') { /* fractions of a second are more than a window needs */
		rest++;
		if (moment_digits(&rest) < 0)
			return -EINVAL;
	}
	if (!moment_zone(rest, &east_s))
		return -EINVAL;
	again = t;
	seconds = (int64_t)timegm(&again);
	if (again.tm_mday != t.tm_mday) /* a 30th of February */
		return -EINVAL;
	return moment_of_seconds(seconds - east_s, ret_ns);
}

int moment_parse(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	const char *rest = text;
	int64_t number = moment_digits(&rest);

	if (number >= 0 && !*rest)
		return moment_of_seconds(number, ret_ns);
	if (number >= 0 && !rest[1] && strchr("smhd", *rest))
		return moment_ago(number, *rest, now_ns, ret_ns);
	return moment_rfc3339(text, ret_ns);
}
