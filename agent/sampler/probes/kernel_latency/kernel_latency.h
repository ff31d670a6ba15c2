/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Attaches programs to the entries and returns of kernel functions, in the best of the ways that
 * work on this kernel (kernel_ways.h). What they measure is in the histograms of
 * agent/sampler/probes/latency/latency.h, which also gives functions their numbers. Collect loads
 * the BPF object (bpf/probes/kernel_latency.bpf.c) if latency_options.kernel is set. Knows nothing
 * of patterns and of lists of functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/sampler/probes/kernel_latency/kernel_ways.h"

struct bpf_object;
struct collect_options;
struct kernel_attached;
struct kernel_latency;

enum {
	/* Trampolines need a program for each entry and each return. */
	KERNEL_TRAMPOLINES_MAX = 64,
	/* So do kprobes, which the kernel registers one by one. */
	KERNEL_EVENTS_MAX = 500,
	/* With stacks, of both. */
	KERNEL_COPIES_WITH_STACKS_MAX = 32,
	KERNEL_PROBLEM_BYTES = KERNEL_WAYS_TEXT_BYTES,
};

struct kernel_target {
	const char *name;
	bool in_module;
	const uint64_t *addresses; /* kaddr: of all functions with this name */
	size_t address_count;
	uint32_t function; /* latency_functions_add() */
};

/* A target that the kernel refused, or one of its addresses. */
struct kernel_refused {
	size_t number; /* in the array of targets */
	int err; /* a negative errno */
};

/*
 * probe.configure() of a probe whose programs are attached as these: chooses those for the ways
 * that work here.
 */
int kernel_latency_configure_object(
	const struct collect_options *options, struct bpf_object *object);

/* The name of the probe that has the BPF object; STACKS: collect_options.call_stacks. */
const char *kernel_latency_probe_name(bool stacks);
/*
 * OBJECT is loaded, and borrowed. STACKS: its programs walk stacks, so that the kernel takes long
 * to check each copy of one. Returns -ENOMEM or -EBADMSG.
 */
int kernel_latency_create(
	struct bpf_object *object, bool stacks, struct kernel_latency **ret_latency);
/* Everything that is attached must have been detached. */
void kernel_latency_destroy(struct kernel_latency *k);
/* Whether any way works. */
bool kernel_latency_can_attach(const struct kernel_latency *k);

/*
 * Attaches TARGETS in one way, and leaves out those that the kernel refuses. Returns -EOPNOTSUPP
 * if no way works, -E2BIG if there are too many for the only one that does, -EINTR if a signal asks
 * to end meanwhile, or another negative errno if none could be attached; PROBLEM says more, unless
 * it is "".
 */
int kernel_latency_attach(struct kernel_latency *k, const struct kernel_target *targets,
	size_t count, struct kernel_attached **ret_attached, char problem[KERNEL_PROBLEM_BYTES]);
/* NULL is allowed. */
void kernel_latency_detach(struct kernel_attached *attached);
/*
 * Frees ATTACHED and does not wait for the kernel. Returns the child that does, for the caller to
 * reap; until then some functions may be attached yet. 0: none is.
 */
pid_t kernel_latency_detach_begin(struct kernel_attached *attached);
enum kernel_way kernel_latency_way(const struct kernel_attached *attached);
const struct kernel_refused *kernel_latency_refused(
	const struct kernel_attached *attached, size_t *ret_count);
/*
 * Calls that the kernel could not show to the programs, as far as it counts them: of ATTACHED, and
 * of all that was ever attached by the programs that many functions share.
 */
uint64_t kernel_latency_missed(const struct kernel_attached *attached);
uint64_t kernel_latency_missed_by_shared(const struct kernel_latency *k);
