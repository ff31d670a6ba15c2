/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes argv[1] rounds of system calls, the same in each, between calls of umask(), which nothing
 * else here makes: files, a pipe, sleep, and epoll descriptors within each other, which the kernel
 * polls recursively. With argv[2] it then reads so many MB of zeros at once, which takes so long
 * that interrupts come. With argv[3] a thread does all that, and ends before the program does.
 * Prints `ROUNDS SLEPT_NS`: how long the rounds have slept at least.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NESTED = 3, CHUNK_SHIFT = 20 };

static const long SLEEP_NS = 1000000;

static long rounds, megabytes;
static int outer, ends[2];

/* Each of the descriptors has the next one, the last one the pipe. */
static int nest(int fd)
{
	for (int i = 0; i < NESTED; i++) {
		struct epoll_event event = { .events = EPOLLIN };
		int epoll = epoll_create1(0);

		if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			exit(1);
		fd = epoll;
	}
	return fd;
}

__attribute__((noinline)) static void make_round(void)
{
	const struct timespec pause = { .tv_nsec = SLEEP_NS };
	struct epoll_event event;
	struct stat status;
	char byte = 'x';
	int fd;

	umask(022);
	fd = open("/tmp/kerneltrees", O_RDWR | O_CREAT, 0600);
	if (fd < 0 || write(fd, &byte, 1) != 1 || fstat(fd, &status) ||
		pread(fd, &byte, 1, 0) != 1 || stat("/tmp/kerneltrees", &status))
		exit(1);
	close(fd);
	if (write(ends[1], &byte, 1) != 1 || epoll_wait(outer, &event, 1, 0) != 1 ||
		read(ends[0], &byte, 1) != 1)
		exit(1);
	nanosleep(&pause, NULL);
}

static void *make_rounds(void *unused)
{
	size_t size = (size_t)megabytes << CHUNK_SHIFT;
	int zeros = open("/dev/zero", O_RDONLY);
	void *to;

	for (long i = 0; i < rounds; i++)
		make_round();
	umask(022);
	if (!megabytes)
		return unused;
	to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED || read(zeros, to, size) != (ssize_t)size)
		exit(1);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	megabytes = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	if (pipe(ends))
		return 1;
	outer = nest(ends[0]);
	if (argc <= 3) {
		make_rounds(NULL);
	} else if (pthread_create(&thread, NULL, make_rounds, NULL) || pthread_join(thread, NULL)) {
		return 1;
	}
	printf("%ld %" PRId64 "\n", rounds, (int64_t)rounds * SLEEP_NS);
	return 0;
}
