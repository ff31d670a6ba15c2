/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spends its time in system calls with known kernel functions: prints `kernel FUNCTION...` (each is
 * in some stacks), then `ready`. Runs for argv[1] seconds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 16];

__attribute__((noinline)) static void read_and_write(int zero, int *ends)
{
	for (int i = 0; i < 200; i++) {
		if (read(zero, block, sizeof(block)) < 0 || write(ends[1], block, 4096) < 0 ||
			read(ends[0], block, 4096) < 0)
			exit(1);
	}
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 60);
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int ends[2];

	if (zero < 0 || pipe(ends))
		return 1;
	puts("kernel ksys_read vfs_read ksys_write vfs_write");
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end)
		read_and_write(zero, ends);
	return 0;
}
