/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/files/file_helper_internal.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/host.h"

/* For a child to start: nothing foreign is involved yet, so only the machine may be busy. */
static const uint64_t START_NS = UINT64_C(5000000000);
/* How long a question waits for that, but for the first of all, before which nobody samples. */
static const uint64_t START_WAIT_NS = UINT64_C(200000000);
static const uint64_t SAY_NS = UINT64_C(1000000000);
static const uint64_t SAY_EVERY_NS = UINT64_C(60000000000);
static const uint64_t KILL_NS = UINT64_C(10000000000);

/* ---- children ------------------------------------------------------------------------------- */

static uint64_t time_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * UINT64_C(1000000000) + (uint64_t)t->tv_usec * 1000;
}

static void file_helper_reap(struct file_helper *h)
{
	size_t left = 0;

	for (size_t i = 0; i < h->dying_count; i++) {
		struct rusage used = { 0 };

		if (wait4(h->dying[i], NULL, WNOHANG, &used) == 0)
			h->dying[left++] = h->dying[i];
		h->ended_cpu_ns += time_ns(&used.ru_utime) + time_ns(&used.ru_stime);
	}
	h->dying_count = left;
}

uint64_t file_helper_cpu_ns(const struct file_helper *h)
{
	uint64_t ns = h->ended_cpu_ns + file_process_cpu_ns(&h->child) +
		      file_process_cpu_ns(&h->starting);

	for (size_t i = 0; i < h->left_count; i++)
		ns += file_process_cpu_ns(&h->left[i].child);
	return ns;
}

static void file_helper_end(struct file_helper *h, struct file_process *child)
{
	if (child->pid < 0)
		return;
	close(child->fd);
	munmap(child->stage, sizeof(*child->stage));
	kill(child->pid, SIGKILL);
	h->dying[h->dying_count++] = child->pid;
	child->pid = -1;
	file_helper_reap(h);
}

/* A child that nobody needs any more exits by itself, so that its CPU time counts as ours. */
static void file_helper_dismiss(struct file_helper *h)
{
	if (h->child.pid < 0)
		return;
	shutdown(h->child.fd, SHUT_RDWR);
	file_process_wait(h->child.pid);
	file_helper_end(h, &h->child);
}

/* Counts the build ID readers of CHILD that have failed since its last answer. */
static void count_reader_failures(
	struct file_helper *h, struct file_process *child, const struct file_wire_answer *a)
{
	for (int i = 0; i < FILE_WIRE_FAILURES; i++) {
		metrics_add(h->metrics, (enum metric)(METRIC_NOTE_READER_DIED + i),
			a->failures[i] - child->failures[i]);
		child->failures[i] = a->failures[i];
	}
}

static int file_helper_begin_child(struct file_helper *h)
{
	int err = file_process_start(&h->starting);

	if (err) {
		h->starting.pid = -1;
		return err;
	}
	h->starting_since_ns = file_process_now_ns();
	return file_process_await(
		h->starting.fd, h->starting_since_ns + (h->number ? START_WAIT_NS : START_NS));
}

/* Returns -EAGAIN if there is no child for now. */
static int file_helper_have_child(struct file_helper *h)
{
	size_t bytes;
	int fd, err;

	if (h->child.pid >= 0)
		return 0;
	file_helper_reap(h);
	if (h->starting.pid < 0 && h->dying_count + h->left_count >= FILE_HELPER_DYING) {
		metrics_add(h->metrics, METRIC_FILE_HELPER_STUCK, 1);
		return -EAGAIN;
	}
	err = h->starting.pid < 0 ? file_helper_begin_child(h)
				  : file_process_await(h->starting.fd, 0);
	if (err == -ETIMEDOUT && file_process_now_ns() - h->starting_since_ns < START_NS) {
		metrics_add(h->metrics, METRIC_FILE_READS_POSTPONED, 1);
		return -EAGAIN;
	}
	if (!err)
		err = file_process_receive(h->starting.fd, h->answer, &bytes, &fd);
	if (!err) {
		h->child = h->starting;
		h->starting.pid = -1;
		return 0;
	}
	file_helper_end(h, &h->starting);
	metrics_add(h->metrics, METRIC_FILE_HELPER_NOT_STARTED, 1);
	return failure_is_shortage(err) ? err : -EAGAIN;
}

/* ---- children that are left behind ---------------------------------------------------------- */

static void remove_left(struct file_helper *h, size_t i)
{
	h->left_count--;
	memmove(h->left + i, h->left + i + 1, (h->left_count - i) * sizeof(*h->left));
}

