/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A C program that loads Go libraries at run time and calls churn_main() of each on a thread of its
 * own: host LIBRARY... The main thread calls each library once; then it works in between_calls(),
 * outside of Go.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX = 4, PAUSE_US = 5000 };

struct library {
	void (*churn_main)(void), (*churn_touch)(void);
};

/* Moves the thread-local storage of what is loaded later. */
static __thread char own[200];

static atomic_int running;
static volatile unsigned int sink;

static void *symbol(void *handle, const char *name)
{
	void *found = handle ? dlsym(handle, name) : NULL;

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

static struct library load(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	return (struct library){
		.churn_main = (void (*)(void))symbol(handle, "churn_main"),
		.churn_touch = (void (*)(void))symbol(handle, "churn_touch"),
	};
}

static void *run(void *of)
{
	struct library *library = of;

	own[0]++;
	library->churn_main();
	running--;
	return NULL;
}

__attribute__((noinline)) static void between_calls(void)
{
	for (int i = 0; i < 1000000; i++)
		sink += (unsigned int)i;
}

int main(int argc, char **argv)
{
	struct library libraries[MAX];
	int count = argc - 1 < MAX ? argc - 1 : MAX;

	for (int i = 0; i < count; i++)
		libraries[i] = load(argv[i + 1]);
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		running++;
		if (pthread_create(&thread, NULL, run, &libraries[i]))
			return 1;
		libraries[i].churn_touch();
	}
	while (running) {
		between_calls();
		usleep(PAUSE_US);
	}
	return 0;
}
