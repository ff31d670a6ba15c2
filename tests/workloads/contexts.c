/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contexts SECONDS: coroutines in turn, on stacks of their own: two that makecontext() made, and
 * one that begins as those of Boost and PHP do, with what make_fcontext() leaves on the stack. Each
 * spins below in_context() or in_fcontext(). Prints `kind NAME` for each, then `ready`. x86_64.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

enum { STACK = 1 << 16, SOME = 200000 };

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static ucontext_t root, contexts[2];
static volatile uint64_t sink;

NOINLINE static void spin_some(void)
{
	for (int i = 0; i < SOME; i++)
		sink = sink * 31 + (uint64_t)i;
	KEEP_FRAME();
}

NOINLINE static void in_context(void)
{
	spin_some();
	KEEP_FRAME();
}

/* Its stack has the address of `root`, where it would go on at its end, above the first frame. */
NOINLINE static void context_main(int number)
{
	for (;;) {
		in_context();
		swapcontext(&contexts[number], &root);
	}
}

/*
 * enter_fcontext() calls FUNCTION on the stack that ends at TOP, and comes back when that calls
 * leave_fcontext(). It has no call frame information, nor has what lies below FUNCTION.
 */
void enter_fcontext(void (*function)(void), void *top);
void leave_fcontext(void);
__asm__(".text\n"
	".type enter_fcontext, @function\n"
	"enter_fcontext:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, back(%rip)\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %rsp\n"
	"	lea finish(%rip), %rbp\n"
	"	lea trampoline(%rip), %rcx\n"
	"	jmp *%rcx\n"
	"trampoline:\n"
	"	push %rbp\n"
	"	jmp *%rbx\n"
	"finish:\n"
	"	xor %rdi, %rdi\n"
	"	call _exit@PLT\n"
	"	hlt\n"
	".size enter_fcontext, . - enter_fcontext\n"
	".type leave_fcontext, @function\n"
	"leave_fcontext:\n"
	"	mov back(%rip), %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size leave_fcontext, . - leave_fcontext\n"
	".local back\n"
	".comm back, 8, 8\n");

NOINLINE static void in_fcontext(void)
{
	spin_some();
	sink++; /* or the compiler makes it one with in_context() */
	KEEP_FRAME();
}

NOINLINE static void fcontext_main(void)
{
	in_fcontext();
	leave_fcontext();
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	const time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 10);
	static _Alignas(16) char stacks[3][STACK];

	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = STACK;
		contexts[i].uc_link = &root;
		makecontext(&contexts[i], (void (*)(void))context_main, 1, i);
	}
	puts("kind context\nkind fcontext\nready");
	fflush(stdout);
	while (time(NULL) < end) {
		for (int i = 0; i < 2; i++)
			swapcontext(&root, &contexts[i]);
		enter_fcontext(fcontext_main, stacks[2] + STACK);
	}
	return 0;
}
