/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps the page of its own mapped_work() argv[2] times, with gaps, and works in all of the mappings
 * by turns for argv[1] seconds. Prints `mappings N`, then `ready`.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Uses only registers, so that it works at any address; alone in its page. */
__attribute__((noinline, section(".mapped"), aligned(PAGE))) uint64_t mapped_work(uint64_t x)
{
	for (int i = 0; i < 100000; i++)
		x = x * 31 + (uint64_t)i;
	return x;
}

/* Moves the following code off that page. */
__attribute__((used, section(".mapped"), aligned(PAGE))) void mapped_end(void)
{
}

/* The file offset of an address of this program, as /proc/self/maps has it. */
static off_t offset_of(const void *address)
{
	unsigned long start, stop, offset, wanted = (unsigned long)address;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &stop, &offset) == 3 &&
			wanted >= start && wanted < stop) {
			fclose(maps);
			return (off_t)(offset + wanted - start);
		}
	}
	exit(1);
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1,
	    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t (**all)(uint64_t) = calloc((size_t)count, sizeof(*all));
	off_t offset = offset_of((void *)mapped_work);
	time_t end = time(NULL) + strtol(argv[1], NULL, 10);
	char *room = mmap(NULL, 2UL * PAGE * (size_t)count, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t x = 1;

	/* The gaps stay unmapped: a process may have 65,530 mappings (vm.max_map_count). */
	if (!all || fd < 0 || room == MAP_FAILED || munmap(room, 2UL * PAGE * (size_t)count))
		return 1;
	for (int i = 0; i < count; i++) {
		void *at = mmap(room + 2UL * PAGE * (size_t)i, PAGE, PROT_READ | PROT_EXEC,
			MAP_PRIVATE | MAP_FIXED, fd, offset);

		if (at == MAP_FAILED)
			return 1;
		all[i] = (uint64_t(*)(uint64_t))at;
	}
	printf("mappings %d\nready\n", count);
	fflush(stdout);
	while (time(NULL) < end) {
		for (int i = 0; i < count; i++)
			x = all[i](x);
	}
	return (int)(x & 1) & 0;
}
