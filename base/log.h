/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Log lines on stderr: logfmt (`time=… level=info msg="…" pid=12`) or JSON. Used by agent/ only;
 * base/, symbolizer/ and pprof/ return errors instead. The logger is process-wide state, because
 * passing one through every call would clutter every signature for nothing.
 */
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_configure(enum log_level level, bool json);
bool log_enabled(enum log_level level);
/*
 * Writes one line. MESSAGE is a plain sentence; FIELDS is a printf format of `key=value` pairs
 * separated by blanks, with quotes around values that may hold blanks (`path=\"%s\"`). Pass
 * "%s", "" for none. Control characters and bytes that are not UTF-8 become '?'.
 */
void log_line(enum log_level level, const char *message, const char *fields, ...)
	__attribute__((format(printf, 3, 4)));

/* Rate limit of one message. */
struct log_rate {
	uint64_t last_ns; /* monotonic, when it was last let through; 0 = never */
};
/* True at most once a second. */
bool log_rate_allows(struct log_rate *rate);
/* True at most once per INTERVAL_NS. */
bool log_rate_allows_every(struct log_rate *rate, uint64_t interval_ns);

#define log_error(message, ...) log_line(LOG_ERROR, message, __VA_ARGS__)
#define log_warn(message, ...) log_line(LOG_WARN, message, __VA_ARGS__)
#define log_info(message, ...) log_line(LOG_INFO, message, __VA_ARGS__)
#define log_debug(message, ...) log_line(LOG_DEBUG, message, __VA_ARGS__)
