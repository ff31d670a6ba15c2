/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runtimes of sampled processes: detects which one a program has, tells BPF how to read its
 * state, and removes that when the process ends. Knows runtimes only by the rows of runtimes.def.
 * Keeps an entry for each live process that has a runtime.
 *
 * A process has one entry: that of its program, or else of the first library that brings a runtime
 * and is known. Fibers of other runtimes in the process are unknown.
 *
 * BPF must not use one program's facts for the next program that the process executes, so each
 * entry is bound to the program's exec id as soon as that is known. If BPF's table is full the
 * entry waits, and runtimes_retry() tries again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/runtimes/runtime.h"
#include "base/map.h"

struct runtimes_options {
	/* Adds process TGID to BPF's map, or removes it. `set` returns 0 or a negative errno. */
	int (*set)(void *context, uint32_t tgid, const struct abi_runtime_process *how);
	void (*remove)(void *context, uint32_t tgid);
	void *context;
	struct metrics *metrics; /* borrowed */
	/* The rows; NULL = those of runtimes.def. */
	const struct runtime *const *rows;
	size_t row_count; /* at most RUNTIMES_ROWS */
};

enum { RUNTIMES_ROWS = 16 };

struct runtimes {
	struct runtimes_options options;
	void *states[RUNTIMES_ROWS]; /* of each row; NULL = none */
	struct map processes; /* generation → struct runtimes_process */
	size_t unbound; /* entries that wait for their exec id */
	bool refused; /* BPF's table had no room for an entry since the last retry */
};

/* Returns 0 or the error of a row's create(); runtimes_deinit() must be called either way. */
int runtimes_init(struct runtimes *r, const struct runtimes_options *options);
void runtimes_deinit(struct runtimes *r);
/* Whether the program of INDEX has any of the runtimes. */
bool runtimes_has(const struct runtimes *r, const struct index *index);
/*
 * How BPF is to read the state of INDEX's runtime, process and exec id aside. False if there is no
 * runtime, its version is not known, or each process has facts of its own.
 */
bool runtimes_configure(
	const struct runtimes *r, const struct index *index, struct abi_runtime_process *ret_how);
/* The index of PROGRAM's file or library is ready. Calling it again does nothing. */
void runtimes_program(struct runtimes *r, const struct runtime_program *program);
/* Process PID of generation CHILD was forked from PARENT: it has the same library. */
void runtimes_forked(struct runtimes *r, uint32_t parent, uint32_t pid, uint32_t child);
/* Binds the entry of GENERATION to EXEC_ID, which a sample reported; NULL = it is not known. */
void runtimes_bind(struct runtimes *r, uint32_t generation, const uint32_t *exec_id);
/* Call it about once a second: adds processes to BPF's map that found no room before. */
void runtimes_retry(struct runtimes *r);
void runtimes_ended(struct runtimes *r, uint32_t generation);
/* The words for the fibers of all ROWS (seam/runtime_fibers.h). */
const struct runtime_fibers *runtimes_fibers(const struct runtime *const *rows, size_t row_count);
/* A sample has FRAME. */
void runtimes_sampled(const struct runtimes *r, const struct runtime_frame *frame);
/* Names FRAME. *NAMES stays as it is if no row has frames of its kind. */
void runtimes_names(
	const struct runtimes *r, const struct runtime_frame *frame, struct runtime_names *names);
