/* SPDX-License-Identifier: Apache-2.0 */
/*
 * untabled SECONDS: functions in assembly without call frame information, each of which spins below
 * a caller of its own: `in_NAME` calls `asm_NAME`. Between them the stack has what the function
 * pushes, or room in which earlier calls have left their return addresses. Prints `ready`.
 * With -DOPAQUE what they do to the stack pointer cannot be told from their instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SOME = 4000000 };

#define NOINLINE __attribute__((noinline, noclone))
#define SPIN "1: dec %rdi\n jnz 1b\n"
#ifdef OPAQUE
#define BEGIN "xchg %rsp, %rcx\n xchg %rsp, %rcx\n"
#else
#define BEGIN
#endif
#define FUNCTION(name, before, after)                                                           \
	__asm__(".text\n.type asm_" name ", @function\nasm_" name ":\n" BEGIN before SPIN after \
		"ret\n"                                                                         \
		".size asm_" name ", . - asm_" name "\n")

/* Nothing on the stack; registers, one of them the frame pointer; a frame of the usual form. */
FUNCTION("bare", "", "");
FUNCTION("pushes", "push %rbx\n push %rbp\n push %r12\n push %r13\n mov $8, %ebp\n",
	"pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n");
FUNCTION("framed", "push %rbp\n mov %rsp, %rbp\n sub $64, %rsp\n", "leave\n");
FUNCTION("pointer", "push %r12\n push %r13\n", "pop %r13\n pop %r12\n");
FUNCTION("stale", "sub $904, %rsp\n", "add $904, %rsp\n");
FUNCTION("stale_pointer", "sub $904, %rsp\n", "add $904, %rsp\n");
/* Has more room than is searched. */
FUNCTION("large", "sub $4008, %rsp\n", "add $4008, %rsp\n");
/* Called by a function that has no table either. */
FUNCTION("inner", "", "");
__asm__(".text\n.type asm_outer, @function\nasm_outer:\n" BEGIN
	"push %rbx\n call asm_inner\n pop %rbx\n ret\n"
	".size asm_outer, . - asm_outer\n");

extern void asm_bare(unsigned long n), asm_pushes(unsigned long n), asm_framed(unsigned long n),
	asm_pointer(unsigned long n), asm_stale(unsigned long n),
	asm_stale_pointer(unsigned long n), asm_large(unsigned long n), asm_outer(unsigned long n);

static void (*volatile by_pointer)(unsigned long n);
static volatile unsigned long sink;

/* ---- what earlier calls leave --------------------------------------------------------------- */

typedef unsigned long leave_fn(unsigned long depth);
static leave_fn *volatile leave_pointer;

static NOINLINE unsigned long leaves_last(unsigned long depth)
{
	volatile unsigned long here[2] = { depth, depth };

	return here[0] + here[1];
}

/* A chain of frames whose calls are direct and indirect in turn. */
static NOINLINE unsigned long leaves_some(unsigned long depth)
{
	volatile unsigned long here[3] = { depth };

	if (!depth)
		return leaves_last(depth) + here[1];
	if (depth % 2)
		return leaves_some(depth - 1) + here[0];
	return leave_pointer(depth - 1) + here[0];
}

/* ---- callers -------------------------------------------------------------------------------- */

#define CALLER(name)                                    \
	static NOINLINE void in_##name(unsigned long n) \
	{                                               \
		sink += n;                              \
		asm_##name(n);                          \
		sink += n;                              \
	}
#define LEAVING_CALLER(name, call)                                 \
	static NOINLINE void in_##name(unsigned long n)            \
	{                                                          \
		for (int i = 0; i < 16; i++) {                     \
			sink += leaves_some(2 + (unsigned long)i); \
			call(n / 16);                              \
		}                                                  \
		sink += n;                                         \
	}
CALLER(bare)
CALLER(pushes)
CALLER(framed)
CALLER(outer)
static NOINLINE void in_pointer(unsigned long n)
{
	by_pointer = asm_pointer;
	by_pointer(n);
	sink += n;
}
LEAVING_CALLER(stale, asm_stale)
LEAVING_CALLER(large, asm_large)
static NOINLINE void in_stale_pointer(unsigned long n)
{
	for (int i = 0; i < 16; i++) {
		sink += leaves_some(2 + (unsigned long)i);
		by_pointer = asm_stale_pointer;
		by_pointer(n / 16);
	}
	sink += n;
}

int main(int argc, char **argv)
{
	const time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 60);

	leave_pointer = leaves_some;
	puts("ready");
	fflush(stdout);
	while (time(NULL) < end) {
		in_bare(SOME);
		in_pushes(SOME);
		in_framed(SOME);
		in_pointer(SOME);
		in_stale(SOME);
		in_stale_pointer(SOME);
		in_large(SOME);
		in_outer(SOME);
	}
	return 0;
}
