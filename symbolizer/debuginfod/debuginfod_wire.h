/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Protocol between debuginfod_fetch.c and its child. */

#define DEBUGINFOD_URLS "DEBUGINFOD_URLS"
#define DEBUGINFOD_TIMEOUT "DEBUGINFOD_TIMEOUT"
#define DEBUGINFOD_MAXTIME "DEBUGINFOD_MAXTIME"
#define DEBUGINFOD_MAXSIZE "DEBUGINFOD_MAXSIZE"

enum {
	/*
	 * argv: program, command, parent's pid, limit in bytes, build ID; the rest is passed in the
	 * environment.
	 */
	DEBUGINFOD_ARGUMENTS = 5,
	/* Encoded in the message's broken_units. */
	DEBUGINFOD_STATUS_MASK = 0xffff,
	DEBUGINFOD_ANSWERED = 1 << 16,
};
