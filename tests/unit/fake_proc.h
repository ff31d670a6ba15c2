/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A fake /proc in a temporary directory, and ELF files to map. Aborts on errors of the test itself.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/module_id.h"

struct fake_proc {
	char path[64];
	int fd;
};

struct fake_process {
	const char *comm;
	const char *maps; /* NULL = no such file */
	const char *cgroup; /* NULL = "0::/\n" */
	const char *exe; /* target of the link; NULL = none */
	const char *nspid; /* as in status, "\t10\t1"; NULL = none */
	char state; /* 0 = 'S' */
	uint32_t threads; /* 0 = 1 */
	uint64_t start_ticks; /* 0 = 1, long ago */
	bool kernel_thread;
};

/* A file in that directory, with a known size and build ID (size 0 = none). */
struct fake_file {
	char path[PATH_MAX];
	struct build_id build_id;
	uint64_t device, inode;
	uint32_t device_major, device_minor;
};

void fake_proc_init(struct fake_proc *p);
void fake_proc_deinit(struct fake_proc *p);
/* Creates or replaces PID's directory. */
void fake_proc_process(struct fake_proc *p, uint32_t pid, const struct fake_process *process);
/* Creates or replaces one file in PID's directory. */
void fake_proc_write(struct fake_proc *p, uint32_t pid, const char *name, const char *text);
/* Links /proc/PID/map_files/START-END to TARGET. */
void fake_proc_map_file(
	struct fake_proc *p, uint32_t pid, uint64_t start, uint64_t end, const char *target);
/* Links /proc/PID/root to the directory PATH. */
void fake_proc_root(struct fake_proc *p, uint32_t pid, const char *path);
void fake_proc_remove(struct fake_proc *p, uint32_t pid);
/* Writes an ELF file NAME; all bytes of its build ID are BUILD_ID, 0 = none. */
void fake_proc_elf(
	struct fake_proc *p, const char *name, uint8_t build_id, struct fake_file *ret_file);
/* Writes an `r-xp` line of /proc/PID/maps to LINE. */
void fake_maps_line(char *line, size_t size, uint64_t start, uint64_t end, uint64_t file_off,
	const struct fake_file *file);
