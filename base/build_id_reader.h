/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the build IDs of foreign files for rooms that must not parse them. The owner of such a room
 * gives it a reader; the room asks through host_build_id() (base/host.h), so that recordings have
 * the answers.
 */
#include <stdint.h>

#include "base/module_id.h"

/* A question is plain data: it may be answered elsewhere, and later. */
struct build_id_question {
	int fd; /* the file, open for reading; borrowed */
	/* The mapping that FD was opened by: the kernel may have read the build ID there. */
	int task_fd; /* an open /proc/PID or /proc/PID/task/TID, borrowed; -1 = none */
	uint64_t start, end; /* pc */
};

struct build_id_reader {
	/*
	 * Returns -ENOENT if the file has no build ID, -EBADMSG if it is no ELF file, -E2BIG or
	 * -EOPNOTSUPP if it has what is not read, or a transient failure (failure_is_transient()),
	 * after which nothing is known of the file.
	 */
	int (*read)(
		void *context, const struct build_id_question *question, struct build_id *ret_id);
	void *context;
};
