/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the build IDs of foreign files without parsing a byte of them: a sandboxed child does,
 * `fathom` itself with the hidden command `read-notes`. It has no capabilities, the system calls of
 * an index build and no more, and one foreign file at a time; the files come over a socket, and
 * the build IDs go back. It starts with the first question and lives on, but is replaced after
 * NOTE_READER_FILES files.
 *
 * A child that does not answer in time, dies, or sends anything but an answer is killed, counted
 * and replaced. The file that it had is not asked after again for a while (with growing pauses), so
 * that it cannot kill one child after the other; and after NOTE_READER_FAILURES such files in a row
 * there are pauses between children for all files.
 *
 * What a file that takes over the child can do: read the files that follow, and answer for them,
 * until the child is replaced. It can write no file, open none, and reach nobody but us. A false
 * build ID makes no file another one: a module is also identified by a hash of its content, which
 * is computed outside of the child (base/module_id.h). So the lie is what any file can write into
 * its own note, but it may be told of other files: their frames keep the names that their own
 * indexes have, and a profile shows a wrong build ID beside them; or, where the kernel reported the
 * build ID as well, the contradiction leaves them without names.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/metrics.h"
#include "base/module_id.h"

enum {
	NOTE_READER_FILES = 256, /* one child is given; starting another costs 4 ms of CPU time */
	NOTE_READER_FAILURES = 8,
	NOTE_READER_SUSPECTS = 64,
	NOTE_READER_DYING = 4,
};

/* A file whose reader failed. */
struct note_suspect {
	uint64_t device, inode;
	uint64_t until_ns; /* not read again before; 0 = free */
	unsigned int failures;
};

struct note_reader {
	struct metrics *metrics; /* borrowed */
	pid_t pid; /* of the child; -1 = none */
	int fd; /* our end of the socket; -1 = none */
	uint32_t number; /* of the last question */
	unsigned int files; /* that this child was given */
	unsigned int failures; /* of children, lately */
	uint64_t failed_ns; /* when the last one failed, CLOCK_MONOTONIC */
	struct note_suspect suspects[NOTE_READER_SUSPECTS];
	size_t next_suspect; /* the oldest */
	pid_t dying[NOTE_READER_DYING]; /* killed, but not gone yet: a read may hold them up */
	size_t dying_count;
};

/* Starts nothing yet. The child dies with the thread that asks first, which must ask on. */
void note_reader_init(struct note_reader *r, struct metrics *metrics);
void note_reader_deinit(struct note_reader *r);
/*
 * Reads the build ID of the open ELF file FD, within a second, or ten if the child does not get the
 * CPU time for it. Returns -ENOENT if it has none, -EBADMSG if it is no ELF file, -E2BIG if it has
 * too many headers, -EOPNOTSUPP if it is big-endian or the ID is longer than ours, -EIO if it
 * cannot be read; or -EAGAIN or a shortage of ours (failure_is_transient()) if nothing was learnt
 * about the file.
 */
int note_reader_read(struct note_reader *r, int fd, struct build_id *ret_id);
