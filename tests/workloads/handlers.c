/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handlers: returns from signal handlers all the time; calls the kernel from a function whose last
 * instruction is the system call, so that the saved address is that of the next function; spends
 * time in a handler that interrupted a function's first instruction; and in vfork(), which holds
 * its return address in a register while the child uses the stack.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { BLOCK_BYTES = 64 << 20, HANDLED = 2000, VFORKS = 50, TICK_US = 5000, FAULT_SPIN = 1000000 };

static sigjmp_buf out;
static char *block;

/* getrandom(TO, BYTES, 0). Does not return: a signal handler jumps out of it. */
void calls_last(char *to, size_t bytes);
void behind(void);
void faults_first(void);

#if defined(__x86_64__)
__asm__(".text\n.globl calls_last\n.type calls_last, @function\ncalls_last:\n.cfi_startproc\n"
	"sub $24, %rsp\n.cfi_adjust_cfa_offset 24\nxor %edx, %edx\nmov $318, %eax\nsyscall\n"
	".cfi_endproc\n.size calls_last, . - calls_last\n"
	".globl behind\n.type behind, @function\nbehind:\n.cfi_startproc\nret\n.cfi_endproc\n"
	".size behind, . - behind\n"
	".globl faults_first\n.type faults_first, @function\nfaults_first:\n.cfi_startproc\n"
	"ud2\nret\n.cfi_endproc\n.size faults_first, . - faults_first\n");
enum { FAULT_BYTES = 2 };
#define PC_OF(context) ((context)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
__asm__(".text\n.globl calls_last\n.type calls_last, %function\ncalls_last:\n.cfi_startproc\n"
	"stp x29, x30, [sp, -16]!\n.cfi_adjust_cfa_offset 16\n.cfi_rel_offset 29, "
	"0\n.cfi_rel_offset 30, 8\n"
	"mov x2, 0\nmov x8, 278\nsvc 0\n.cfi_endproc\n.size calls_last, . - calls_last\n"
	".globl behind\n.type behind, %function\nbehind:\n.cfi_startproc\nret\n.cfi_endproc\n"
	".size behind, . - behind\n"
	".globl faults_first\n.type faults_first, %function\nfaults_first:\n.cfi_startproc\n"
	"udf 0\nret\n.cfi_endproc\n.size faults_first, . - faults_first\n");
enum { FAULT_BYTES = 4 };
#define PC_OF(context) ((context)->uc_mcontext.pc)
#endif

static void on_user_signal(int number)
{
	(void)number;
}

static void on_tick(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	for (volatile int i = 0; i < FAULT_SPIN; i++)
		;
	PC_OF((ucontext_t *)context) += FAULT_BYTES;
}

static void set_tick(int us)
{
	struct itimerval timer = { .it_value.tv_usec = us };

	setitimer(ITIMER_REAL, &timer, NULL);
}

__attribute__((noinline)) static void in_handled(pid_t self)
{
	for (int i = 0; i < HANDLED; i++)
		kill(self, SIGUSR1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void in_last(void)
{
	if (!sigsetjmp(out, 1)) {
		set_tick(TICK_US);
		calls_last(block, BLOCK_BYTES);
		behind();
	}
	__asm__ volatile("");
}

__attribute__((noinline)) static void in_first(void)
{
	faults_first();
	__asm__ volatile("");
}

__attribute__((noinline)) static void in_vfork(void)
{
	for (int i = 0; i < VFORKS; i++) {
		pid_t child = vfork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	__asm__ volatile("");
}

int main(void)
{
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	block = malloc(BLOCK_BYTES);
	signal(SIGUSR1, on_user_signal);
	signal(SIGALRM, on_tick);
	sigaction(SIGILL, &fault, NULL);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		in_handled(getpid());
		in_last();
		in_first();
		in_vfork();
	}
}