/* The answer came after all: the child is as good as before. */
static void welcome_back(struct file_helper *h, size_t i)
{
	struct file_helper_left left = h->left[i];

	hangs_answered(&h->hangs, left.key, 0);
	if (left.said)
		log_info("a file answers again", "path=\"%s\"", left.what);
	remove_left(h, i);
	if (h->child.pid < 0)
		h->child = left.child;
	else
		file_helper_end(h, &left.child);
}

/* A child that waits for a CPU is not kept waiting by the file. */
static void say_that_it_hangs(struct file_helper *h, struct file_helper_left *left)
{
	if (file_process_is_starved(&left->child) || !hangs_say(&h->hangs, left->key) ||
		!log_rate_allows_every(&h->said, SAY_EVERY_NS))
		return;
	log_warn("a file does not answer; names that depend on it are missing until it does",
		"path=\"%s\" timeouts=%" PRIu64, left->what,
		metrics_get(h->metrics, METRIC_FOREIGN_FILE_TIMEOUTS));
	left->said = true;
}

/* Looks whether the child has answered. Returns true if it is no longer left behind. */
static bool file_helper_look_after(struct file_helper *h, size_t i, uint64_t now_ns)
{
	struct file_helper_left *left = &h->left[i];
	size_t bytes;
	int fd, err = file_process_receive(left->child.fd, h->answer, &bytes, &fd);

	if (fd >= 0)
		close(fd);
	if (!err) {
		count_reader_failures(h, &left->child, h->answer);
		welcome_back(h, i);
		return true;
	}
	if (!left->said && now_ns - left->since_ns >= SAY_NS)
		say_that_it_hangs(h, left);
	if (err == -EAGAIN && now_ns - left->since_ns < KILL_NS)
		return false;
	file_helper_end(h, &left->child);
	remove_left(h, i);
	return true;
}

void file_helper_tend(struct file_helper *h)
{
	uint64_t now_ns = file_process_now_ns();

	h->opened_fd = -1; /* the room for its answer is used here */
	for (size_t i = 0; i < h->left_count;)
		i += !file_helper_look_after(h, i, now_ns);
	file_helper_reap(h);
}

/* The path of an open file or directory. The kernel knows it without asking the file system. */
static void path_of_fd(int fd, char *text, size_t size)
{
	char name[40];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, text, size - 1);
	text[MAX(length, 0)] = 0;
}

/* The file that the child is at. */
static unsigned int stage_file(const struct file_helper *h, const struct subject *s)
{
	return MIN(h->child.stage->file, s->key_count - 1);
}

/* Says what the question was about. */
static void describe(const struct file_helper *h, const struct subject *s, char *what, size_t size)
{
	const struct file_wire_question *q = h->question;
	const char *name = q->name_bytes ? q->text : "";
	const char *path = q->path_bytes ? q->text + q->name_bytes : "";
	char place[FILE_HELPER_WHAT_BYTES / 2] = "";

	if (q->file_count)
		path_of_fd(s->fds[s->fd_count - q->file_count + stage_file(h, s)], place,
			sizeof(place));
	else if (q->has_directory)
		path_of_fd(s->fds[0], place, sizeof(place));
	snprintf(what, size, "%s%s%.40s%s%.40s", place, *place && *name ? "/" : "", name,
		*path && *path != '/' ? "/" : "", path);
}

static void leave_behind(
	struct file_helper *h, uint64_t key, const struct subject *s, uint64_t since_ns)
{
	struct file_helper_left *left;

	if (h->left_count == FILE_HELPER_LEFT) {
		file_helper_end(h, &h->left[0].child);
		remove_left(h, 0);
	}
	left = &h->left[h->left_count++];
	*left = (struct file_helper_left){ .child = h->child, .key = key, .since_ns = since_ns };
	describe(h, s, left->what, sizeof(left->what));
	h->child.pid = -1;
}

/* ---- one question --------------------------------------------------------------------------- */

/* How long to wait; 0 = S is not to be asked now. */
static uint64_t patience_ns(struct file_helper *h, const struct subject *s, uint64_t now_ns)
{
	uint64_t least_ns = UINT64_MAX;

	for (unsigned int i = 0; i < s->key_count; i++)
		least_ns = MIN(least_ns, hangs_patience_ns(&h->hangs, s->file_keys[i], now_ns));
	return s->memory_key ? MIN(least_ns, hangs_patience_ns(&h->hangs, s->memory_key, now_ns))
			     : least_ns;
}

/* A child that only waits for a CPU gets more time, but no more than all waits together may take.
 */
