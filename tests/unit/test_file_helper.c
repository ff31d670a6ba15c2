/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file helper with real children. A FIFO stands for what does not answer: opening it waits for
 * somebody to write.
 */
#include "agent/sampler/files/file_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/files/file_child.h"
#include "agent/sampler/files/file_identity.h"
#include "agent/sampler/process/open_file.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/file_state.h"
#include "base/host.h"
#include "symbolizer/indexer/elf/build_id.h"
#include "symbolizer/sandboxed/main.h"

struct fixture {
	struct file_helper helper;
	struct metrics metrics;
	char path[64];
	int dir_fd;
};

static uint64_t starts_awaited; /* questions of read_proc() that were put off by a start */

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	starts_awaited = 0;
	snprintf(f->path, sizeof(f->path), "/tmp/fathom-test-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	f->dir_fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return file_helper_start(&f->helper, &f->metrics);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[96];

	file_helper_stop(&f->helper);
	close(f->dir_fd);
	snprintf(command, sizeof(command), "rm -rf %s", f->path);
	free(f);
	/* All children were killed: nobody is left, or about to be gone. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	return errno != ECHILD || system(command);
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	autoclose int fd = openat(f->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void make_hanging(const struct fixture *f, const char *name)
{
	assert_int_equal(mkfifoat(f->dir_fd, name, 0600), 0);
}

static int open_text(const struct fixture *f, const char *name, int *ret_fd)
{
	/* Text below a directory is a process's; each directory is a process of its own. */
	return foreign_open(
		&(struct foreign_path){
			.place = FOREIGN_ROOT, .dir_fd = f->dir_fd, .name = ".", .path = name },
		ret_fd);
}

static int read_proc_once(int dir_fd, const char *name, char *text, size_t size)
{
	autoclose int fd = -1;
	int err = foreign_open(
		&(struct foreign_path){ .place = FOREIGN_TEXT, .dir_fd = dir_fd, .name = name },
		&fd);
	ssize_t got = err ? 0 : read(fd, text, size - 1);

	text[MAX(got, 0)] = 0;
	return err;
}

static bool is_child_starting(void)
{
	const struct file_helper *h = foreign_current->context;

	return h->child.pid < 0 && h->starting.pid >= 0;
}

/* On a busy machine a child takes its time to start. */
static int read_proc(int dir_fd, const char *name, char *text, size_t size)
{
	int err;

	while ((err = read_proc_once(dir_fd, name, text, size)) == -EAGAIN && is_child_starting()) {
		starts_awaited++;
		usleep(1000);
	}
	return err;
}

/* Reads NAME, which hangs, as text of the "process" NUMBER: a directory of its own. */
static int read_hanging(const struct fixture *f, int number)
{
	autoclose int fd = -1;
	char name[16], text[16];

	snprintf(name, sizeof(name), "%d", number);
	(void)mkdirat(f->dir_fd, name, 0700);
	fd = openat(f->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)mkfifoat(fd, "maps", 0600);
	return read_proc(fd, "maps", text, sizeof(text));
}

