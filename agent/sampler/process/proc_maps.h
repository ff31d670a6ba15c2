/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads /proc/PID/maps (proc(5)) line by line, whatever its size. Knows no modules. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc_mapping {
	uint64_t start, end; /* pc */
	uint64_t file_off; /* bytes */
	uint64_t device; /* makedev(major, minor) of the kernel's numbers */
	uint64_t inode;
	uint64_t generation; /* of the inode number; 0 = unknown, as in /proc */
	bool executable;
	const char *path; /* without the kernel's escapes; "" for memory without a name */
};

/*
 * Parses one line without its newline; false if it is malformed. Sets LINE[LENGTH] to NUL; the path
 * points into LINE.
 */
bool proc_maps_parse(char *line, size_t length, struct proc_mapping *ret_mapping);

/* Returns 0, or a negative errno that ends the reading. The mapping is valid during the call. */
typedef int proc_maps_fn(void *context, const struct proc_mapping *mapping);
/*
 * Calls FN for each line of TASK_FD's `maps` (an open /proc/PID or /proc/PID/task/TID). Skips lines
 * that are malformed or too long. Returns -E2BIG if there are more lines than we read.
 */
int proc_maps_read(int task_fd, proc_maps_fn *fn, void *context);
