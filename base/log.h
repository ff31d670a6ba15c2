/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Log lines on stderr: logfmt (`time=… level=info msg="…" pid=12`) or JSON. Used by agent/ only;
 * base/, symbolizer/ and pprof/ return errors instead. The one piece of process-wide state in the
 * program: a logger handed through every call would be in every signature and say nothing.
 */
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_configure(enum log_level level, bool json);
bool log_enabled(enum log_level level);
/*
 * One line: MESSAGE is a plain sentence; FIELDS is a printf format of `key=value` pairs separated
 * by blanks, values without blanks or quoted by the %s they come from: use log_quote() for foreign
 * text. Pass "" for none.
 */
void log_line(enum log_level level, const char *message, const char *fields, ...)
	__attribute__((format(printf, 3, 4)));

/* Lets a message through at most once a second per call site; says how many were held back. */
struct log_rate {
	uint64_t last_ns;
	uint64_t held;
};
bool log_rate_allows(struct log_rate *rate);
/* The same with another interval than a second. */
bool log_rate_allows_every(struct log_rate *rate, uint64_t interval_ns);

#define log_error(message, ...) log_line(LOG_ERROR, message, __VA_ARGS__)
#define log_warn(message, ...) log_line(LOG_WARN, message, __VA_ARGS__)
#define log_info(message, ...) log_line(LOG_INFO, message, __VA_ARGS__)
#define log_debug(message, ...) log_line(LOG_DEBUG, message, __VA_ARGS__)
