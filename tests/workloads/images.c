/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that execute each other in one process, at the same addresses: NAME_leaf belongs to the
 * program NAME only. Built without position independence.
 *
 *	images turn PROGRAM...  works for SPIN_MS in NAME_leaf, then executes the first PROGRAM,
 *	                        which goes on like that
 *	images storm PROGRAM    executes PROGRAM in a child, again and again
 *	images map COUNT        maps and unmaps its own code COUNT times
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef NAME
#define NAME images
#endif
#ifndef FRAME
#define FRAME 64
#endif
#ifndef SPIN_MS
#define SPIN_MS 0
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define LEAF JOIN(NAME, _leaf)
#define MIDDLE JOIN(NAME, _middle)

enum { DEPTH = 5 };

#ifdef NEVER_CALLED
/* Fills the addresses where other programs have their code. */
__asm__(".pushsection .text\n.globl never_called\n.type never_called, %function\nnever_called:\n"
	".fill 0x80000, 4, 0\n.size never_called, . - never_called\n.popsection\n");
#endif

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) void LEAF(uint64_t end_ns)
{
	volatile char frame[FRAME];
	volatile unsigned long x = 0;

	do {
		for (int i = 0; i < 20000; i++)
			x += (unsigned long)i;
		frame[x % FRAME] = 1;
	} while (now_ns() < end_ns);
}

__attribute__((noinline)) int MIDDLE(uint64_t end_ns, int left)
{
	volatile char frame[FRAME];

	frame[0] = (char)left;
	if (left > 1)
		MIDDLE(end_ns, left - 1);
	else
		LEAF(end_ns);
	return frame[0];
}

/* argv: self, turn, first, second, …, last. Executes the first with this program as the last. */
static int turn(int argc, char **argv)
{
	char *next[16] = { argv[2], argv[1] };

	if (SPIN_MS)
		MIDDLE(now_ns() + SPIN_MS * UINT64_C(1000000), DEPTH);
	for (int i = 3; i < argc && i < 14; i++)
		next[i - 1] = argv[i];
	next[argc - 1] = argv[0];
	execv(next[0], next);
	return 1;
}

static int storm(char **argv)
{
	char *const next[] = { argv[2], "end", NULL };

	for (;;) {
		pid_t child = vfork();

		if (!child) {
			execv(argv[2], next);
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
}

static int map(int count)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	for (int i = 0; i < count; i++) {
		void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (code == MAP_FAILED)
			return 1;
		munmap(code, 4096);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "end"))
		return 0;
	if (argc < 3)
		return 2;
	if (getenv("IMAGES_READY")) {
		puts("ready");
		fflush(stdout);
		unsetenv("IMAGES_READY");
	}
	if (!strcmp(argv[1], "turn"))
		return turn(argc, argv);
	return strcmp(argv[1], "storm") ? map((int)strtol(argv[2], NULL, 10)) : storm(argv);
}
