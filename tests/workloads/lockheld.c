/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose memory lock (mmap_lock) is held for writing for as long as a file system takes to
 * answer, while another of its threads runs: reading its maps, map_files and the like waits. No
 * privilege is needed. lockheld FILE FILE is in a file system of hangfs.c. Prints `chain NAME...`,
 * then `ready`, and spins. After SIGUSR1, which must come when reads of FILE already hang, a child
 * touches a page of FILE: its read waits with the page locked. Then a thread maps FILE over a
 * mapping that exists: since the file is open for direct I/O, mmap() throws the file's cached pages
 * away, waits for the locked one, and holds the lock meanwhile. Prints `held` once that thread
 * sleeps in mmap().
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	MAPPED_BYTES = 4096,
	ASLEEP_MS = 200,
};

static volatile uint64_t sink;

struct target {
	const char *path;
	int fd;
	void *mapping; /* replaced by one of the file */
	pid_t child;
	int child_fd; /* a byte makes the child touch a page */
	volatile pid_t tid; /* of the thread in mmap() */
	volatile bool held;
};

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* The state letter of thread TID of process PID. It is read without the memory lock. */
static char thread_state(pid_t pid, pid_t tid)
{
	char path[64], text[256];
	const char *end;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		die(path);
	text[got] = 0;
	end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/* A thread sleeps for a moment now and then; one that waits for FILE goes on sleeping. */
static void wait_for_sleep(pid_t pid, const volatile pid_t *tid)
{
	for (int asleep_ms = 0; asleep_ms < ASLEEP_MS; asleep_ms++) {
		char state;

		usleep(1000);
		state = *tid ? thread_state(pid, *tid) : '?';
		if (state == 'Z')
			die("lockheld: FILE answers");
		if (state != 'D')
			asleep_ms = 0;
	}
}

/* Forked before anything else: a later fork would make all pages copy-on-write, and their next use
 * a fault. */
static void fork_child(struct target *t)
{
	const volatile char *page;
	int pipe_fds[2];
	char byte;

	if (pipe2(pipe_fds, O_CLOEXEC) || (t->child = fork()) < 0)
		die("lockheld: fork");
	t->child_fd = pipe_fds[1];
	if (t->child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	page = mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE, t->fd, 0);
	if (page != MAP_FAILED && read(pipe_fds[0], &byte, 1) == 1)
		sink = (uint64_t)*page;
	_exit(0);
}

static void *map_over(void *argument)
{
	struct target *t = argument;

	t->tid = (pid_t)syscall(SYS_gettid);
	while (!t->held) {
		if (mmap(t->mapping, MAPPED_BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, t->fd, 0) ==
			MAP_FAILED)
			die("lockheld: mmap");
	}
	return NULL;
}

static void *hold_when_told(void *argument)
{
	struct target *t = argument;
	pthread_t thread;
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &number);
	if (write(t->child_fd, "", 1) != 1)
		die("lockheld: pipe");
	wait_for_sleep(t->child, &t->child);
	if (pthread_create(&thread, NULL, map_over, t))
		die("lockheld: thread");
	wait_for_sleep(getpid(), &t->tid);
	t->held = true;
	/* Not by stdio, which might allocate memory. */
	if (write(STDOUT_FILENO, "held\n", 5) != 5)
		die("lockheld: write");
	pthread_join(thread, NULL);
	return NULL;
}

__attribute__((noinline)) void lockheld_spin(void)
{
	for (;;) {
		uint64_t x = sink + 1;

		for (int i = 0; i < 5000000; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		sink = x;
	}
}

int main(int argc, char **argv)
{
	struct target t = { .path = argc == 2 ? argv[1] : "", .fd = -1 };
	pthread_t thread;
	sigset_t set;

	t.fd = open(t.path, O_RDONLY | O_CLOEXEC);
	t.mapping = mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t.fd < 0 || t.mapping == MAP_FAILED)
		die("usage: lockheld FILE");
	fork_child(&t);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL) || pthread_create(&thread, NULL, hold_when_told, &t))
		die("lockheld: thread");
	puts("chain lockheld_spin main\nready");
	fflush(stdout);
	lockheld_spin();
}
