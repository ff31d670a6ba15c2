// SPDX-License-Identifier: Apache-2.0
// Types of C++ that their users take for text, and parts of structs, as a trace shows them.
#include <cstdio>
#include <string>
#include <string_view>

enum class wide : unsigned { SMALL = 1, LARGE = 0xfffffff0 };
enum sign { MINUS = -4, PLUS = 3 };
enum flags { FIRST = 1, SECOND = 2 };

struct bits {
	unsigned a : 3;
	int b : 5;
	bool c : 1;
	unsigned long d : 40;
};

struct arrays {
	int numbers[3];
	float floats[2];
	unsigned char raw[20];
	bits inner;
	char name[8];
};

struct base {
	int first;
	static int none;
};

struct middle : base {
	long second;
};

struct other {
	std::string text;
	virtual ~other() = default;
};

struct derived : other, middle {
	int third;
};

struct words {
	int a;
	char b[4];
};

struct mixed {
	long a;
	double unseen;
};

struct large {
	long a, b;
	char name[8];
};

static volatile int sink;

static const char *text(std::string_view s)
{
	static std::string kept[8];
	static int next;
	std::string &result = kept[next++ % 8];
	result = "\"" + std::string(s.substr(0, 64)) + "\"";
	if (s.size() > 64)
		result += "...(" + std::to_string(s.size()) + " bytes)";
	return result.c_str();
}

KEEP void strings(const std::string &r, std::string_view w, int n, std::string *p, long last)
{
	printf("call strings(r=%s, w=%s, n=%d, p=%s, last=%ld)\n", text(r), text(w), n, text(*p),
		last);
	printf("left strings: \n");
	sink = sink + 1;
}

KEEP void values(std::string v)
{
	printf("call values(v=%s)\n", text(v));
	printf("left values: \n");
	sink = sink + 1;
}

KEEP int kinds(wide w, sign s, flags f, char c, bool b, int last)
{
	printf("call kinds(w=%s, s=%s, f=%s, c=%s, b=%s, last=%d)\n",
		w == wide::LARGE ? "LARGE" : "7", s == MINUS ? "MINUS" : "PLUS",
		f == SECOND ? "SECOND" : "3",
		c == '\n'  ? "'\\n'"
		: c == 'x' ? "'x'"
			   : "'\\xff'",
		b ? "true" : "false", last);
	printf("left kinds: %d\n", last + 1);
	return last + 1;
}

KEEP void parts(const arrays *a, const bits &b)
{
	printf("call parts(a=&{numbers=[%d, %d, %d], floats=[%g, %g], raw=[%d, %d, %d, %d, %d, %d, "
	       "%d, %d, ...(20)], "
	       "inner={a=%u, b=%d, c=%s, d=%lu}, name=\"%s\"}, b=&{a=%u, b=%d, c=%s, d=%lu})\n",
		a->numbers[0], a->numbers[1], a->numbers[2], a->floats[0], a->floats[1], a->raw[0],
		a->raw[1], a->raw[2], a->raw[3], a->raw[4], a->raw[5], a->raw[6], a->raw[7],
		a->inner.a, a->inner.b, a->inner.c ? "true" : "false", (unsigned long)a->inner.d,
		a->name, b.a, b.b, b.c ? "true" : "false", (unsigned long)b.d);
	printf("left parts: \n");
	sink = sink + 1;
}

KEEP void bases(const derived *d, const middle &m)
{
	printf("call bases(d=&{text=%s, first=%d, second=%ld, third=%d}, m=&{first=%d, second=%ld})\n",
		text(d->text), d->first, d->second, d->third, m.first, m.second);
	printf("left bases: \n");
	sink = sink + 1;
}

KEEP std::string_view views(sign s)
{
	printf("call views(s=%s)\n", s == MINUS ? "MINUS" : "PLUS");
	printf("left views: \"view\"\n");
	sink = sink + 1;
	return "view";
}

KEEP std::string made(int n, long last)
{
	std::string result(n, 'm');
	printf("call made(n=%d, last=%ld)\n", n, last);
	printf("left made: %s\n", text(result));
	return result;
}

KEEP large larger(int n, double unseen, int last)
{
	printf("call larger(n=%d, unseen=?, last=%d)\n", n, last);
	printf("left larger: {a=%d, b=%d, name=\"large\"}\n", n, last);
	sink = sink + (unseen > 1);
	return { n, last, "large" };
}

KEEP mixed mixes(long n)
{
	printf("call mixes(n=%ld)\n", n);
	printf("left mixes: {a=%ld, unseen=?}\n", n);
	return { n, 1.5 };
}

KEEP int structs(words w, mixed m, std::string s, large l, int last)
{
	printf("call structs(w={a=%d, b=\"%.4s\"}, m={a=%ld, unseen=?}, s=%s, "
	       "l={a=%ld, b=%ld, name=\"%s\"}, last=%d)\n",
		w.a, w.b, m.a, text(s), l.a, l.b, l.name, last);
	printf("left structs: %d\n", last);
	sink = sink + (m.unseen > 1);
	return last;
}

/* More than there are registers for. */
KEEP int stacked(int a, int b, int c, int d, int e, int f, long g, large l, std::string s, long last)
{
	printf("call stacked(a=%d, b=%d, c=%d, d=%d, e=%d, f=%d, g=%ld, "
	       "l={a=%ld, b=%ld, name=\"%s\"}, s=%s, last=%ld)\n",
		a, b, c, d, e, f, g, l.a, l.b, l.name, text(s), last);
	printf("left stacked: %d\n", a);
	return a;
}

static void calls()
{
	std::string owned = "owned", large(300, 'x');
	arrays a = { { 1, -2, 3 }, { 1.5, -2 }, { 1, 2, 3, 4, 5, 6, 7, 255 },
		{ 5, -3, true, 0x123456789a }, "name" };
	bits b = { 7, 15, false, 1 };
	derived d;
	d.text = "in a base";
	d.first = 1;
	d.second = -2;
	d.third = 3;
	strings(owned, "a view", 7, &large, -8);
	strings("", "", -7, &owned, 8);
	strings("22 bytes are the most.", "", -7, &owned, 8);
	strings("23 bytes are one more..", "", -7, &owned, 8);
	values("by value");
	values(large);
	kinds(wide::LARGE, MINUS, flags(3), 'x', true, 9);
	kinds(wide(7), PLUS, SECOND, '\n', false, 9);
	kinds(wide(7), PLUS, SECOND, '\xff', false, 9);
	parts(&a, b);
	bases(&d, d);
	views(MINUS);
	made(3, 4);
	made(65, -4);
	larger(5, 2.5, -6);
	mixes(-7);
	structs({ 1, "abc" }, { -2, 2.5 }, "text", { 3, -4, "name" }, 5);
	stacked(1, 2, 3, 4, 5, -6, 7, { 8, 9, "stack" }, "text", -10);
}

int main()
{
	calls();
	calls();
}
