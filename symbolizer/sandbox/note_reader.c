/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandbox/note_reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failure.h"
#include "symbolizer/sandbox/child.h"
#include "symbolizer/sandbox/note_wire.h"

enum {
	ARGUMENT_BYTES = 24,
	FAREWELL_MS = 200, /* a killed child gets to be gone */
};

static const uint64_t NS_IN_MS = 1000000;
/* From the question to the answer, including the child's start. */
static const uint64_t DEADLINE_NS = UINT64_C(1000000000);
/* As much longer if the child only waits for a CPU; so may who waits here (file_helper.h). */
static const uint64_t STARVED_NS = UINT64_C(9000000000);
static const uint64_t STARVED_LOOK_NS = UINT64_C(100000000);
/* Before a suspect is read again, and before another child after too many have failed. */
static const uint64_t FIRST_PAUSE_NS = UINT64_C(10000000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(3600000000000);
/* Failures that are older than this count no longer. */
static const uint64_t FAILURES_PASS_NS = UINT64_C(60000000000);

/* Of address space; this program and its libraries take 14 MB. */
static const unsigned long MEMORY_BYTES = 64UL << 20;
static const unsigned int CPU_SECONDS = 10;

/* Not the host's clock (base/clock.h), which stands still while the sampler works. */
static uint64_t note_reader_now_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void note_reader_init(struct note_reader *r, struct metrics *metrics)
{
	*r = (struct note_reader){ .metrics = metrics, .pid = -1, .fd = -1 };
}

/* ---- the child's end ------------------------------------------------------------------------ */

static void note_reader_reap(struct note_reader *r)
{
	size_t left = 0;

	for (size_t i = 0; i < r->dying_count; i++)
		if (waitpid(r->dying[i], NULL, WNOHANG) == 0)
			r->dying[left++] = r->dying[i];
	r->dying_count = left;
}

static void note_reader_wait(pid_t pid)
{
	autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd waited = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		(void)poll(&waited, 1, FAREWELL_MS);
}

static void note_reader_end(struct note_reader *r)
{
	if (r->fd >= 0)
		close(take_fd(&r->fd));
	if (r->pid < 0)
		return;
	kill(r->pid, SIGKILL);
	note_reader_wait(r->pid);
	r->dying[r->dying_count++] = r->pid;
	r->pid = -1;
	note_reader_reap(r);
}

void note_reader_deinit(struct note_reader *r)
{
	note_reader_end(r);
	note_reader_reap(r);
}

/* Ends the child, which did WHAT. Returns -EAGAIN. */
static int note_reader_fail(struct note_reader *r, enum metric what)
{
	uint64_t now_ns = note_reader_now_ns();

	note_reader_end(r);
	metrics_add(r->metrics, what, 1);
	if (now_ns - r->failed_ns > FAILURES_PASS_NS)
		r->failures = 0;
	r->failures++;
	r->failed_ns = now_ns;
	return -EAGAIN;
}

/* ---- answers -------------------------------------------------------------------------------- */

static int note_reader_await_until(const struct note_reader *r, uint64_t deadline_ns)
{
	struct pollfd waited = { .fd = r->fd, .events = POLLIN };
	uint64_t now_ns;

	while ((now_ns = note_reader_now_ns()) < deadline_ns) {
		int ready = poll(&waited, 1, (int)((deadline_ns - now_ns) / NS_IN_MS) + 1);

		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

/* Returns 0 if there is something to receive, -ETIMEDOUT after DEADLINE_NS, or poll()'s error. */
static int note_reader_await(const struct note_reader *r, uint64_t deadline_ns)
{
	uint64_t last_ns = deadline_ns + STARVED_NS;
	int err = note_reader_await_until(r, deadline_ns);

	while (err == -ETIMEDOUT && deadline_ns < last_ns && child_state(r->pid) == 'R') {
		deadline_ns += STARVED_LOOK_NS;
		err = note_reader_await_until(r, deadline_ns);
	}
	return err;
}

static bool note_answer_is_valid(const struct note_answer *answer, uint32_t number)
{
	if (answer->magic != NOTE_MAGIC || answer->number != number)
		return false;
	switch (answer->error) {
	case 0:
		return !number || (answer->id.size && answer->id.size <= BUILD_ID_MAX_BYTES);
	case -ENOENT:
	case -EBADMSG:
	case -E2BIG:
	case -EOPNOTSUPP:
	case -EIO:
	case -EAGAIN:
		return true;
	default:
		return false;
	}
}

/*
 * Receives the answer to question NUMBER. If there is none, ends the child and returns why: a
 * failure of the child (-EAGAIN, *RET_AT_FAULT is set) or of ours.
 */
static int note_reader_receive(struct note_reader *r, uint32_t number, uint64_t deadline_ns,
	struct note_answer *ret_answer, bool *ret_at_fault)
{
	union {
		struct note_answer answer;
		uint8_t bytes[sizeof(struct note_answer) + 1]; /* one more shows what is too long */
	} message;
	int err = note_reader_await(r, deadline_ns);
	ssize_t got;

	*ret_at_fault = true;
	if (err == -ETIMEDOUT)
		return note_reader_fail(r, METRIC_NOTE_READER_HUNG);
	if (err) {
		*ret_at_fault = false;
		note_reader_end(r);
		return err;
	}
	got = recv(r->fd, message.bytes, sizeof(message.bytes), MSG_DONTWAIT);
	if (got <= 0)
		return note_reader_fail(r, METRIC_NOTE_READER_DIED);
	if (got != sizeof(message.answer) || !note_answer_is_valid(&message.answer, number))
		return note_reader_fail(r, METRIC_NOTE_READER_NONSENSE);
	*ret_answer = message.answer;
	*ret_at_fault = false;
	return 0;
}

/* ---- the child's start ---------------------------------------------------------------------- */

static int note_reader_spawn(struct note_reader *r)
{
	static char *const no_environment[] = { NULL };
	autocall(child_fds_close) struct child_fds fds = { .expected = 1 };
	char program[] = "fathom", command[sizeof(NOTE_COMMAND)];
	char parent[ARGUMENT_BYTES], memory[ARGUMENT_BYTES], cpu[ARGUMENT_BYTES];
	char *argv[] = { program, command, parent, memory, cpu, NULL };
	int ends[2], err;
	pid_t pid;

	memcpy(command, NOTE_COMMAND, sizeof(command));
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	snprintf(memory, sizeof(memory), "%lu", MEMORY_BYTES);
	snprintf(cpu, sizeof(cpu), "%u", CPU_SECONDS);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	err = child_fds_add(&fds, ends[1]);
	if (!err)
		err = child_spawn(argv, no_environment, &fds, &pid);
	close(ends[1]);
	if (err) {
		close(ends[0]);
		return err;
	}
	r->fd = ends[0];
	r->pid = pid;
	r->files = 0;
	return 0;
}

/* Whether too many children have failed to start another one now. */
static bool note_reader_is_paused(struct note_reader *r)
{
	note_reader_reap(r);
	if (r->dying_count == NOTE_READER_DYING)
		return true;
	return r->failures >= NOTE_READER_FAILURES &&
	       note_reader_now_ns() - r->failed_ns < FIRST_PAUSE_NS;
}

/* Starts a child unless there is one, and waits until it is closed in. */
static int note_reader_start(struct note_reader *r, uint64_t deadline_ns)
{
	struct note_answer ready;
	bool at_fault;
	int err;

	if (r->pid >= 0 && r->files == NOTE_READER_FILES)
		note_reader_end(r);
	if (r->pid >= 0)
		return 0;
	if (note_reader_is_paused(r))
		return -EAGAIN;
	err = note_reader_spawn(r);
	if (!err)
		return note_reader_receive(r, 0, deadline_ns, &ready, &at_fault);
	/* A lasting failure says nothing about the file. */
	return failure_is_transient(err) ? err
					 : note_reader_fail(r, METRIC_NOTE_READER_NOT_STARTED);
}

/* ---- suspects ------------------------------------------------------------------------------- */

/* Where FD's file is among the suspects, or NULL. *RET_ST: the file's. */
static struct note_suspect *note_reader_suspect(struct note_reader *r, const struct stat *st)
{
	for (size_t i = 0; i < NOTE_READER_SUSPECTS; i++) {
		struct note_suspect *s = &r->suspects[i];

		if (s->until_ns && s->device == st->st_dev && s->inode == st->st_ino)
			return s;
	}
	return NULL;
}

static void note_reader_remember_suspect(struct note_reader *r, const struct stat *st)
{
	struct note_suspect *s = note_reader_suspect(r, st);

	if (!s) {
		s = &r->suspects[r->next_suspect++ % NOTE_READER_SUSPECTS];
		*s = (struct note_suspect){ .device = st->st_dev, .inode = st->st_ino };
	}
	s->failures++;
	s->until_ns = note_reader_now_ns() +
		      failure_pause_ns(s->failures, FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
}

/* ---- questions ------------------------------------------------------------------------------ */

static int note_reader_send(struct note_reader *r, int fd)
{
	struct note_question question = { .magic = NOTE_MAGIC, .number = r->number };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { { 0 } };
	struct iovec bytes = { .iov_base = &question, .iov_len = sizeof(question) };
	struct msghdr message = { .msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };

	control.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
	};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(r->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Gives FD to a child. One that died since the last question is replaced: this file is not why. */
static int note_reader_hand_over(struct note_reader *r, int fd, uint64_t deadline_ns)
{
	int err;

	for (int i = 0; i < 2; i++) {
		err = note_reader_start(r, deadline_ns);
		if (err)
			return err;
		r->number = r->number == UINT32_MAX ? 1 : r->number + 1;
		err = note_reader_send(r, fd);
		if (!err) {
			r->files++;
			return 0;
		}
		if (failure_is_transient(err))
			return err;
		err = note_reader_fail(r, METRIC_NOTE_READER_DIED);
	}
	return err;
}

int note_reader_read(struct note_reader *r, int fd, struct build_id *ret_id)
{
	uint64_t deadline_ns = note_reader_now_ns() + DEADLINE_NS;
	struct note_suspect *suspect;
	struct note_answer answer;
	bool at_fault;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	suspect = note_reader_suspect(r, &st);
	if (suspect && note_reader_now_ns() < suspect->until_ns)
		return -EAGAIN;
	err = note_reader_hand_over(r, fd, deadline_ns);
	if (err)
		return err;
	err = note_reader_receive(r, r->number, deadline_ns, &answer, &at_fault);
	if (err && at_fault)
		note_reader_remember_suspect(r, &st);
	if (err)
		return err;
	if (suspect)
		suspect->until_ns = 0;
	if (!answer.error)
		*ret_id = answer.id;
	return answer.error;
}
