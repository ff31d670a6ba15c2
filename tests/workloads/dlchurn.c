/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a library, works in its plugin_work() and unloads it, over and over for argv[1] seconds,
 * with argv[2] milliseconds of sleep in between; the libraries argv[3...] alternate. Prints
 * `ready`. Built with -DPLUGIN it is the library; -DPLUGIN_ROUNDS=10 reduces its work.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef PLUGIN_ROUNDS
#define PLUGIN_ROUNDS 8000000
#endif

#ifdef PLUGIN
static volatile uint64_t sink;

void plugin_work(void);

void plugin_work(void)
{
	for (int i = 0; i < PLUGIN_ROUNDS; i++)
		sink = sink * 31 + (uint64_t)i;
}
#else
int main(int argc, char **argv)
{
	time_t end;

	if (argc < 4)
		return 2;
	end = time(NULL) + strtol(argv[1], NULL, 10);
	puts("ready");
	fflush(stdout);
	for (int i = 0; time(NULL) < end; i++) {
		void *plugin = dlopen(argv[3 + i % (argc - 3)], RTLD_NOW);
		void (*work)(void) = plugin ? (void (*)(void))dlsym(plugin, "plugin_work") : NULL;

		if (!work)
			return 1;
		work();
		dlclose(plugin);
		usleep((useconds_t)strtoul(argv[2], NULL, 10) * 1000);
	}
	return 0;
}
#endif
