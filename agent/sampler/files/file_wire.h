/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Protocol between the two sides of the file helper, file_helper.c and file_child.c: one question,
 * then its answer, over a SOCK_SEQPACKET socket. Both sides are this program, and neither parses a
 * byte of the files.
 */
#include <stdint.h>
#include <sys/stat.h>

#include "base/foreign.h"
#include "symbolizer/sandbox/sandbox_wire.h"

enum {
	FILE_WIRE_FD = SANDBOX_ELF_FD, /* the child's end of the socket */
	FILE_WIRE_STAGE_FD, /* a memfd with a struct file_wire_stage */
	FILE_WIRE_MAGIC = 0x46664831,
	FILE_WIRE_BYTES = 64 * 1024, /* of a file, in one answer */
	/* NAME and PATH with their NULs, and the message to be sent on. */
	FILE_WIRE_TEXT_BYTES = 2 * FOREIGN_PATH_BYTES + FOREIGN_SEND_BYTES,
	FILE_WIRE_FDS = 1 + FOREIGN_SEND_FILES,
	/* argv: program, command, parent's pid. */
	FILE_WIRE_ARGUMENTS = 3,
	/* Build ID readers that failed, in the order of base/metrics.def: NOTE_READER_… */
	FILE_WIRE_FAILURES = 4,
};

static const char FILE_WIRE_COMMAND[] = "read-files";

enum file_wire_call {
	FILE_WIRE_READY, /* never asked: what the child says first */
	FILE_WIRE_OPEN,
	FILE_WIRE_STAT_AT,
	FILE_WIRE_STAT,
	FILE_WIRE_READ,
	FILE_WIRE_READ_TEXT, /* of a file of /proc, by name */
	FILE_WIRE_READ_LINK, /* likewise */
	FILE_WIRE_STATE,
	FILE_WIRE_IDENTITY,
	FILE_WIRE_SEND,
};

/*
 * Where the child is, in memory that both sides share: it tells what does not answer, if the child
 * does not.
 */
enum file_wire_at {
	FILE_WIRE_AT_FILE,
	FILE_WIRE_AT_MEMORY, /* of the process: the kernel looks at its mappings */
};

struct file_wire_stage {
	_Atomic uint32_t at;
	_Atomic uint32_t file; /* which of the attached files */
};

/*
 * Descriptors are attached by SCM_RIGHTS: of a directory, or of the socket to send to (if
 * `has_directory`), then of `file_count` files, which are mere paths (file_open.h), or memory
 * files.
 */
struct file_wire_question {
	uint32_t magic;
	uint32_t number; /* from 1 */
	uint32_t call; /* enum file_wire_call */
	uint32_t place; /* enum foreign_place */
	uint32_t has_directory, file_count;
	uint64_t off, size; /* to read */
	uint64_t start, end; /* the mapping that a file was opened by */
	uint32_t name_bytes, path_bytes; /* in `text`, with their NULs; 0 = NULL */
	uint32_t message_bytes; /* in `text`, after these */
	uint32_t reserved;
	char text[FILE_WIRE_TEXT_BYTES]; /* sent as far as it is used */
};

/* A descriptor is attached if a file was opened: a mere path, or a copy of text. */
struct file_wire_answer {
	uint32_t magic;
	uint32_t number; /* of the question */
	int64_t result; /* 0 or a length, or a negative errno */
	struct stat stat;
	struct module_id id; /* of a mapped file that was opened, its state */
	uint64_t failures[FILE_WIRE_FAILURES]; /* of this child so far */
	uint8_t bytes[FILE_WIRE_BYTES]; /* sent as far as they are used */
};
