/* SPDX-License-Identifier: Apache-2.0 */
/* Lives for 40 ms of work in burst_work(), then ends: too short to be found in /proc by polling. */
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) void burst_work(uint64_t duration_ns)
{
	uint64_t end_ns = now_ns() + duration_ns;

	while (now_ns() < end_ns) {
		for (int i = 0; i < 20000; i++)
			sink = sink * 31 + (uint64_t)i;
	}
}

int main(void)
{
	burst_work(40000000);
	return 0;
}
