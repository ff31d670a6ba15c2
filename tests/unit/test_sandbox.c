/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox from both sides: this program is its own child, started with the hidden command. One
 * letter in the "ELF file" tells the child what to do instead of a build.
 */
#include "symbolizer/sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/sandboxed/close_in.h"
#include "symbolizer/sandboxed/main.h"

enum { RESULT_FD = 5, PATIENCE_MS = 20000 };

/* ---- the child's side --------------------------------------------------------------------- */

static int eat_memory(void)
{
	for (;;) {
		char *block = malloc(1 << 20);

		if (!block)
			return -ENOMEM;
		memset(block, 1, 1 << 20);
	}
}

static int fill_output(int fd)
{
	static const char zeros[65536];

	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	return -EFBIG;
}

/* Does everything that a build does legitimately. */
static int work_honestly(int elf_fd, int output_fd, struct sandbox_result *ret_result)
{
	struct stat st;
	char *map, byte;

	if (io_fstat(elf_fd, &st) || fcntl(elf_fd, F_GETFD) < 0)
		return -EIO;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, elf_fd, 0);
	if (map == MAP_FAILED || pread(elf_fd, &byte, 1, 0) != 1 || byte != map[0])
		return -EIO;
	if (readlink("/proc/self/fd/3", &byte, 1) != -1 || errno != ENOENT)
		return -EIO;
	free(malloc(10 << 20));
	if (ftruncate(output_fd, 100) || pwrite(output_fd, "index", 5, 0) != 5)
		return -EIO;
	ret_result->broken_units = 7;
	return 0;
}

/* Each is an attempt of a compromised child, and must kill it. */
static int misbehave(char what)
{
	static char *const arguments[] = { NULL };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct stat st;

	switch (what) {
	case 'o':
		return open("/etc/hostname", O_RDONLY);
	case 's':
		return socket(AF_INET, SOCK_STREAM, 0);
	case 'e':
		return execve("/bin/true", arguments, arguments);
	case 'p':
		return (int)ptrace(PTRACE_ATTACH, getppid(), 0, 0);
	case 'f':
		return fork();
	case 'k':
		return kill(getppid(), 0);
	case 'x':
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return 0;
	case 't': /* tells whether the path exists, whatever the flag says */
		return (int)syscall(SYS_newfstatat, AT_FDCWD, "/etc/hostname", &st, AT_EMPTY_PATH);
	case 'R':
		return (int)syscall(SYS_prlimit64, getppid(), RLIMIT_AS, &none, NULL);
	case 'F':
		return (int)syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &none, NULL);
	default:
		return (int)syscall(SYS_unlinkat, AT_FDCWD, "/nowhere", 0);
	}
}

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	int elf_fd = files->elf_fd, output_fd = files->output_fd;
	char what = 0;

	if (pread(elf_fd, &what, 1, 0) != 1)
		return -EIO;
	switch (what) {
	case 'h':
		return work_honestly(elf_fd, output_fd, ret_result);
	case 'B':
		return -EBADMSG;
	case '2':
		return -E2BIG;
	case 'S':
		return -ENOSPC;
	case 'Q':
		return -EDQUOT;
	case 'm':
		return eat_memory();
	case 'a': /* raises its limit on memory, once it is final */
		if (setrlimit(RLIMIT_AS, &(struct rlimit){ 1 << 30, 1 << 30 }))
			return eat_memory();
		return 0;
	case 'M': /* the machine is out of memory */
		return -ENOMEM;
	case 'w':
		return fill_output(output_fd);
	case 'r': /* reports that it is sandboxed, then runs on */
		if (write(RESULT_FD, "r", 1) != 1)
			return -EIO;
		/* fall through */
	case 'l':
		for (volatile unsigned int i = 0;; i++)
			;
	case 'W': /* for an answer that never comes */
		return (int)read(RESULT_FD, &what, 1);
	case 'c':
		__builtin_trap();
	case 'q':
		_exit(0);
	case 'g':
		return write(RESULT_FD, "0123456789abcdef", 16) == 16 ? (_exit(0), 0) : -EIO;
	case 'b':
		while (write(RESULT_FD, "babble babble babble", 20) > 0)
			;
		return 0;
	case 'C':
		close(RESULT_FD);
		for (volatile unsigned int i = 0;; i++)
			;
	case 'v': /* writes a byte before its message */
		return write(RESULT_FD, "x", 1) == 1 ? 0 : -EIO;
	default:
		return misbehave(what);
	}
}

