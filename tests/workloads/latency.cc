// SPDX-License-Identifier: Apache-2.0
// As latency.c, with exceptions: functions that throw, that are unwound, and that catch.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace {
struct truth {
	uint64_t calls, inner_ns, outer_ns, abandoned;
};

truth catches_truth, passes_truth;

uint64_t now_ns()
{
	return std::chrono::duration_cast<std::chrono::nanoseconds>(
		std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

// Times a scope, also one that is left by an exception.
struct timed {
	uint64_t *to, began = now_ns();
	explicit timed(uint64_t *to_) : to(to_) {}
	~timed() { *to += now_ns() - began; }
};
} // namespace

extern "C" __attribute__((noinline)) int passes(int depth, int throws)
{
	uint64_t began = now_ns();

	if (depth == 0 && throws)
		throw depth;
	int result = depth ? passes(depth - 1, throws) + 1 : 1;
	passes_truth.calls++;
	passes_truth.inner_ns += now_ns() - began;
	return result;
}

extern "C" __attribute__((noinline)) int catches(int depth, int throws)
{
	timed inner(&catches_truth.inner_ns);

	try {
		return passes(depth, throws);
	} catch (int) {
		passes_truth.abandoned += depth + 1;
		return 0;
	}
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 1000;
	uint64_t began = now_ns();

	for (int i = 0; i < times; i++) {
		timed outer(&catches_truth.outer_ns);

		catches(i % 20, i % 3 == 0);
		catches_truth.calls++;
	}
	passes_truth.outer_ns = (now_ns() - began) * 20;
	for (auto [name, t] : {std::pair("catches", catches_truth), std::pair("passes", passes_truth)})
		printf("%s %llu %llu %llu %llu\n", name, (unsigned long long)t.calls,
			(unsigned long long)t.inner_ns, (unsigned long long)t.outer_ns,
			(unsigned long long)t.abandoned);
}
