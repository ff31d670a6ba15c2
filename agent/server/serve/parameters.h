/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What clients write: numbers of a query, credentials, origins. Pure functions. */
#include <stdbool.h>
#include <stdint.h>

/* Decimal digits and nothing else, LIMIT at most. */
bool parameters_number(const char *text, uint64_t limit, uint64_t *ret_number);
/*
 * An Authorization header that carries TOKEN: `Bearer TOKEN`, or `Basic` with TOKEN as password and
 * any user, which is what browsers and `go tool pprof http://x:TOKEN@…` can send. Takes as long
 * whichever byte is wrong.
 */
bool parameters_authorized(const char *header, const char *token);
/* An Origin header that names the same host and port as the Host header. */
bool parameters_same_origin(const char *origin, const char *host);
