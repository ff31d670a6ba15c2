/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that moves without a record by the kernel. `moved ONE TWO` runs the work of library ONE,
 * moves TWO's code over it and then elsewhere (mremap), and has a process that shares its memory
 * run first one library and then the other in the place of ONE. `moved ONE TWO only` runs only the
 * work of TWO. The name of the thread says what runs; each part uses some CPU time.
 *
 * With -DWORK=name it is such a library; FRAME is the size of its function's frame in bytes.
 */
#ifdef WORK
void WORK(volatile long *x)
{
	volatile char room[FRAME];

	for (int i = 0; i < 100000; i++)
		room[i % FRAME] = (char)(*x += i);
}
#else
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

typedef void work_fn(volatile long *x);

static volatile long sum;
static work_fn *volatile shared_work;
static const char *volatile shared_name;
static volatile int shared_done; /* number of completed phases */
enum { STACK_BYTES = 1 << 20, ROOM_BYTES = 1 << 20 };
static const double SECONDS = 0.4;

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static int run(const char *name, work_fn *work)
{
	double end = cpu_now() + SECONDS;

	prctl(PR_SET_NAME, name);
	while (cpu_now() < end)
		work(&sum);
	prctl(PR_SET_NAME, "between");
	return (int)sum;
}

static void must(int right, const char *what)
{
	if (right)
		return;
	perror(what);
	_exit(1);
}

static work_fn *load(const char *path, const char *name, void **ret_handle)
{
	*ret_handle = dlopen(path, RTLD_NOW);
	must(*ret_handle != NULL, path);
	return (work_fn *)(uintptr_t)dlsym(*ret_handle, name);
}

/* Where the code of WORK is mapped. */
static void find_code(work_fn *work, unsigned long *start, unsigned long *end, unsigned long *off)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];

	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", start, end, off) == 3 &&
			(uintptr_t)work >= *start && (uintptr_t)work < *end) {
			fclose(maps);
			return;
		}
	}
	must(0, "maps");
}

static void *move(void *from, size_t bytes, void *to)
{
	void *moved = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	must(moved == to, "mremap");
	return moved;
}

static void move_about(const char *one, const char *two)
{
	unsigned long start, end, off, two_start, two_end;
	void *handle, *code, *room;
	work_fn *one_work = load(one, "one_work", &handle);
	work_fn *two_work = load(two, "two_work", &handle);
	size_t bytes, entry;

	find_code(one_work, &start, &end, &off);
	find_code(two_work, &two_start, &two_end, &off);
	bytes = two_end - two_start;
	entry = (uintptr_t)two_work - two_start;
	run("one-at-home", one_work);
	code = mmap(
		NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(two, O_RDONLY), (off_t)off);
	must(code != MAP_FAILED, "mmap");
	code = move(code, bytes, (void *)start);
	run("two-over-one", (work_fn *)((uintptr_t)code + entry));
	room = mmap(NULL, ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code = move(code, bytes, (char *)room + ROOM_BYTES / 2);
	run("two-elsewhere", (work_fn *)((uintptr_t)code + entry));
}

static int share(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		work_fn *work = shared_work;

		if (!work) {
			sched_yield();
			continue;
		}
		run(shared_name, work);
		shared_work = NULL;
		shared_done++;
	}
}

static void have_shared(const char *name, work_fn *work, int phase)
{
	shared_name = name;
	shared_work = work;
	while (shared_done < phase)
		usleep(1000);
}

static void share_memory(const char *one, const char *two)
{
	char *stack = malloc(STACK_BYTES);
	void *handle;
	work_fn *work = load(one, "one_work", &handle);
	int pid = clone(
		share, stack + STACK_BYTES, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);

	must(pid > 0, "clone");
	have_shared("shares-one", work, 1);
	dlclose(handle);
	have_shared("shares-two", load(two, "two_work", &handle), 2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	void *handle;

	if (argc > 3)
		return run("two-alone", load(argv[2], "two_work", &handle)) & 0;
	if (fork() == 0) {
		share_memory(argv[1], argv[2]);
		_exit(0);
	}
	move_about(argv[1], argv[2]);
	wait(NULL);
	/* exit() would unload libraries whose code has moved away. */
	_exit(0);
}
#endif
