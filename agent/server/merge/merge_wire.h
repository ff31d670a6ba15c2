/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Protocol between the agent, which wants stored profiles merged, and its child, which does it. */

enum {
	MERGE_WIRE_DIRECTORY_FD = 3, /* of the store */
	MERGE_WIRE_JOB_FD = 4, /* paths below it, one a line */
	MERGE_WIRE_OUTPUT_FD = 5, /* an empty file */
	/* argv: program, command, parent's pid, by file (0 or 1), comm, container. */
	MERGE_WIRE_ARGUMENTS = 6,
	/* Exit statuses. */
	MERGE_WIRE_DONE = 0,
	MERGE_WIRE_FAILED = 1,
	MERGE_WIRE_TOO_LARGE = 3,
};

static const char MERGE_WIRE_COMMAND[] = "merge-stored";