/* Answers what read_hanging() asked. */
static void answer_hanging(const struct fixture *f, int number)
{
	char name[24];
	int fd;

	snprintf(name, sizeof(name), "%d/maps", number);
	fd = openat(f->dir_fd, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

static uint64_t count(const struct fixture *f, enum metric what)
{
	return metrics_get(&f->metrics, what);
}

static void text_is_read(void **state)
{
	const struct fixture *f = *state;
	char text[64], large[200000];
	autoclose int fd = -1;
	ssize_t got = 0, more;

	write_file(f, "maps", "what it says");
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	assert_string_equal(text, "what it says");
	assert_int_equal(read_proc(f->dir_fd, "nothing", text, sizeof(text)), -ENOENT);
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	write_file(f, "large", large);
	assert_int_equal(foreign_open(&(struct foreign_path){ .place = FOREIGN_TEXT,
					      .dir_fd = f->dir_fd,
					      .name = "large" },
				 &fd),
		0);
	while ((more = read(fd, large, sizeof(large))) > 0)
		got += more;
	assert_int_equal(got, sizeof(large) - 1);
	assert_int_equal(count(f, METRIC_FOREIGN_FILE_TIMEOUTS), 0);
}

static void files_and_links_of_proc_are_read(void **state)
{
	autoclose int self_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char expected[FOREIGN_PATH_BYTES], text[FOREIGN_PATH_BYTES];
	ssize_t length = readlinkat(self_fd, "exe", expected, sizeof(expected));

	(void)state;
	assert_true(length > 8);
	assert_int_equal(foreign_read_link(self_fd, "exe", text, sizeof(text)), length);
	assert_memory_equal(text, expected, (size_t)length);
	assert_int_equal(foreign_read_link(self_fd, "exe", text, 8), 8);
	assert_int_equal(foreign_read_link(self_fd, "stat", text, sizeof(text)), -EINVAL);
	length = snprintf(expected, sizeof(expected), "%d (", (int)getpid());
	assert_true(foreign_read_text(self_fd, "stat", text, sizeof(text)) > length);
	assert_memory_equal(text, expected, (size_t)length);
	assert_int_equal(foreign_read_text(self_fd, "stat", text, 3), 3);
	assert_int_equal(foreign_read_text(self_fd, "none", text, sizeof(text)), -ENOENT);
}

static void mapping_of(const void *address, uint64_t *ret_start, uint64_t *ret_end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0, end = 0;
	char line[512];

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= (uintptr_t)address &&
			(uintptr_t)address < end)
			break;
	fclose(maps);
	*ret_start = start;
	*ret_end = end;
}

/* Nobody may have to wait when it is closed. */
static bool is_mere_path(int fd)
{
	return (fcntl(fd, F_GETFL) & O_PATH) != 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

/* This program, by its mapping, against the calls that are made here and now. */
static void a_mapped_file_is_identified(void **state)
{
	autoclose int self_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	autoclose int fd = -1;
	struct build_id_question question = { .task_fd = -1 };
	struct module_id id, true_id;
	struct file_id now;
	struct stat st, true_st;
	char bytes[100], true_bytes[100];

	(void)state;
	mapping_of((const void *)(uintptr_t)setup, &question.start, &question.end);
	assert_int_equal(open_map_file(self_fd, question.start, question.end, 1, &fd), 0);
	assert_true(is_mere_path(fd));
	assert_int_equal(fstat(exe_fd, &true_st), 0);
	assert_int_equal(file_state_read(exe_fd, &true_id.file), 0);
	assert_int_equal(file_hash_read(exe_fd, &true_id.content), 0);
	assert_int_equal(build_id_read(exe_fd, &true_id.build_id), 0);
	for (int i = 0; i < 2; i++) { /* what came with opening, and a question */
		assert_int_equal(foreign_state(fd, &now), 0);
		assert_true(file_id_equal(&now, &true_id.file));
	}
	assert_int_equal(foreign_stat(fd, &st), 0);
	assert_int_equal(st.st_ino, true_st.st_ino);
	question.fd = fd;
	for (int i = 0; i < 2; i++) { /* from the note, and from the kernel */
		assert_int_equal(file_identity_read(NULL, &question, &id), 0);
		assert_true(module_id_equal(&id, &true_id));
		question.task_fd = self_fd;
	}
	assert_int_equal(foreign_read_at(fd, 1000, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(pread(exe_fd, true_bytes, sizeof(bytes), 1000), sizeof(bytes));
	assert_memory_equal(bytes, true_bytes, sizeof(bytes));
	assert_int_equal(foreign_read_at(fd, (uint64_t)st.st_size - 7, bytes, sizeof(bytes)), 7);
	assert_int_equal(foreign_stat_at(self_fd, "exe", &st), 0);
	assert_int_equal(st.st_ino, true_st.st_ino);
	assert_int_equal(open_map_file(self_fd, 4096, 8192, 1, &fd), -ENOENT);
}

static void read_one(int fd, char text[16])
{
	ssize_t got = foreign_read_at(fd, 0, text, 15);

	assert_true(is_mere_path(fd));
	assert_true(got >= 0);
	text[got] = 0;
	close(fd);
}

/* The same file from each place where a path may begin. */
static void a_file_is_opened_from_each_place(void **state)
{
	const struct fixture *f = *state;
	char path[80], text[16];
	struct stat st, true_st;
	int fd;

	write_file(f, "file", "its text");
	assert_int_equal(symlinkat("/file", f->dir_fd, "link"), 0);
	assert_int_equal(fstatat(f->dir_fd, "file", &true_st, 0), 0);
	snprintf(path, sizeof(path), "%s/file", f->path);
	assert_int_equal(open_here(path, &fd), 0);
	read_one(fd, text);
	assert_string_equal(text, "its text");
	/* The link leads to the file below the directory, as if that were the root. */
	assert_int_equal(open_text(f, "link", &fd), 0);
	read_one(fd, text);
	assert_string_equal(text, "its text");
	assert_int_equal(foreign_open_below(f->dir_fd, "/link", &st, &fd), 0);
	assert_int_equal(st.st_ino, true_st.st_ino);
	read_one(fd, text);
	assert_string_equal(text, "its text");
	assert_int_equal(foreign_open(&(struct foreign_path){ .place = FOREIGN_ROOT_ITSELF,
					      .dir_fd = f->dir_fd,
					      .name = ".",
					      .path = "link" },
				 &fd),
		-ESTALE);
	assert_int_equal(foreign_open(&(struct foreign_path){ .place = FOREIGN_DIRECTORY,
					      .dir_fd = f->dir_fd,
					      .name = "." },
				 &fd),
		0);
	assert_int_equal(foreign_look(fd, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	close(fd);
}

/* A channel like that to a sandboxed child. */
static void make_channel(int ret_ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_ends), 0);
}

static int find_here(const struct fixture *f, const char *name)
{
	char path[80];
	int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	assert_int_equal(open_here(path, &fd), 0);
	return fd;
}

/* Receives the message and FD_COUNT descriptors. Returns the length of the message, or -errno. */
static ssize_t receive(int socket_fd, char text[16], int fds[8], size_t *ret_fd_count)
{
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec part = { .iov_base = text, .iov_len = 15 };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t got = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*ret_fd_count = c ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (c)
		memcpy(fds, CMSG_DATA(c), *ret_fd_count * sizeof(int));
	text[MAX(got, 0)] = 0;
	return got < 0 ? -errno : got;
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/* The receiver gets the very file, although its name is another's by now, and may only read it. */
static void files_are_sent_open_for_reading(void **state)
{
	const struct fixture *f = *state;
	int ends[2], got_fds[8], fds[2];
	char text[16];
	size_t got;

	make_channel(ends);
	write_file(f, "file", "the first");
	fds[0] = find_here(f, "file");
	fds[1] = memfd_create("own", MFD_CLOEXEC);
	assert_int_equal(write(fds[1], "own", 3), 3);
	write_file(f, "other", "the second");
	assert_int_equal(renameat(f->dir_fd, "other", f->dir_fd, "file"), 0);
	assert_int_equal(foreign_send(ends[0], "hello", 5, fds, 2), 0);
	assert_int_equal(receive(ends[1], text, got_fds, &got), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(got, 2);
	assert_int_equal(fcntl(got_fds[0], F_GETFL) & (O_ACCMODE | O_PATH), O_RDONLY);
	assert_int_equal(pread(got_fds[0], text, 15, 0), 9);
	assert_memory_equal(text, "the first", 9);
	assert_int_equal(pread(got_fds[1], text, 15, 0), 3);
	close_all(got_fds, got);
	assert_int_equal(foreign_send(ends[0], "alone", 5, NULL, 0), 0);
	assert_int_equal(receive(ends[1], text, got_fds, &got), 5);
	assert_int_equal(got, 0);
	close_all(fds, 2);
	close_all(ends, 2);
}

/* What cannot be sent whole is not sent at all. */
static void what_cannot_be_sent_is_told(void **state)
{
	struct fixture *f = *state;
	char text[16], many[FOREIGN_SEND_BYTES + 1] = "";
	int ends[2], got_fds[8], fds[FOREIGN_SEND_FILES + 1];
	size_t got;

	make_channel(ends);
	write_file(f, "file", "text");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = find_here(f, "file");
	assert_int_equal(foreign_send(ends[0], "x", 1, fds, ARRAY_SIZE(fds)), -E2BIG);
	assert_int_equal(foreign_send(ends[0], many, sizeof(many), fds, 1), -E2BIG);
	close(fds[1]);
	fds[1] = open(f->path, O_PATH | O_CLOEXEC); /* not a regular file */
	assert_int_equal(foreign_send(ends[0], "x", 1, fds, 2), -ESTALE);
	assert_int_equal(receive(ends[1], text, got_fds, &got), -EAGAIN);
	kill(f->helper.child.pid, SIGKILL);
	(void)waitpid(f->helper.child.pid, NULL, 0);
	assert_int_equal(foreign_send(ends[0], "again", 5, fds, 1), 0);
	assert_int_equal(receive(ends[1], text, got_fds, &got), 5);
	close_all(got_fds, got);
	while (send(ends[0], many, sizeof(many), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(foreign_send(ends[0], "full", 4, fds, 1), -EAGAIN);
	close(ends[1]);
	assert_int_equal(foreign_send(ends[0], "gone", 4, fds, 1), -EPIPE);
	close(ends[0]);
	close_all(fds, ARRAY_SIZE(fds));
}

static void errors_are_those_of_the_calls(void **state)
{
	const struct fixture *f = *state;
	char longest[5000];
	struct stat st;
	int fd = -1;

	assert_int_equal(open_text(f, "nothing", &fd), -ENOENT);
	make_hanging(f, "fifo"); /* which is refused before it is opened */
	assert_int_equal(open_text(f, "fifo", &fd), -ESTALE);
	assert_int_equal(foreign_stat_at(f->dir_fd, "nothing", &st), -ENOENT);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(open_text(f, longest, &fd), -ENAMETOOLONG);
	assert_int_equal(fd, -1);
	assert_int_equal(count(f, METRIC_FILE_HELPER_DIED), 0);
}

static void what_hangs_costs_one_short_wait(void **state)
{
	struct fixture *f = *state;
	char text[16];

	write_file(f, "maps", "others");
	assert_int_equal(read_hanging(f, 1), -EAGAIN);
	assert_int_equal(count(f, METRIC_FOREIGN_FILE_TIMEOUTS), 1);
	assert_int_equal(f->helper.left_count, 1);
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	assert_string_equal(text, "others");
	assert_int_equal(read_hanging(f, 1), -EAGAIN);
	assert_int_equal(count(f, METRIC_FOREIGN_FILE_TIMEOUTS), 1);
	assert_int_equal(count(f, METRIC_FILE_READS_POSTPONED) - starts_awaited, 1);
}

static void what_answers_late_is_trusted_again(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(read_hanging(f, 1), -EAGAIN);
	answer_hanging(f, 1);
	for (int i = 0; i < 1000 && f->helper.left_count; i++) {
		usleep(10000);
		file_helper_tend(&f->helper);
	}
	assert_int_equal(f->helper.left_count, 0);
	assert_true(f->helper.child.pid > 0); /* the same child goes on */
	assert_int_equal(read_hanging(f, 1), -EAGAIN);
	assert_int_equal(count(f, METRIC_FOREIGN_FILE_TIMEOUTS), 2);
	assert_int_equal(count(f, METRIC_FILE_READS_POSTPONED) - starts_awaited, 0);
}

static void many_that_hang_are_bounded(void **state)
{
	struct fixture *f = *state;
	char text[16];

	write_file(f, "maps", "others");
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	for (int number = 1; number <= 40; number++) {
		hangs_init(&f->helper.hangs, f->helper.hangs.filled_ns); /* as if time had passed */
		assert_int_equal(read_hanging(f, number), -EAGAIN);
		assert_true(f->helper.left_count <= FILE_HELPER_LEFT);
		assert_true(f->helper.dying_count + f->helper.left_count <= FILE_HELPER_DYING);
	}
	assert_int_equal(
		count(f, METRIC_FOREIGN_FILE_TIMEOUTS) + count(f, METRIC_FILE_HELPER_STUCK), 40);
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	assert_string_equal(text, "others");
}

static void once_the_allowance_is_spent_nobody_new_is_asked(void **state)
{
	struct fixture *f = *state;
	char text[16];

	write_file(f, "maps", "others");
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	f->helper.hangs.long_ns = f->helper.hangs.short_ns = 0;
	f->helper.hangs.filled_ns = file_process_now_ns();
	assert_int_equal(read_hanging(f, 1), -EAGAIN);
	assert_int_equal(count(f, METRIC_FOREIGN_FILE_TIMEOUTS), 0);
	assert_int_equal(count(f, METRIC_FILE_READS_POSTPONED) - starts_awaited, 1);
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
}

/* Where a child finds this file, it has a child of its own that only wants CPU time. */
static void path_of_load(pid_t parent, char *path, size_t size)
{
	snprintf(path, size, "/tmp/fathom-test-load-%d", (int)parent);
}

static void start_load(void)
{
	char path[64];

	path_of_load(getppid(), path, sizeof(path));
	if (access(path, F_OK) || fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() != 1)
		;
	_exit(0);
}

/*
 * A child on a busy machine gets more time than one whose file does not answer, once: that takes
 * all that may be waited, and the log says nothing about the file.
 */
static void a_starved_child_takes_of_what_all_may_wait(void **state)
{
	struct fixture *f = *state;
	char path[64];

	path_of_load(getpid(), path, sizeof(path));
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(read_hanging(f, 1), -EAGAIN);
	unlink(path);
	assert_int_equal(count(f, METRIC_FOREIGN_FILE_TIMEOUTS), 1);
	assert_int_equal(f->helper.left_count, 1);
	assert_true(hangs_room_ns(&f->helper.hangs) < 200000000);
	f->helper.left[0].since_ns -= UINT64_C(2000000000);
	file_helper_tend(&f->helper);
	assert_int_equal(f->helper.left_count, 1);
	assert_false(f->helper.left[0].said);
}

static void a_child_that_dies_is_replaced(void **state)
{
	struct fixture *f = *state;
	char text[16];

	write_file(f, "maps", "text");
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	kill(f->helper.child.pid, SIGKILL);
	/* It may die before or after the next question reaches it. */
	for (int i = 0; i < 3 && read_proc(f->dir_fd, "maps", text, sizeof(text)); i++)
		;
	assert_string_equal(text, "text");
	assert_int_equal(count(f, METRIC_FILE_HELPER_DIED), 1);
}

static void a_shortage_of_descriptors_is_told(void **state)
{
	const struct fixture *f = *state;
	struct rlimit before, none = { 0 };
	char text[16];
	int err;

	getrlimit(RLIMIT_NOFILE, &before);
	none.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	err = read_proc(f->dir_fd, "maps", text, sizeof(text));
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(failure_is_shortage(err));
	assert_int_equal(count(f, METRIC_FILE_HELPER_NOT_STARTED), 1);
	write_file(f, "maps", "text");
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
}

/* A child of ours that finds this file waits until it is gone. */
static void path_of_obstacle(pid_t parent, char *path, size_t size)
{
	snprintf(path, size, "/tmp/fathom-test-obstacle-%d", (int)parent);
}

static void wait_at_obstacle(void)
{
	char path[64];

	path_of_obstacle(getppid(), path, sizeof(path));
	while (!access(path, F_OK) && getppid() != 1)
		usleep(1000);
}

/* Asks, and loses the child: the next one is slow to start. */
static void make_next_child_slow(struct fixture *f, char *path, size_t size)
{
	char text[16];

	write_file(f, "maps", "text");
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	path_of_obstacle(getpid(), path, size);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	kill(f->helper.child.pid, SIGKILL);
	for (int i = 0; i < 1000 && f->helper.starting.pid < 0; i++)
		(void)read_proc_once(f->dir_fd, "maps", text, sizeof(text));
	assert_true(f->helper.starting.pid > 0);
}

static void nobody_waits_for_a_child_that_is_slow_to_start(void **state)
{
	struct fixture *f = *state;
	char path[64], text[16];
	pid_t slow;

	make_next_child_slow(f, path, sizeof(path));
	slow = f->helper.starting.pid;
	assert_int_equal(read_proc_once(f->dir_fd, "maps", text, sizeof(text)), -EAGAIN);
	assert_true(count(f, METRIC_FILE_READS_POSTPONED) > 1);
	assert_int_equal(f->helper.starting.pid, slow);
	unlink(path);
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	assert_string_equal(text, "text");
	assert_int_equal(f->helper.child.pid, slow);
	assert_int_equal(f->helper.starting.pid, -1);
	assert_int_equal(count(f, METRIC_FILE_HELPER_NOT_STARTED), 0);
}

static void a_child_that_never_starts_is_replaced(void **state)
{
	struct fixture *f = *state;
	char path[64], text[16];

	make_next_child_slow(f, path, sizeof(path));
	f->helper.starting_since_ns = 0;
	assert_int_equal(read_proc_once(f->dir_fd, "maps", text, sizeof(text)), -EAGAIN);
	assert_int_equal(count(f, METRIC_FILE_HELPER_NOT_STARTED), 1);
	assert_int_equal(f->helper.starting.pid, -1);
	unlink(path);
	assert_int_equal(read_proc(f->dir_fd, "maps", text, sizeof(text)), 0);
	assert_string_equal(text, "text");
}

static void a_child_that_is_starting_ends_with_the_helper(void **state)
{
	struct fixture *f = *state;
	char path[64];
	pid_t slow;

	make_next_child_slow(f, path, sizeof(path));
	slow = f->helper.starting.pid;
	file_helper_stop(&f->helper);
	unlink(path);
	while (waitpid(slow, NULL, 0) > 0)
		;
	assert_int_equal(kill(slow, 0), -1);
	assert_int_equal(file_helper_start(&f->helper, &f->metrics), 0);
}

static void a_recorded_host_has_no_helper(void **state)
{
	const struct host host = { 0 };
	struct file_helper helper;
	struct metrics metrics = { 0 };
	const struct foreign *before = foreign_current;

	(void)state;
	foreign_current = NULL;
	host_current = &host;
	assert_int_equal(file_helper_start(&helper, &metrics), 0);
	assert_null(foreign_current);
	file_helper_stop(&helper);
	host_current = NULL;
	foreign_current = before;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(text_is_read),
		CASE(files_and_links_of_proc_are_read),
		CASE(a_mapped_file_is_identified),
		CASE(a_file_is_opened_from_each_place),
		CASE(files_are_sent_open_for_reading),
		CASE(what_cannot_be_sent_is_told),
		CASE(errors_are_those_of_the_calls),
		CASE(what_hangs_costs_one_short_wait),
		CASE(what_answers_late_is_trusted_again),
		CASE(many_that_hang_are_bounded),
		CASE(once_the_allowance_is_spent_nobody_new_is_asked),
		CASE(a_starved_child_takes_of_what_all_may_wait),
		CASE(a_child_that_dies_is_replaced),
		CASE(a_shortage_of_descriptors_is_told),
		CASE(nobody_waits_for_a_child_that_is_slow_to_start),
		CASE(a_child_that_never_starts_is_replaced),
		CASE(a_child_that_is_starting_ends_with_the_helper),
		CASE(a_recorded_host_has_no_helper),
	};

	alarm(300); /* a test that hangs fails */
	if (argc > 1 && file_child_is_command(argv[1])) {
		wait_at_obstacle();
		start_load();
		return file_child_main(argc, argv);
	}
	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
