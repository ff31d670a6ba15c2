/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The steps by which a child gives up what it does not need; each 0 or a negative errno. */
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "symbolizer/sandbox/sandbox.h"

/* It dies with the thread that started it, the process PARENT. -ESRCH: that is gone already. */
int sandbox_tie_to_parent(pid_t parent);
/* All of them, and the way to get any. */
int sandbox_drop_capabilities(void);
/* Lowers a limit, never raises it. */
int sandbox_limit(int resource, rlim_t soft, rlim_t hard);
/* Best effort. */
void sandbox_lower_priority(void);
/* All of these and the filter of system calls: from then on foreign bytes may be parsed. */
int sandbox_enter(const struct sandbox_limits *limits);
/* A decimal number, an argument of the child. */
bool sandbox_parse_number(const char *text, unsigned long *ret_number);
/* Writes the result to the parent and exits. */
void sandbox_report(const struct sandbox_result *result) __attribute__((noreturn));
