/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A process table over a fake /proc, fed with records like the kernel's. */
#include "agent/sampler/process/processes.h"
#include "tests/unit/fake_proc.h"

enum { PARENT = 100, CHILD = 200, LIMIT = 64 };

/* Later than any read of /proc in a test. */
static const uint64_t later = UINT64_MAX / 2;

struct fixture {
	struct fake_proc proc;
	struct modules *modules;
	struct metrics metrics;
	struct processes *ps;
	unsigned int programs, ended; /* numbers of calls */
	uint32_t last_program; /* number of the last program */
	unsigned int forked; /* calls, and the numbers in the last one */
	uint32_t last_parent, last_child;
	bool last_ended_superseded;
	unsigned int mapped; /* calls, and the arguments of the last one */
	uint32_t last_mapper;
	struct mapping last_mapped;
	struct fake_file program, other, libc, plain; /* plain has no build ID */
};

int process_set_up(void **state);
int process_tear_down(void **state);
#define CASE(name) cmocka_unit_test_setup_teardown(name, process_set_up, process_tear_down)

/* Add an mmap record of one page: of FILE, or of a NAME without a file. */
void map(struct fixture *f, uint64_t time_ns, uint32_t pid, uint64_t start,
	const struct fake_file *file);
void map_name(struct fixture *f, uint64_t time_ns, uint32_t pid, uint64_t start, const char *name);
/* Adds the records of an exec of FILE: the mapping of the program, then the others. */
void exec(struct fixture *f, uint64_t time_ns, uint32_t pid, const struct fake_file *file);
void forks(struct fixture *f, uint64_t time_ns, uint32_t parent, uint32_t child);
void new_thread(struct fixture *f, uint64_t time_ns, uint32_t pid, uint32_t tid);
/* Shows a process in /proc that maps FILE and libc; HOW sets its other fields. */
void show(struct fixture *f, uint32_t pid, const struct fake_file *file, struct fake_process how);

/* Return the generation of a sample: of the program in the table, or of EXEC_ID. */
struct process *sampled(struct fixture *f, uint32_t pid, uint64_t time_ns);
struct process *sampled_as(struct fixture *f, uint32_t pid, uint64_t time_ns, uint32_t exec_id);

struct process *live(struct fixture *f, uint32_t pid);
const struct module *module_at(const struct process *p, uint64_t pc);
uint64_t count(struct fixture *f, enum metric metric);
