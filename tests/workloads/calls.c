/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls functions when it is told to. A line `NAME COUNT` on standard input makes COUNT calls of
 * NAME; the answer is `NAME TOTAL NS`: its calls so far, and the time that they took as the caller
 * saw it.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) uint64_t quick(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3 + 1;
}

__attribute__((noinline)) uint64_t slow(uint64_t n)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	nanosleep(&pause, NULL);
	return n + 1;
}

__attribute__((noinline)) uint64_t other(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 5 + 2;
}

/* A call of the kernel's sys_getppid(). */
__attribute__((noinline)) uint64_t parent(uint64_t n)
{
	return n + (uint64_t)syscall(SYS_getppid);
}

static struct {
	const char *name;
	uint64_t (*call)(uint64_t n);
	uint64_t calls, ns;
} functions[] = { { "quick", quick, 0, 0 }, { "slow", slow, 0, 0 }, { "other", other, 0, 0 },
	{ "parent", parent, 0, 0 } };

int main(void)
{
	char line[128], name[64];
	volatile uint64_t sum = 0;
	unsigned long count;

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%63s %lu", name, &count) != 2)
			return 2;
		for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
			if (strcmp(name, functions[i].name))
				continue;
			for (unsigned long n = 0; n < count; n++) {
				uint64_t begin = now_ns();

				sum += functions[i].call(sum);
				functions[i].ns += now_ns() - begin;
			}
			functions[i].calls += count;
			printf("%s %llu %llu\n", name, (unsigned long long)functions[i].calls,
				(unsigned long long)functions[i].ns);
			fflush(stdout);
		}
	}
	return 0;
}
