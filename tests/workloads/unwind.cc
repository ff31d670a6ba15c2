/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ without frame pointers: main, in_sort or in_throw, and the standard library's frames below
 * them, for argv[1] seconds. Prints `kind NAME` for each, then `ready`.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

static volatile unsigned long sink;

struct guard {
	unsigned long value;
	~guard() { sink = sink + value; }
};

extern "C" {

__attribute__((noinline)) void in_sort()
{
	std::vector<std::string> items;

	for (unsigned int i = 0; i < 2000; i++)
		items.push_back(std::to_string(i * 2654435761U));
	std::sort(items.begin(), items.end());
	std::stable_sort(items.begin(), items.end(),
		[](const std::string &a, const std::string &b) { return b < a; });
	sink = sink + items[0].size();
}

__attribute__((noinline)) void throw_from(unsigned long depth)
{
	guard g{depth};

	if (!depth)
		throw std::string("deep");
	throw_from(depth - 1);
	sink = sink + g.value;
}

__attribute__((noinline)) void in_throw()
{
	for (int i = 0; i < 100; i++) {
		try {
			throw_from(10);
		} catch (const std::string &text) {
			sink = sink + text.size();
		}
	}
}
}

int main(int argc, char **argv)
{
	time_t end = time(nullptr) + (argc > 1 ? strtol(argv[1], nullptr, 10) : 10);

	std::puts("kind sort\nkind throw\nready");
	std::fflush(stdout);
	while (time(nullptr) < end) {
		in_sort();
		in_throw();
	}
}