static int file_helper_await(const struct file_helper *h, uint64_t begun_ns, uint64_t wait_ns)
{
	uint64_t deadline_ns = begun_ns, room_ns = hangs_room_ns(&h->hangs);
	int err;

	do {
		deadline_ns += wait_ns;
		err = file_process_await(h->child.fd, deadline_ns);
	} while (err == -ETIMEDOUT && deadline_ns + wait_ns <= begun_ns + room_ns &&
		 file_process_is_starved(&h->child));
	return err;
}

static int give_up(struct file_helper *h, const struct subject *s, uint64_t begun_ns)
{
	bool memory = s->memory_key && h->child.stage->at == FILE_WIRE_AT_MEMORY;
	uint64_t now_ns = file_process_now_ns();
	uint64_t key = memory ? s->memory_key : s->file_keys[stage_file(h, s)];

	metrics_add(h->metrics, METRIC_FOREIGN_FILE_TIMEOUTS, 1);
	(void)hangs_timed_out(&h->hangs, key, now_ns - begun_ns, now_ns);
	leave_behind(h, key, s, begun_ns);
	return -EAGAIN;
}

static int lose_child(struct file_helper *h)
{
	metrics_add(h->metrics, METRIC_FILE_HELPER_DIED, 1);
	file_helper_end(h, &h->child);
	return -EAGAIN;
}

/* Sends the question to a child; one that died since the last question is replaced. */
static int file_helper_hand_over(struct file_helper *h, const struct subject *s)
{
	int err = 0;

	for (int i = 0; i < 2; i++) {
		err = file_helper_have_child(h);
		if (err)
			return err;
		h->question->magic = FILE_WIRE_MAGIC;
		h->question->number = ++h->number;
		h->child.stage->at = FILE_WIRE_AT_FILE;
		h->child.stage->file = 0;
		err = file_process_send(&h->child, h->question, s->fds, s->fd_count);
		if (!err)
			return 0;
		err = lose_child(h);
	}
	return err;
}

int64_t file_helper_ask(
	struct file_helper *h, const struct subject *s, size_t *ret_bytes, int *ret_fd)
{
	uint64_t begun_ns = file_process_now_ns(), wait_ns;
	int err;

	*ret_fd = -1;
	h->opened_fd = -1;
	if (h->left_count)
		file_helper_tend(h);
	wait_ns = patience_ns(h, s, begun_ns);
	if (!wait_ns) {
		metrics_add(h->metrics, METRIC_FILE_READS_POSTPONED, 1);
		return -EAGAIN;
	}
	err = file_helper_hand_over(h, s);
	if (err)
		return err;
	begun_ns = file_process_now_ns();
	err = file_helper_await(h, begun_ns, wait_ns);
	if (err == -ETIMEDOUT)
		return give_up(h, s, begun_ns);
	if (!err)
		err = file_process_receive(h->child.fd, h->answer, ret_bytes, ret_fd);
	if (err || h->answer->number != h->number) {
		if (*ret_fd >= 0)
			close(take_fd(ret_fd));
		return lose_child(h);
	}
	count_reader_failures(h, &h->child, h->answer);
	for (unsigned int i = 0; i < s->key_count; i++)
		hangs_answered(
			&h->hangs, s->file_keys[i], i ? 0 : file_process_now_ns() - begun_ns);
	if (s->memory_key)
		hangs_answered(&h->hangs, s->memory_key, 0);
	return h->answer->result;
}

/* ---- the helper's life ---------------------------------------------------------------------- */

int file_helper_start(struct file_helper *h, struct metrics *metrics)
{
	*h = (struct file_helper){ .metrics = metrics,
		.child = { .pid = -1, .fd = -1 },
		.starting = { .pid = -1, .fd = -1 },
		.opened_fd = -1 };
	if (host_current)
		return 0;
	h->question = calloc(1, sizeof(*h->question));
	h->answer = calloc(1, sizeof(*h->answer));
	if (!h->question || !h->answer) {
		file_helper_stop(h);
		return -ENOMEM;
	}
	hangs_init(&h->hangs, file_process_now_ns());
	h->foreign = file_calls_of(h);
	foreign_current = &h->foreign;
	return 0;
}

void file_helper_stop(struct file_helper *h)
{
	if (foreign_current == &h->foreign)
		foreign_current = NULL;
	if (h->metrics) {
		file_helper_dismiss(h);
		file_helper_end(h, &h->starting);
	}
	while (h->left_count) {
		file_helper_end(h, &h->left[0].child);
		remove_left(h, 0);
	}
	if (h->dying_count)
		file_process_wait(h->dying[h->dying_count - 1]);
	file_helper_reap(h);
	free(take(h->question));
	free(take(h->answer));
	free(take(h->keys.items));
}
