/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain of calls that is known: prints `chain NAME...`, innermost first, then `ready`, and spins
 * at its end for argv[1] seconds. Built with frame pointers, also in the leaf.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

__attribute__((noinline)) void spin_here(const time_t *end)
{
	while (time(NULL) < *end) {
		uint64_t x = sink + 1;

		/* Long between two looks at the clock: the vDSO keeps no frame pointers. */
		for (int i = 0; i < 5000000; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		sink = x;
	}
}

/* The empty asm keeps the call from becoming a jump. */
#define LINK(name, next)                                       \
	__attribute__((noinline)) void name(const time_t *end) \
	{                                                      \
		next(end);                                     \
		__asm__ volatile("" ::: "memory");             \
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
	time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 60);

	puts("chain spin_here chain_a chain_b chain_c chain_d chain_e chain_f chain_g chain_h "
	     "main");
	puts("ready");
	fflush(stdout);
	chain_h(&end);
	return 0;
}
