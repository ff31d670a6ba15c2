/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The steps by which a child gives up what it does not need; each returns 0 or a negative errno. */
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "symbolizer/sandbox/sandbox.h"

/*
 * Makes the child die with the thread that started it, in process PARENT. Returns -ESRCH if PARENT
 * is gone already.
 */
int sandbox_tie_to_parent(pid_t parent);
/*
 * If memory is short the kernel kills this child first; best effort. Needs a free descriptor.
 */
void sandbox_offer_to_oom_killer(void);
/* Drops all capabilities and the way to regain any. */
int sandbox_drop_capabilities(void);
/* Lowers a limit, never raises it. */
int sandbox_limit(int resource, rlim_t soft, rlim_t hard);
/* Lowers CPU and I/O priority; best effort. */
void sandbox_lower_priority(void);
/*
 * Drops capabilities, the user root and the file system, where it may; sets LIMITS, with those of
 * memory and CPU time lowered to what a child without files gets; loads the system-call filter.
 * After that foreign bytes may be parsed.
 */
int sandbox_close_in(const struct sandbox_limits *limits);
/*
 * To be called when the child has all its files, of FILE_BYTES together: makes what LIMITS allow
 * for them final. Until then the limits can be raised, up to LIMITS.
 */
int sandbox_settle(const struct sandbox_limits *limits, uint64_t file_bytes);
/* Shows NAME as the child's name in ps and in profiles. */
void sandbox_set_name(const char *name);
/* Lowers the priority, then sandbox_close_in(). */
int sandbox_enter(const struct sandbox_limits *limits);
/* Parses a decimal argument of the child. */
bool sandbox_parse_number(const char *text, unsigned long *ret_number);
/* Writes the result to the parent and exits. */
void sandbox_report(const struct sandbox_result *result) __attribute__((noreturn));
