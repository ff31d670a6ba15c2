/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The Retry-After header (RFC 9110, section 10.2.3): how long a server wants to be left alone. */
#include <stdint.h>

static const uint64_t RETRY_AFTER_LONGEST_NS = UINT64_C(24) * 3600 * 1000000000;

/*
 * TEXT is the header's value: seconds, or a date. A date is compared with DATE, which the same
 * server put into its Date header, so that its clock need not agree with ours, and with NOW_S
 * (seconds since 1970) where DATE is none. 0 for a date that has passed, for "" and for what makes
 * no sense; never more than RETRY_AFTER_LONGEST_NS.
 */
uint64_t retry_after_ns(const char *text, const char *date, int64_t now_s);
