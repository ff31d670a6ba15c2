/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that are hard to walk, built without frame pointers: main or thread_main, then in_KIND,
 * then its callees, in turn, for argv[1] seconds. Prints `kind NAME` for each, then `ready`.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { BLOCK = 1 << 16, ITEMS = 5000, DEPTH = 200, SLICE_NS = 20000000, SIGNAL_US = 2000 };

#define NOINLINE __attribute__((noinline, noclone))
/* Keeps the last call from becoming a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static char from[BLOCK], to[BLOCK];
static volatile uint64_t sink;
static pthread_barrier_t started;
static long seconds;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

NOINLINE static void spin_some(void)
{
	for (int i = 0; i < 20000; i++)
		sink = sink * 31 + (uint64_t)i;
	KEEP_FRAME();
}

NOINLINE static int compare(const void *left, const void *right)
{
	int a = *(const int *)left, b = *(const int *)right;

	for (int i = 0; i < 10; i++)
		sink += (uint64_t)i;
	return (a > b) - (a < b);
}

NOINLINE static void in_memcpy(void)
{
	for (int i = 0; i < 100; i++) {
		memcpy(to, from, BLOCK);
		KEEP_FRAME();
	}
}

NOINLINE static void in_qsort(void)
{
	static __thread int items[ITEMS];

	for (int i = 0; i < ITEMS; i++)
		items[i] = (int)((unsigned int)i * 2654435761U);
	qsort(items, ITEMS, sizeof(items[0]), compare);
	KEEP_FRAME();
}

NOINLINE static uint64_t use_block(volatile char *block, size_t size)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += (uint64_t)(block[i] = (char)i);
	KEEP_FRAME();
	return sum;
}

NOINLINE static void alloca_some(size_t size)
{
	sink += use_block(__builtin_alloca(size), size);
	KEEP_FRAME();
}

NOINLINE static void in_alloca(void)
{
	for (size_t size = 64; size < 8192; size += 64)
		alloca_some(size);
	KEEP_FRAME();
}

/* The stack is realigned for the variable, so the CFA has another rule. */
NOINLINE static void in_aligned(void)
{
	_Alignas(64) char block[512];

	for (int i = 0; i < 100; i++)
		sink += use_block(block, sizeof(block));
	KEEP_FRAME();
}

#ifdef __x86_64__
/*
 * A leaf whose table finds the frame by a register that calls do not keep, as OpenSSL's has, and
 * then realigns the stack as GCC does: its table has the frame pointer saved where rbp points, and
 * says so still when that is the caller's again.
 */
void spin_by_register(long turns);
__asm__(".text\n"
	".type spin_by_register, @function\n"
	"spin_by_register:\n"
	".cfi_startproc\n"
	"	leaq 8(%rsp), %r10\n"
	".cfi_def_cfa r10, 0\n"
	"	andq $-64, %rsp\n"
	"	pushq -8(%r10)\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	".cfi_escape 0x10, 6, 2, 0x76, 0\n" /* rbp is at rbp + 0 */
	"	movq %rdi, %rsi\n"
	"1:	decq %rsi\n"
	"	jnz 1b\n"
	"	popq %rbp\n"
	"2:	decq %rdi\n"
	"	jnz 2b\n"
	"	leaq -8(%r10), %rsp\n"
	".cfi_def_cfa rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size spin_by_register, . - spin_by_register\n");

/* Its frame is found by rbp. */
NOINLINE static void spin_beside(size_t size)
{
	sink += use_block(__builtin_alloca(size), size);
	spin_by_register(20000);
	KEEP_FRAME();
}

NOINLINE static void in_register(void)
{
	for (int i = 0; i < 10; i++)
		spin_beside(64);
	KEEP_FRAME();
}

/* The frame of the caller is found by such a register, which its callee leaves alone. */
void call_by_register(long turns);
__asm__(".text\n"
	".type spin_in_helper, @function\n"
	"spin_in_helper:\n"
	".cfi_startproc\n"
	"1:	decq %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	".cfi_endproc\n"
	".size spin_in_helper, . - spin_in_helper\n"
	".type call_by_register, @function\n"
	"call_by_register:\n"
	".cfi_startproc\n"
	"	movq %rsp, %rax\n"
	".cfi_def_cfa_register rax\n"
	"	andq $-64, %rsp\n"
	"	subq $512, %rsp\n"
	"	call spin_in_helper\n"
	"	movq %rax, %rsp\n"
	".cfi_def_cfa_register rsp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size call_by_register, . - call_by_register\n");

NOINLINE static void in_scratch(void)
{
	for (int i = 0; i < 10; i++)
		call_by_register(20000);
	KEEP_FRAME();
}
#endif

NOINLINE static void in_vdso(void)
{
	for (int i = 0; i < 5000; i++)
		sink += (uint64_t)now_ns();
	KEEP_FRAME();
}

NOINLINE static int descend(int depth)
{
	int below;

	if (!depth) {
		spin_some();
		return 1;
	}
	below = descend(depth - 1);
	KEEP_FRAME();
	return below + 1;
}

NOINLINE static void in_recursion(void)
{
	for (int i = 0; i < 10; i++)
		sink += (uint64_t)descend(DEPTH);
	KEEP_FRAME();
}

NOINLINE static void on_signal(int number)
{
	(void)number;
	for (int i = 0; i < 20; i++)
		spin_some();
	KEEP_FRAME();
}

NOINLINE static void in_interrupted(void)
{
	const struct itimerval often = { { 0, SIGNAL_US }, { 0, SIGNAL_US } }, never = { 0 };
	int64_t end = now_ns() + SLICE_NS;

	setitimer(ITIMER_REAL, &often, NULL);
	while (now_ns() < end)
		spin_some();
	setitimer(ITIMER_REAL, &never, NULL);
	KEEP_FRAME();
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = { { "memcpy", in_memcpy }, { "qsort", in_qsort }, { "alloca", in_alloca },
	{ "aligned", in_aligned },
#ifdef __x86_64__
	{ "register", in_register }, { "scratch", in_scratch },
#endif
	{ "vdso", in_vdso }, { "recursion", in_recursion }, { "interrupted", in_interrupted } };

NOINLINE static void run_all(size_t count)
{
	time_t end = time(NULL) + seconds;

	for (size_t i = 0; time(NULL) < end; i = (i + 1) % count) {
		int64_t slice = now_ns() + SLICE_NS;

		while (now_ns() < slice)
			kinds[i].run();
	}
	KEEP_FRAME();
}

NOINLINE static void *thread_main(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&started);
	/* Not the last kind: signals go to the main thread. */
	run_all(sizeof(kinds) / sizeof(kinds[0]) - 1);
	return NULL;
}

int main(int argc, char **argv)
{
	sigset_t alarm;
	pthread_t thread;

	seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
	signal(SIGALRM, on_signal);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_barrier_init(&started, NULL, 2);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	if (pthread_create(&thread, NULL, thread_main, NULL))
		return 1;
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	pthread_barrier_wait(&started);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		printf("kind %s\n", kinds[i].name);
	puts("ready");
	fflush(stdout);
	run_all(sizeof(kinds) / sizeof(kinds[0]));
	pthread_join(thread, NULL);
	return 0;
}
