/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that print their arguments and results as a trace shows them. Compiled as C and as C++.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum colour { RED, GREEN = -4 };

struct point {
	int x, y;
};

struct person {
	const char *name;
	int age;
	struct point at;
	struct person *next;
	char code[8];
	unsigned int flag : 1;
};

static volatile int sink;

#define KEEP __attribute__((noinline, noipa))

KEEP int ints(signed char a, uint64_t b, int c, bool d, short e, uint8_t f)
{
	printf("call ints(a=%d, b=%lu, c=%d, d=%s, e=%d, f=%u)\n", a, b, c, d ? "true" : "false", e,
		f);
	printf("left ints: %d\n", a + c);
	return a + c;
}

KEEP const char *texts(const char *s, char *none, enum colour colour)
{
	printf("call texts(s=\"%s\", none=%s, colour=%s)\n", s, none ? none : "NULL",
		colour == GREEN ? "GREEN" : "RED");
	printf("left texts: \"%s\"\n", s + 1);
	return s + 1;
}

KEEP struct person *people(struct person *p, const struct point *q, double unseen, long last)
{
	printf("call people(p=&{name=\"%s\", age=%d, at={x=%d, y=%d}, next=NULL, code=\"%s\", "
	       "flag=%u}, ",
		p->name, p->age, p->at.x, p->at.y, p->code, p->flag);
	printf("q=%s, unseen=?, last=%ld)\n", q ? "&{x=7, y=8}" : "NULL", last);
	printf("left people: &{name=\"%s\", age=%d, at={x=%d, y=%d}, next=NULL, code=\"%s\", "
	       "flag=%u}\n",
		p->name, p->age, p->at.x, p->at.y, p->code, p->flag);
	sink = sink + (unseen > 1);
	return p;
}

__attribute__((cold, noreturn, noinline)) static void give_up(int number)
{
	printf("gave up at %d\n", number);
	exit(1);
}

/* An optimizing gcc keeps what gives up in a part of its own, away from the rest. */
KEEP int parts(int number, const char *s)
{
	printf("call parts(number=%d, s=\"%s\")\n", number, s);
	if (number < 0)
		give_up(number * 3 + s[0]);
	printf("left parts: %d\n", number + 1);
	return number + 1;
}

KEEP void nothing(volatile void *address)
{
	printf("call nothing(address=%p)\n", (void *)address);
	printf("left nothing: \n");
	sink = sink + 1;
}

/* Nobody uses its result, which an optimizer therefore leaves out. */
__attribute__((noinline)) static long dropped(int a, int b)
{
	printf("call dropped(a=%d, b=%d)\n", a, b);
	printf("left dropped: %ld\n", a * 1000L + b);
	sink = sink + 1;
	return a * 1000L + b;
}

KEEP void look(const int *address)
{
	sink = sink + *address;
}

/* SAME always is, so an optimizer may not pass it, but both need an address. */
__attribute__((noinline)) static int addressed(int same, int other)
{
	printf("call addressed(same=%d, other=%d)\n", same, other);
	look(&same);
	look(&other);
	printf("left addressed: %d\n", other);
	return other;
}

static void calls(void)
{
	struct person p = { "Alice", -30, { 1, -2 }, NULL, "code", 1 };
	struct point q = { 7, 8 };
	char text[] = "a text";

	ints(-3, UINT64_C(1) << 63, 77, true, -5, 200);
	ints(3, 4, -77, false, 5, 0);
	texts(text, NULL, GREEN);
	people(&p, &q, 1.5, -9);
	people(&p, NULL, 1.5, 9);
	parts(41, text);
	nothing(&sink);
	dropped(sink & 1, 7);
	dropped(2, sink & 3);
	sink = sink + addressed(5, 100) - addressed(5, 200);
}

/* The second round counts: by then all that is read has been in memory. */
int main(void)
{
	calls();
	calls();
	return 0;
}
