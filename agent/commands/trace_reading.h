/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files whose debug information is read for `fathom trace --args`: one after the other, by a
 * sandboxed child each, while the loop goes on. What an earlier run has read is found in the index
 * cache, without any child.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/builds/function_arguments.h"

struct loop;
struct trace_reading_job;

struct trace_reading_file {
	const char *path; /* below the root directory */
	int fd;
	int root_fd; /* of a process that maps it; -1 = ours */
	const struct module_id *id;
	struct cache *cache; /* as long as anything is read */
};

struct traced_function {
	uint32_t number; /* of its probe */
	uint64_t address; /* ELF address of the entry */
};

/* What was read of a file. */
struct trace_read {
	const char *path;
	int error; /* of arguments_reading_finish(); 0 = none */
	const struct traced_function *functions; /* as they were given */
	size_t count;
	const uint64_t *entries; /* ascending */
	struct function_arguments *items; /* one for each of `entries`, to be taken from */
	size_t entry_count;
};

/* Zeroed but for the first fields, nothing is read. */
struct trace_reading {
	struct loop *loop; /* borrowed */
	const char *directories; /* borrowed; of debug files, comma-separated */
	void (*done)(void *context, const struct trace_read *read);
	void *context;
	struct trace_reading_job *first, *last;
	uint64_t began_ns; /* reading the first one; CLOCK_MONOTONIC */
	int timer; /* while there is a job */
	bool waited;
	uint64_t shown_seconds; /* on the terminal; 0 = nothing is shown */
};

/* Ends the child, and forgets all files. To be called after the loop has ended, or before. */
void trace_reading_deinit(struct trace_reading *t);
/*
 * FUNCTIONS of FILE, which is copied, are to be read. If they were kept, `done` is called before
 * this returns.
 */
int trace_reading_add(struct trace_reading *t, const struct trace_reading_file *file,
	const struct traced_function *functions, size_t count);
/* Runs the loop until all files are read, or something else stops it. */
int trace_reading_wait(struct trace_reading *t);
/* What was read for the function at ADDRESS; NULL = nothing. */
struct function_arguments *trace_read_item(const struct trace_read *read, uint64_t address);
