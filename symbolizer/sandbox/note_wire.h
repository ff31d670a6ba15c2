/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Protocol between the two sides of the note reader, note_reader.c and sandboxed/note_child.c. */
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/sandbox/sandbox_wire.h"

enum {
	NOTE_FD = SANDBOX_ELF_FD, /* the child's end of a SOCK_SEQPACKET socket */
	NOTE_FD_COUNT = NOTE_FD + 2, /* and one file at a time */
	NOTE_MAGIC = 0x46734e31,
	/* argv: program, command, parent's pid, memory, CPU seconds. */
	NOTE_ARGUMENTS = 5,
};

static const char NOTE_COMMAND[] = "read-notes";

/* The file is attached by SCM_RIGHTS. */
struct note_question {
	uint32_t magic;
	uint32_t number; /* from 1 */
};

struct note_answer {
	uint32_t magic;
	uint32_t number; /* of the question; 0 = the child is closed in and ready */
	int32_t error; /* 0, or one of note_reader_read() */
	struct build_id id; /* all 0 unless the error is 0 */
};
