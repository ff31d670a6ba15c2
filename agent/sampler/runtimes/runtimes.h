/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runtimes of the processes that are sampled: finds out which one a program has, tells BPF how
 * to read its state, and takes that back when the process has ended. Goes by the rows of
 * runtimes.def alone. Keeps an entry for each live process that has a runtime.
 *
 * BPF must not use the facts of one program for the next one that the process executes, so each
 * entry is bound to the program's exec id as soon as that is known. Where BPF's table is full the
 * entry waits, and runtimes_retry() asks again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/runtimes/runtime.h"
#include "base/map.h"

struct runtimes_options {
	/* Tells BPF of process TGID, or takes it back. A negative errno. */
	int (*set)(void *context, uint32_t tgid, const struct abi_runtime_process *how);
	void (*remove)(void *context, uint32_t tgid);
	void *context;
	struct metrics *metrics; /* borrowed */
	/* The rows; NULL: those of runtimes.def. */
	const struct runtime *const *rows;
	size_t row_count;
};

struct runtimes {
	struct runtimes_options options;
	struct map processes; /* generation → struct runtimes_process */
	size_t unbound; /* entries that wait for their exec id */
	bool refused; /* BPF's table had no room since the last retry */
};

void runtimes_init(struct runtimes *r, const struct runtimes_options *options);
void runtimes_deinit(struct runtimes *r);
/* Whether the program of INDEX has any of the runtimes. */
bool runtimes_has(const struct runtimes *r, const struct index *index);
/* The index of PROGRAM's file is there. To be called again does nothing. */
void runtimes_program(struct runtimes *r, const struct runtime_program *program);
/* A sample told the EXEC_ID of GENERATION. */
void runtimes_bind(struct runtimes *r, uint32_t generation, uint32_t exec_id);
/* About once a second: tells BPF of the processes that found no room before. */
void runtimes_retry(struct runtimes *r);
void runtimes_ended(struct runtimes *r, uint32_t generation);
/* Names FRAME, a runtime's, of generation GENERATION. */
void runtimes_names(const struct runtimes *r, uint32_t pid, uint32_t generation,
	const struct abi_frame *frame, struct runtime_names *names);
