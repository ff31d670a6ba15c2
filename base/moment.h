/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Moments in time, as users write them. */
#include <stdint.h>

/*
 * Reads a moment in ns since 1970: RFC 3339 (`2026-11-24T10:00:00Z`, `…+01:00`), seconds since
 * 1970, or with a unit (`90s`, `30m`, `2h`, `7d`) so long before NOW_NS. Returns -EINVAL for
 * anything else and for times before 1970 or after 2262.
 */
int moment_parse(const char *text, int64_t now_ns, int64_t *ret_ns);
