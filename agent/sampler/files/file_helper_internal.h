/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The file helper's own: its questions (file_calls.c) and who asks them (file_helper.c). */
#include "agent/sampler/files/file_helper.h"
#include "agent/sampler/files/file_wire.h"

/* What a question is about. */
struct subject {
	uint64_t file_keys[FOREIGN_SEND_FILES]; /* what may hang, in the order of the files */
	unsigned int key_count;
	uint64_t memory_key; /* the memory of a process, which may, too; 0 = not involved */
	int fds[FILE_WIRE_FDS];
	unsigned int fd_count;
};

/*
 * Asks the question that was prepared in H->question. Returns the answer's result, *RET_FD with
 * what was opened (-1 = nothing), and *RET_BYTES, the number of bytes in the answer.
 */
int64_t file_helper_ask(
	struct file_helper *h, const struct subject *s, size_t *ret_bytes, int *ret_fd);
struct foreign file_calls_of(struct file_helper *h);
