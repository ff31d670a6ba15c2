/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The Retry-After header (RFC 9110, section 10.2.3): how long to wait before the next request. */
#include <stdint.h>

static const uint64_t RETRY_AFTER_LONGEST_NS = UINT64_C(24) * 3600 * 1000000000;

/*
 * TEXT is the header's value: seconds, or a date. A date is relative to DATE, the same answer's
 * Date header, so that the server's clock need not agree with ours, or to NOW_S (seconds since
 * 1970) if DATE is not a date. Returns ns, at most RETRY_AFTER_LONGEST_NS; 0 for a past date, "" or
 * an invalid value.
 */
uint64_t retry_after_ns(const char *text, const char *date, int64_t now_s);