/* ---- the parent's side -------------------------------------------------------------------- */

static int file_with(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void wait_for(struct sandbox *s)
{
	struct pollfd waited = { .fd = s->result_fd, .events = POLLIN };

	do {
		assert_int_equal(poll(&waited, 1, PATIENCE_MS), 1);
	} while (!sandbox_receive(s));
}

/* On a busy machine even a killed child takes its time. */
static void end(struct sandbox *s)
{
	while (!sandbox_kill(s))
		;
}

static enum sandbox_outcome run(
	const char *what, struct sandbox_result *ret_result, struct sandbox *ret_sandbox)
{
	struct sandbox_limits limits = {
		.memory_bytes = 256 << 20,
		.cpu_seconds = 1,
		.output_bytes = 1 << 20,
	};
	autoclose int elf = file_with(what);
	autoclose int output = memfd_create("output", MFD_CLOEXEC);
	enum sandbox_outcome outcome;
	pid_t pid;

	assert_int_equal(sandbox_start(elf, output, &limits, ret_sandbox), 0);
	pid = ret_sandbox->pid;
	wait_for(ret_sandbox);
	outcome = sandbox_finish(ret_sandbox, ret_result);
	assert_int_equal(ret_sandbox->pid, -1);
	assert_int_equal(ret_sandbox->result_fd, -1);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	return outcome;
}

static void expect(const char *what, enum sandbox_outcome outcome)
{
	struct sandbox_result result = { 0 };
	struct sandbox s;

	assert_int_equal(run(what, &result, &s), outcome);
	if (outcome != SANDBOX_OK)
		assert_true(result.error < 0);
}

static void test_result_is_returned(void **state)
{
	struct sandbox_limits limits = { .memory_bytes = 256 << 20, .cpu_seconds = 5 };
	autoclose int elf = file_with("h");
	autoclose int output = memfd_create("output", MFD_CLOEXEC);
	struct sandbox_result result = { .error = -1 };
	char text[6] = "";
	struct sandbox s;

	(void)state;
	assert_int_equal(sandbox_start(elf, output, &limits, &s), 0);
	wait_for(&s);
	assert_int_equal(
		sandbox_finish(&s, &result), sandbox_is_closed() ? SANDBOX_OK : SANDBOX_BAD_INPUT);
	if (!sandbox_is_closed())
		return; /* the child reports that readlink() is not blocked */
	assert_int_equal(result.error, 0);
	assert_int_equal(result.broken_units, 7);
	assert_int_equal(pread(output, text, 5, 0), 5);
	assert_string_equal(text, "index");
	assert_true(s.cpu_ns > 0);
	assert_true(s.peak_bytes > 0);
}

static void test_an_error_that_it_reports(void **state)
{
	(void)state;
	expect("B", SANDBOX_BAD_INPUT);
	expect("2", SANDBOX_LIMIT);
}

static void test_memory_limit(void **state)
{
	(void)state;
	if (!sandbox_is_closed())
		skip();
	expect("m", SANDBOX_LIMIT);
	expect("a", SANDBOX_LIMIT);
}

/* More memory and time only for more bytes. */
static void test_limits_grow_with_the_files(void **state)
{
	const struct sandbox_limits most = {
		.memory_bytes = 4UL << 30, .cpu_seconds = 60, .output_bytes = 5
	};
	const struct sandbox_limits none = { 0 };
	struct sandbox_limits l = sandbox_limits_for(&most, 0);

	(void)state;
	assert_int_equal(l.memory_bytes, 256UL << 20);
	assert_int_equal(l.cpu_seconds, 10);
	assert_int_equal(l.output_bytes, 5);
	l = sandbox_limits_for(&most, 16 << 20);
	assert_int_equal(l.memory_bytes, 256UL << 20);
	assert_int_equal(l.cpu_seconds, 26);
	l = sandbox_limits_for(&most, 32 << 20);
	assert_int_equal(l.memory_bytes, 512UL << 20);
	l = sandbox_limits_for(&most, UINT64_MAX);
	assert_int_equal(l.memory_bytes, 4UL << 30);
	assert_int_equal(l.cpu_seconds, 60);
	l = sandbox_limits_for(&none, 1 << 30);
	assert_int_equal(l.memory_bytes, 0);
	assert_int_equal(l.cpu_seconds, 0);
}

static void test_cpu_limit(void **state)
{
	(void)state;
	expect("l", SANDBOX_LIMIT);
}

static void test_output_limit(void **state)
{
	(void)state;
	expect("w", SANDBOX_LIMIT);
}

/* In a process of its own, because a hard limit cannot be raised again. */
static void output_of_a_parent_with_a_lower_limit(void)
{
	const struct rlimit low = { 1 << 19, 1 << 19 };
	struct sandbox_result result = { 0 };
	struct sandbox s;

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	_exit(run("w", &result, &s) == SANDBOX_NO_SPACE && result.error < 0 ? 0 : 1);
}

/* Below a limit of our own, the child's output ends before its limit is reached. */
static void test_an_output_limit_of_ours(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		output_of_a_parent_with_a_lower_limit();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_a_full_disk(void **state)
{
	(void)state;
	expect("S", SANDBOX_NO_SPACE);
	expect("Q", SANDBOX_NO_SPACE);
}

static void test_crash(void **state)
{
	(void)state;
	expect("c", SANDBOX_CRASH);
}

static void test_exit_without_a_result(void **state)
{
	(void)state;
	expect("q", SANDBOX_CRASH);
}

static void test_garbage_on_the_pipe(void **state)
{
	(void)state;
	expect("g", SANDBOX_CRASH);
	expect("b", SANDBOX_CRASH);
	expect("v", SANDBOX_CRASH);
}

static void test_closes_the_pipe_and_lingers(void **state)
{
	(void)state;
	/* The parent's SIGKILL looks like one sent by others. */
	expect("C", SANDBOX_INTERRUPTED);
}

/* Sends SIGNAL to a busy child, as the kernel does when memory is short. */
static enum sandbox_outcome outcome_of_signal(int signal_number)
{
	struct sandbox_limits limits = { .memory_bytes = 256 << 20, .cpu_seconds = 60 };
	autoclose int elf = file_with("r");
	struct sandbox_result result = { 0 };
	struct pollfd waited;
	enum sandbox_outcome outcome;
	struct sandbox s;

	assert_int_equal(sandbox_start(elf, elf, &limits, &s), 0);
	waited = (struct pollfd){ .fd = s.result_fd, .events = POLLIN };
	assert_int_equal(poll(&waited, 1, PATIENCE_MS), 1);
	/* The byte that reported the start is not part of the message. */
	assert_false(sandbox_receive(&s));
	s.message_bytes = 0;
	assert_int_equal(kill(s.pid, signal_number), 0);
	wait_for(&s);
	outcome = sandbox_finish(&s, &result);
	assert_int_equal(result.error, outcome == SANDBOX_INTERRUPTED ? -EAGAIN : -EIO);
	return outcome;
}

static void test_a_child_that_others_kill_was_interrupted(void **state)
{
	(void)state;
	assert_int_equal(outcome_of_signal(SIGKILL), SANDBOX_INTERRUPTED);
	assert_int_equal(outcome_of_signal(SIGTERM), SANDBOX_INTERRUPTED);
	/* Not SIGSEGV: a sanitizer handles it, and its report takes time. */
	assert_int_equal(outcome_of_signal(SIGABRT), SANDBOX_CRASH);
	assert_int_equal(outcome_of_signal(SIGSYS), SANDBOX_CRASH);
	assert_int_equal(outcome_of_signal(SIGXCPU), SANDBOX_LIMIT);
}

static void test_a_shortage_far_from_its_own_limit_was_an_interruption(void **state)
{
	(void)state;
	expect("M", SANDBOX_INTERRUPTED);
}

static void test_forbidden_system_calls(void **state)
{
	static const char *const calls[] = { "o", "s", "e", "p", "f", "k", "x", "u", "t", "R",
		"F" };

	(void)state;
	if (!sandbox_is_closed())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		expect(calls[i], SANDBOX_CRASH);
}

static void test_kill_ends_a_running_child(void **state)
{
	struct sandbox_limits limits = { 0 };
	autoclose int elf = file_with("l");
	struct sandbox s;
	pid_t pid;

	(void)state;
	assert_int_equal(sandbox_start(elf, elf, &limits, &s), 0);
	pid = s.pid;
	end(&s);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(s.pid, -1);
	assert_true(sandbox_kill(&s)); /* the second call does nothing */
}

/*
 * A child whose exit waits for a file server: SIGKILL does nothing. `immortal` stands for the wait.
 */
static pid_t immortal;

int kill(pid_t pid, int number)
{
	if (number == SIGKILL && immortal && (pid == immortal || pid == -immortal))
		return 0;
	return (int)syscall(SYS_kill, pid, number);
}

static void test_a_child_that_cannot_end_is_left_for_later(void **state)
{
	struct sandbox_limits limits = { 0 };
	autoclose int elf = file_with("l");
	struct sandbox s;

	(void)state;
	assert_int_equal(sandbox_start(elf, elf, &limits, &s), 0);
	immortal = s.pid;
	assert_false(sandbox_kill(&s));
	assert_int_equal(s.result_fd, -1);
	assert_false(sandbox_reap(&s));
	immortal = 0;
	end(&s);
	assert_true(sandbox_reap(&s));
	assert_true(s.cpu_ns > 0);
}

/* It has said all it has to say, or closed its socket, but its end does not come. */
static void test_the_end_of_a_child_can_be_awaited(void **state)
{
	static const struct {
		const char *what;
		enum sandbox_outcome outcome;
	} cases[] = { { "B", SANDBOX_BAD_INPUT }, { "C", SANDBOX_INTERRUPTED } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sandbox_limits limits = { .cpu_seconds = 60 };
		autoclose int elf = file_with(cases[i].what);
		struct sandbox_result result;
		struct sandbox s;

		assert_int_equal(sandbox_start(elf, elf, &limits, &s), 0);
		wait_for(&s);
		/* The first call may find it gone, if it ends by itself. */
		while (!sandbox_is_gone(&s)) {
			assert_true(s.ends && sandbox_receive(&s));
			(void)poll(&(struct pollfd){ .fd = s.result_fd, .events = POLLIN }, 1, 50);
		}
		assert_int_equal(sandbox_finish(&s, &result), cases[i].outcome);
		assert_int_equal(s.result_fd, -1);
	}
}

static void test_a_child_that_only_sleeps_is_noticed(void **state)
{
	struct sandbox_limits limits = { .cpu_seconds = 60 };
	autoclose int sleeping = file_with("W"), busy = file_with("l");
	struct sandbox s;

	(void)state;
	assert_int_equal(sandbox_start(sleeping, sleeping, &limits, &s), 0);
	while (sandbox_idle_looks(&s) < 5)
		usleep(10000);
	end(&s);
	assert_int_equal(sandbox_start(busy, busy, &limits, &s), 0);
	for (unsigned int looks = 0; looks < 5; looks++) {
		usleep(10000);
		/* It may wait for a page of the program before it begins. */
		assert_true(sandbox_idle_looks(&s) <= looks);
	}
	end(&s);
}

/* The only reader of PIPE_END sees its end when the last holder, the orphaned child, is gone. */
static void test_dies_with_its_parent(void **state)
{
	autoclose int elf = file_with("l");
	int ends[2];
	char byte;
	pid_t parent;
	struct pollfd waited;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	parent = fork();
	if (parent == 0) {
		struct sandbox_limits limits = { 0 };
		struct sandbox s;

		/* The pipe stands in for the output file: the child holds it as fd 4. */
		_exit(sandbox_start(elf, ends[1], &limits, &s) ? 1 : 0);
	}
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	close(ends[1]);
	waited = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	assert_int_equal(poll(&waited, 1, PATIENCE_MS), 1);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

static bool status_has(const struct buffer *status, const char *line)
{
	return memmem(status->bytes, status->size, line, strlen(line)) != NULL;
}

static size_t entries_of(const char *path)
{
	autoclosedir DIR *directory = opendir(path);
	const struct dirent *entry;
	size_t count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	return count;
}

/* The limits and rights of a running child, read from proc(5). */
static void test_gives_up_all_privileges(void **state)
{
	struct sandbox_limits limits = { .memory_bytes = 256 << 20 };
	autoclose int elf = file_with("r");
	autocall(buffer_deinit) struct buffer status = { 0 }, limits_text = { 0 };
	struct pollfd waited;
	struct sandbox s;
	char path[64], line[16];

	(void)state;
	buffer_init(&status, 65536);
	buffer_init(&limits_text, 65536);
	assert_int_equal(sandbox_start(elf, elf, &limits, &s), 0);
	waited = (struct pollfd){ .fd = s.result_fd, .events = POLLIN };
	assert_int_equal(poll(&waited, 1, PATIENCE_MS), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)s.pid);
	assert_int_equal(io_read_file(AT_FDCWD, path, &status), 0);
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)s.pid);
	assert_true(io_read_line(AT_FDCWD, path, line, sizeof(line)) > 0);
	assert_string_equal(line, "1000");
	if (geteuid() == 0 && sandbox_is_closed()) {
		snprintf(path, sizeof(path), "/proc/%d/root", (int)s.pid);
		assert_int_equal(entries_of(path), 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)s.pid);
	assert_int_equal(io_read_file(AT_FDCWD, path, &limits_text), 0);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)s.pid), MIN(getpriority(0, 0) + 10, 19));
	assert_int_equal(sched_getscheduler(s.pid), SCHED_BATCH);
	assert_int_equal(getpgid(s.pid), s.pid);
	end(&s);
	assert_true(status_has(&status, "CapEff:\t0000000000000000\n"));
	assert_true(status_has(&status, "CapPrm:\t0000000000000000\n"));
	assert_true(status_has(&status, "CapAmb:\t0000000000000000\n"));
	if (geteuid() == 0)
		assert_true(status_has(&status, "CapBnd:\t0000000000000000\n"));
	assert_true(status_has(&status, "NoNewPrivs:\t1\n"));
	assert_true(status_has(&limits_text, "Max open files            6 "));
	assert_true(status_has(&limits_text, "Max processes             0 "));
	assert_true(status_has(&limits_text, "Max core file size        0 "));
	if (geteuid() == 0 && sandbox_is_closed()) {
		assert_true(status_has(&status, "Uid:\t65534\t65534\t65534\t65534\n"));
		assert_true(status_has(&status, "Gid:\t65534\t65534\t65534\t65534\n"));
		assert_true(status_has(&status, "Groups:\t \n"));
	}
	if (sandbox_is_closed()) {
		assert_true(status_has(&status, "Seccomp:\t2\n"));
		assert_true(status_has(&limits_text, "Max address space         268435456 "));
	}
}

