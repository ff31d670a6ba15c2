/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the tests of this directory: a collector whose events are recorded, and children that
 * burn CPU on request.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/sampler/collect/collect.h"
#include "base/map.h"

enum { HZ = 199, MAX_STEPS = 64 };

static const uint64_t SECOND_NS = 1000000000;

struct seen {
	struct collect *collect;
	struct metrics metrics;
	uint32_t tgid; /* the child whose events are recorded */
	uint64_t last_ns;
	unsigned int backwards;
	struct map stacks; /* id mixed with window: 1 */
	size_t samples, samples_of_others, user_stacks, kernel_stacks;
	size_t missing_stacks, stack_records, repeated_stacks;
	size_t worker_samples, worker_stacks; /* of the child's io_uring threads; user stacks */
	size_t unfinished; /* samples with a copied piece of stack */
	uint64_t weight_ns, own_samples;
	uint32_t exec_id, fiber_generation, window; /* of the last sample */
	char steps[MAX_STEPS + 1]; /* one letter for each event of the child, in order */
	size_t step_count;
	bool exec_path_seen, build_id_seen;
	bool file_lost; /* a mapping with a build ID had no inode */
	unsigned int gaps; /* gaps in the side-band */
	unsigned int ksymbols; /* ksymbol records of the sampler's program, removals included */
	char comm[ABI_COMM_BYTES + 1];
	uint64_t frames_max;
};

/* A child that waits for GO and then burns CPU until it is killed. */
struct burner {
	pid_t pid;
	int go;
};

/* Options for both stacks at HZ samples a second, with every event recorded in S. */
struct collect_options options_for(struct seen *s);
/* Creates s->collect, begins window 1 and starts sampling. */
void open_with(struct seen *s, const struct collect_options *options);
/* cmocka's setup and teardown; *STATE is a struct seen. */
int setup(void **state);
int teardown(void **state);
/* Burns CPU until the process is killed. */
void burn(void);
/* Starts a child named "burner" that runs WORK after release_child() and dies with its parent. */
struct burner start_burner(void (*work)(void));
void release_child(struct burner *b);
void pin(pid_t pid, int cpu);
void end_burner(struct burner *b);
void exec_true(void);
/* Drains until PID has used CPU_NS of CPU time; gives up after a minute. */
void drain_until_cpu(struct seen *s, pid_t pid, uint64_t cpu_ns);
/* CPU time of a process, in ns. */
uint64_t cpu_ns_of(pid_t pid);
/* Drains until s->tgid has COUNT samples; gives up after a minute. */
void drain_until_samples(struct seen *s, size_t count);
void stop_and_drain(struct seen *s);

#define COLLECT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
