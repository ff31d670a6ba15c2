/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes the instructions of a program: loads a copy of it for one probe, with a cookie in it. A
 * program at fentry is for one function, and before Linux 5.15 nothing else tells a program at a
 * kprobe which one it is at.
 */
#include <stdint.h>

struct bpf_program;

struct kernel_copy {
	uint64_t cookie; /* instead of ABI_LATENCY_OWN_COOKIE */
	uint32_t function; /* at fentry or fexit: the function's BTF id; else 0 */
};

/*
 * Programs with functions that the verifier checks once, whoever calls them, are only copied whole
 * if their sections are "kernel_copy.entered", "kernel_copy.returned" and "kernel_copy.event", and
 * this was called before their object is opened. Not thread-safe. Returns a negative errno.
 */
int kernel_copy_prepare(void);
/* Loads a copy of PROGRAM, which is loaded. Returns its descriptor or a negative errno. */
int kernel_copy_load(const struct bpf_program *program, const struct kernel_copy *copy);
/*
 * Makes PROGRAM, which is not loaded yet, call the kernel's functions for sessions. Returns
 * -EOPNOTSUPP if the kernel has none.
 */
int kernel_copy_link_session(struct bpf_program *program);
/* As above: PLACEHOLDER becomes the per-CPU VARIABLE of the kernel, by the number of its type. */
int kernel_copy_link_variable(struct bpf_program *program, int32_t placeholder, uint32_t variable);