static void test_enter_forbids_what_follows(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (!sandbox_is_closed())
		skip();
	pid = fork();
	if (pid == 0) {
		struct sandbox_limits limits = { 0 };

		if (sandbox_enter(&limits))
			_exit(1);
		open("/dev/null", O_RDONLY);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

/* Nobody should run the hidden command by hand. */
static void test_refuses_other_arguments(void **state)
{
	char program[] = "fathom", command[] = "index-module", word[] = "1x";
	char *few[] = { program, command, NULL };
	char number[] = "1", debug_files[] = "0.5,9.1,";
	char none[] = "", addresses[] = "1234,1000,";
	char *wrong[] = { program, command, word, word, word, word, number, none, NULL };
	char *role[] = { program, command, number, number, number, number, debug_files, none,
		NULL };
	char *order[] = { program, command, number, number, number, number, none, addresses, NULL };

	(void)state;
	assert_int_equal(sandboxed_run(2, few, act), EXIT_FAILURE);
	assert_int_equal(sandboxed_run(8, wrong, act), EXIT_FAILURE);
	assert_int_equal(sandboxed_run(8, role, act), EXIT_FAILURE);
	assert_int_equal(sandboxed_run(8, order, act), EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result_is_returned),
		cmocka_unit_test(test_an_error_that_it_reports),
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_limits_grow_with_the_files),
		cmocka_unit_test(test_cpu_limit),
		cmocka_unit_test(test_output_limit),
		cmocka_unit_test(test_an_output_limit_of_ours),
		cmocka_unit_test(test_a_full_disk),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_exit_without_a_result),
		cmocka_unit_test(test_garbage_on_the_pipe),
		cmocka_unit_test(test_closes_the_pipe_and_lingers),
		cmocka_unit_test(test_a_child_that_others_kill_was_interrupted),
		cmocka_unit_test(test_a_shortage_far_from_its_own_limit_was_an_interruption),
		cmocka_unit_test(test_forbidden_system_calls),
		cmocka_unit_test(test_kill_ends_a_running_child),
		cmocka_unit_test(test_a_child_that_cannot_end_is_left_for_later),
		cmocka_unit_test(test_the_end_of_a_child_can_be_awaited),
		cmocka_unit_test(test_a_child_that_only_sleeps_is_noticed),
		cmocka_unit_test(test_dies_with_its_parent),
		cmocka_unit_test(test_gives_up_all_privileges),
		cmocka_unit_test(test_enter_forbids_what_follows),
		cmocka_unit_test(test_refuses_other_arguments),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
