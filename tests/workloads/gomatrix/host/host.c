/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A C program that loads Go libraries at run time and calls churn_main() of each on a thread of its
 * own: host LIBRARY...
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Moves the thread-local storage of what is loaded later. */
static __thread char own[200];

static void *run(void *function)
{
	void (*churn_main)(void) = (void (*)(void))function;

	own[0]++;
	churn_main();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];
	int count = 0;

	for (int i = 1; i < argc && count < 4; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		void *function = library ? dlsym(library, "churn_main") : NULL;

		if (!function) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		if (pthread_create(&threads[count++], NULL, run, function))
			return 1;
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
