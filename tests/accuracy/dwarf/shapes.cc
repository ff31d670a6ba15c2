/* SPDX-License-Identifier: Apache-2.0 */
/* Templates, lambdas, anonymous namespaces, local classes, constructors, exceptions. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace outer {
namespace {
struct Hidden {
	int value;
	__attribute__((noinline)) int get(int x) const
	{
		auto step = [&](int y) { return y * value + x; };
		int sum = 0;
		for (int i = 0; i < x; i++)
			sum += step(i);
		return sum;
	}
};
template <class T> inline T twice(T x)
{
	return x + x + static_cast<T>(rand());
}
} // namespace

struct Shape {
	explicit Shape(int size) : size_(size) { if (size < 0) throw std::runtime_error("size"); }
	virtual ~Shape();
	virtual int area() const = 0;
	int size_;
};
Shape::~Shape() { puts("gone"); }

struct Square : Shape {
	using Shape::Shape;
	int area() const override { return size_ * size_; }
};

int run(std::vector<int> &values)
{
	Hidden hidden{ static_cast<int>(values.size()) };
	std::sort(values.begin(), values.end(), [](int a, int b) { return a > b; });
	int sum = 0;
	for (int value : values)
		sum += twice(value) + hidden.get(value & 3);
	return sum;
}
} // namespace outer

extern "C" int plain(int x)
{
	struct Local {
		__attribute__((noinline)) static int f(int z) { return z * rand(); }
	};
	return Local::f(x) + Local::f(x + 1);
}

int main(int argc, char **)
{
	std::map<std::string, int> names;
	std::vector<int> values;
	for (int i = 0; i < argc * 100; i++) {
		names[std::to_string(i)] = i;
		values.push_back(rand());
	}
	auto total = [&](int k) {
		for (auto &entry : names)
			k += entry.second;
		return k;
	};
	try {
		std::unique_ptr<outer::Shape> shape(new outer::Square(argc - 2));
		return outer::run(values) + total(shape->area()) + plain(argc);
	} catch (const std::exception &e) {
		return static_cast<int>(names.size());
	}
}
