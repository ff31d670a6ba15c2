/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code in anonymous memory, always at the same address, and perf maps that name it. The name of the
 * main thread is the correct name of the function, so that each sample can be checked:
 *   exec     jm_first, then jm_second: two programs of one pid, which write the same map file
 *   fork     jm_parent; forked from it, jm_inherits without a map, and jm_own with one
 *   rewrite  jm_old, then jm_new: the map is rewritten with the same length
 *   append   as exec, but the second program appends to the map of the first
 *   unwritten  jm_unwritten, whose map another program writes; prints `ready` first
 * Each function runs for argv[2] ms of CPU time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *const address = (char *)0x10000000;

/* Counts down from some millions. */
#ifdef __aarch64__
static const unsigned int code[] = { 0x52a01000, 0x71000400, 0x54ffffe1, 0xd65f03c0 };
#else
static const unsigned char code[] = { 0xb8, 0, 0, 0x80, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3 };
#endif

static void compile(void)
{
	void *at = mmap(address, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != address)
		exit(2);
	memcpy(address, code, sizeof(code));
	__builtin___clear_cache(address, address + sizeof(code));
}

static const char *map_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	return path;
}

static void write_map(const char *name, const char *how)
{
	FILE *file = fopen(map_path(), how);

	if (!file)
		exit(2);
	fprintf(file, "%lx %x %s\n", (unsigned long)address, (unsigned int)sizeof(code), name);
	fclose(file);
}

static void run(const char *name, int ms)
{
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	prctl(PR_SET_NAME, name);
	while (clock() < end)
		((void (*)(void))address)();
}

static void in_child(const char *name, const char *map, int ms)
{
	pid_t child = fork();

	if (child == 0) {
		if (map)
			write_map(map, "w");
		run(name, ms);
		unlink(map_path());
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	int ms = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;

	compile();
	if (!strcmp(mode, "exec")) {
		write_map("jm_first", "w");
		run("jm_first", ms);
		execl("/proc/self/exe", argv[0], "second", argv[2], NULL);
	} else if (!strcmp(mode, "second")) {
		write_map("jm_second", "w");
		run("jm_second", ms);
	} else if (!strcmp(mode, "append")) {
		write_map("jm_first", "w");
		run("jm_first", ms);
		execl("/proc/self/exe", argv[0], "appends", argv[2], NULL);
	} else if (!strcmp(mode, "appends")) {
		write_map("jm_second", "a");
		run("jm_second", ms);
	} else if (!strcmp(mode, "fork")) {
		write_map("jm_parent", "w");
		run("jm_parent", ms);
		in_child("jm_inherits", NULL, ms);
		in_child("jm_own", "jm_own", ms);
	} else if (!strcmp(mode, "rewrite")) {
		write_map("jm_old", "w");
		run("jm_old", ms);
		write_map("jm_new", "w");
		run("jm_new", ms);
	} else if (!strcmp(mode, "unwritten")) {
		puts("ready");
		fflush(stdout);
		run("jm_unwritten", ms);
	}
	unlink(map_path());
	return 0;
}
