/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parsers of client input: query numbers, credentials, origins. Pure functions. */
#include <stdbool.h>
#include <stdint.h>

/* False unless TEXT is decimal digits only, at most LIMIT. */
bool parameters_number(const char *text, uint64_t limit, uint64_t *ret_number);
/*
 * Whether an Authorization header carries TOKEN: `Bearer TOKEN`, or `Basic` with any user and TOKEN
 * as password, which is what browsers and `go tool pprof http://x:TOKEN@…` can send. Compares in
 * constant time.
 */
bool parameters_authorized(const char *header, const char *token);
/* Whether the Origin header names the same host and port as the Host header. */
bool parameters_same_origin(const char *origin, const char *host);
