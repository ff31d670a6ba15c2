/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A known chain of calls: prints `chain NAME...`, innermost first, then `ready`, and spins in the
 * leaf for argv[1] seconds, of CPU time if argv[2] is `cpu`. Built with frame pointers, also in the
 * leaf.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint64_t sink;

struct end {
	time_t at;
	bool cpu;
};

static inline bool over(const struct end *end)
{
	return (end->cpu ? clock() / CLOCKS_PER_SEC : time(NULL)) >= end->at;
}

__attribute__((noinline)) void spin_here(const struct end *end)
{
	while (!over(end)) {
		uint64_t x = sink + 1;

		/* The clock is read rarely, as the vDSO keeps no frame pointers. */
		for (int i = 0; i < 5000000; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		sink = x;
	}
}

/* The empty asm keeps the call from becoming a jump. */
#define LINK(name, next)                                           \
	__attribute__((noinline)) void name(const struct end *end) \
	{                                                          \
		next(end);                                         \
		__asm__ volatile("" ::: "memory");                 \
	}

LINK(chain_a, spin_here)
LINK(chain_b, chain_a)
LINK(chain_c, chain_b)
LINK(chain_d, chain_c)
LINK(chain_e, chain_d)
LINK(chain_f, chain_e)
LINK(chain_g, chain_f)
LINK(chain_h, chain_g)

int main(int argc, char **argv)
{
	struct end end = {
		.at = argc > 1 ? strtol(argv[1], NULL, 10) : 60,
		.cpu = argc > 2 && !strcmp(argv[2], "cpu"),
	};

	puts("chain spin_here chain_a chain_b chain_c chain_d chain_e chain_f chain_g chain_h "
	     "main");
	puts("ready");
	fflush(stdout);
	if (!end.cpu)
		end.at += time(NULL);
	chain_h(&end);
	return 0;
}
