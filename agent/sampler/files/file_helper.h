/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes the calls of base/foreign.h in a child process, so that this thread never waits for other
 * people's files: after a fifth of a second (hangs.h) it goes on with -EAGAIN. The child is left
 * behind with its question, and another one answers the next. If the answer still arrives within
 * ten seconds, what hung is trusted again; if not, the child is killed. At most
 * FILE_HELPER_LEFT children are left behind, and the oldest is killed to make room. A child that
 * waits for a CPU, because the machine is busy, is waited for longer, but with what all waits
 * together may take, and the log does not blame its file.
 *
 * A child that cannot be killed, because the kernel itself waits for a disk, is left alone; after
 * FILE_HELPER_DYING of them nothing more is read until one is gone. A child that is slow to start,
 * because the machine is busy, is waited for as briefly; later questions find it ready.
 *
 * The child has our rights and parses nothing (file_child.h). One question costs about 20 µs.
 */
#include <stdint.h>
#include <sys/types.h>

#include "agent/sampler/files/file_keys.h"
#include "agent/sampler/files/file_process.h"
#include "agent/sampler/files/hangs.h"
#include "base/foreign.h"
#include "base/log.h"
#include "base/metrics.h"

enum { FILE_HELPER_LEFT = 8, FILE_HELPER_DYING = 32, FILE_HELPER_WHAT_BYTES = 240 };

/* A child that did not answer in time. */
struct file_helper_left {
	struct file_process child;
	uint64_t key; /* what did not answer */
	uint64_t since_ns;
	bool said;
	char what[FILE_HELPER_WHAT_BYTES];
};

struct file_helper {
	struct foreign foreign;
	struct metrics *metrics; /* borrowed */
	struct file_process child, starting; /* the latter has not said yet that it is ready */
	uint64_t starting_since_ns;
	struct file_helper_left left[FILE_HELPER_LEFT]; /* oldest first */
	size_t left_count;
	pid_t dying[FILE_HELPER_DYING]; /* killed, but not gone yet */
	size_t dying_count;
	uint64_t ended_cpu_ns; /* of children that are gone */
	struct hangs hangs;
	struct log_rate said;
	uint32_t number; /* of the last question */
	int opened_fd; /* what the last question opened, with its state in `answer`; -1 = nothing */
	struct file_keys keys;
	struct file_wire_question *question; /* room for one */
	struct file_wire_answer *answer;
};

/*
 * From now on all calls of base/foreign.h go to children, which start with the first call and die
 * with the thread that makes it. Does nothing while the host is recorded or replayed. The last one
 * that was started is the one in use; METRICS is borrowed. HELPER must not move.
 */
int file_helper_start(struct file_helper *helper, struct metrics *metrics);
/* Kills the children. Fine after a failed start, and on a zeroed struct. */
void file_helper_stop(struct file_helper *helper);
/* CPU time of the children, and of those of theirs that have ended. */
uint64_t file_helper_cpu_ns(const struct file_helper *helper);
/* Call about once a second: ends what hangs for too long, and logs it. */
void file_helper_tend(struct file_helper *helper);
