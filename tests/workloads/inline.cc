// SPDX-License-Identifier: Apache-2.0
// Inlined functions whose chain and lines are known: prints one `frame NAME FIRST-LAST inlined|real`
// line per frame of the hot stack, innermost first, then `ready`, and runs for argv[1] seconds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#define ALWAYS static inline __attribute__((always_inline))
#define NEVER __attribute__((noinline))

namespace chain {

volatile uint64_t sink;

enum { scramble_first = __LINE__ + 1 };
ALWAYS uint64_t scramble(uint64_t x)
{
	for (int i = 0; i < 400; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}
enum { scramble_last = __LINE__ - 1 };

template <typename T> struct blender {
	enum { call = __LINE__ + 3 };
	ALWAYS T blend(T x)
	{
		return scramble(x + 1) * 3;
	}
};

enum { round_call = __LINE__ + 3 };
ALWAYS uint64_t one_round(uint64_t x)
{
	return blender<uint64_t>::blend(x) ^ 5;
}

enum { descend_inner = __LINE__ + 4, descend_outer = descend_inner + 1 };
NEVER uint64_t descend(uint64_t x, int depth)
{
	if (depth == 0)
		return one_round(x) + one_round(x + 2);
	uint64_t r = descend(x + depth, depth - 1);
	asm volatile("" ::: "memory");
	return r + 1;
}

} // namespace chain

static const int depth = 9;

int main(int argc, char **argv)
{
	time_t end = time(nullptr) + (argc > 1 ? strtol(argv[1], nullptr, 10) : 60);

	using namespace chain;
	printf("frame chain::scramble %d-%d inlined\n", scramble_first, scramble_last);
	printf("frame chain::blender<unsigned_long>::blend %d-%d inlined\n", blender<uint64_t>::call,
		blender<uint64_t>::call);
	printf("frame chain::one_round %d-%d inlined\n", round_call, round_call);
	printf("frame chain::descend %d-%d real\n", descend_inner, descend_inner);
	for (int i = 0; i < depth; i++)
		printf("frame chain::descend %d-%d real\n", descend_outer, descend_outer);
	printf("ready\n");
	fflush(stdout);
	while (time(nullptr) < end)
		for (int i = 0; i < 20000; i++)
			sink = descend(sink, depth);
	return 0;
}
