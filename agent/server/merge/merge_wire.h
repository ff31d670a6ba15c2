/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Protocol between the agent, which wants stored profiles merged, and its child, which does it. */
#include <inttypes.h>

enum {
	MERGE_WIRE_DIRECTORY_FD = 3, /* of the store */
	MERGE_WIRE_JOB_FD = 4, /* one file a line: MERGE_WIRE_LINE */
	MERGE_WIRE_OUTPUT_FD = 5, /* an empty file */
	/* argv: program, command, parent's pid, form (enum stored_merge_form), comm, container,
	   group. */
	MERGE_WIRE_ARGUMENTS = 7,
	MERGE_WIRE_GROUP_BYTES = 128,
	MERGE_WIRE_PATH_BYTES = 256,
	/* Exit statuses. */
	MERGE_WIRE_DONE = 0,
	MERGE_WIRE_FAILED = 1,
	MERGE_WIRE_TOO_LARGE = 3,
	MERGE_WIRE_NOTHING = 4, /* no sample of the group that is asked for */
	/* Done, but up to MERGE_WIRE_MOST_UNREAD files (added) could not be read. */
	MERGE_WIRE_UNREAD = 100,
	MERGE_WIRE_MOST_UNREAD = 100,
};

/*
 * Which minutes are wanted, which the file has (bits), the minute that it belongs to, the beginning
 * of its slice, its group or `*`, its path below the directory.
 */
#define MERGE_WIRE_LINE "%x %x %x %" PRIx64 " %s %s\n"
#define MERGE_WIRE_NO_GROUP "*"

static const char MERGE_WIRE_COMMAND[] = "merge-stored";
