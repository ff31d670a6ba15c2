/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spins as a thread called argv[1], argv[2] milliseconds of each 100, for argv[3] seconds of CPU
 * time; then ends with status argv[4].
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void spin(clock_t end)
{
	while (clock() < end)
		for (uint64_t i = 0; i < 100000; i++)
			sink += i;
}

int main(int argc, char **argv)
{
	clock_t step, end;
	long milliseconds;

	if (argc != 5 || prctl(PR_SET_NAME, argv[1]))
		return 125;
	milliseconds = strtol(argv[2], NULL, 10);
	if (milliseconds < 1 || milliseconds > 100)
		return 125;
	step = milliseconds * (CLOCKS_PER_SEC / 1000);
	end = (clock_t)(strtod(argv[3], NULL) * CLOCKS_PER_SEC);
	while (clock() < end) {
		spin(clock() + step);
		usleep((useconds_t)(100 - milliseconds) * 1000);
	}
	return (int)strtol(argv[4], NULL, 10);
}
