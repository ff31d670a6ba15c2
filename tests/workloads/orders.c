/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, execs and a vfork in unusual orders. Each phase uses some CPU time in a function of its
 * own, in a thread with the name of that function.
 *
 *	orders all LIBRARY    a thread other than the main one executes the program again, a
 *	                      vfork child works before it ends, then as below
 *	orders last LIBRARY   the main thread ends; another one works on, opens LIBRARY and works
 *	                      there. Prints `ready` once the main thread is gone.
 *	orders on LIBRARY     the same, and goes on in LIBRARY until it is killed
 *
 * With -DWORK=name it is such a library.
 */
#include <time.h>

static const double PHASE_SECONDS = 0.4;

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define PHASE(name_)                                         \
	__attribute__((noinline)) void name_(double seconds) \
	{                                                    \
		double end = cpu_now() + seconds;            \
		volatile unsigned long x = 0;                \
                                                             \
		do {                                         \
			for (int i = 0; i < 20000; i++)      \
				x += (unsigned long)i;       \
		} while (cpu_now() < end);                   \
	}

#ifdef WORK
PHASE(WORK)
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

PHASE(before_exec)
PHASE(after_exec)
PHASE(vfork_child)
PHASE(outlives_main)

static char **arguments;

static void phase(const char *name, void (*work)(double))
{
	prctl(PR_SET_NAME, name);
	work(PHASE_SECONDS);
	prctl(PR_SET_NAME, "between");
}

static void execute(const char *how)
{
	execl("/proc/self/exe", arguments[0], how, arguments[2], (char *)NULL);
	_exit(1);
}

static void *executes(void *unused)
{
	(void)unused;
	phase("before_exec", before_exec);
	execute("executed");
	return NULL;
}

/* A thread other than the main one calls exec() and takes over the main thread's id. */
static void child_executes(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, executes, NULL);
	for (;;)
		pause();
}

static void wait_until_main_is_gone(void)
{
	char path[64], state = 0;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	while (state != 'Z') {
		usleep(1000);
		stat = fopen(path, "re");
		if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
			_exit(1);
		fclose(stat);
	}
}

static void *outlives(void *unused)
{
	void (*work)(double);
	void *library;

	(void)unused;
	wait_until_main_is_gone();
	puts("ready");
	fflush(stdout);
	phase("outlives_main", outlives_main);
	library = dlopen(arguments[2], RTLD_NOW);
	work = library ? (void (*)(double))(size_t)dlsym(library, "library_work") : NULL;
	if (!work)
		_exit(1);
	do {
		phase("library_work", work);
	} while (!strcmp(arguments[1], "on"));
	_exit(0);
}

static void end_main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, outlives, NULL);
	pthread_exit(NULL);
}

static int must_succeed(pid_t child)
{
	int status;

	return child < 0 || waitpid(child, &status, 0) != child || status ? 1 : 0;
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc != 3)
		return 2;
	arguments = argv;
	if (!strcmp(argv[1], "executed")) {
		phase("after_exec", after_exec);
		return 0;
	}
	if (!strcmp(argv[1], "last") || !strcmp(argv[1], "on"))
		end_main();
	child = fork();
	if (child == 0)
		child_executes();
	if (must_succeed(child))
		return 1;
	child = vfork();
	if (child == 0) {
		phase("vfork_child", vfork_child);
		_exit(0);
	}
	if (must_succeed(child))
		return 1;
	execute("last");
	return 1;
}
#endif
