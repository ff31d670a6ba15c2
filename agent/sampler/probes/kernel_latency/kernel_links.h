/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How targets are attached in each of the ways. Private to kernel_latency.c. */
#include "agent/sampler/probes/kernel_latency/kernel_latency.h"

struct bpf_program;

/* All NULL: not loaded, as its way does not work. */
struct kernel_programs {
	const struct bpf_program *entered, *returned; /* templates */
	const struct bpf_program *session;
	const struct bpf_program *entries, *returns;
	const struct bpf_program *event; /* a template */
};

/* Descriptors: whatever is closed is detached. */
struct kernel_links {
	int *links; /* and events */
	size_t count, capacity;
	int *entries; /* copies of programs at entries, which count what they miss */
	size_t entry_count, entry_capacity;
	struct kernel_refused *refused;
	size_t refused_count, refused_capacity;
};

/*
 * Attaches TARGETS in one way; what the kernel refuses is in `refused`. Returns a negative errno
 * only if the kernel's answer concerns more than one target, or if a signal asks to end (-EINTR).
 */
int kernel_links_trampolines(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_target *targets, size_t count);
int kernel_links_multi(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_target *targets, size_t count);
int kernel_links_events(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_target *targets, size_t count);
int kernel_links_add(struct kernel_links *l, int link);
int kernel_links_add_entry(struct kernel_links *l, int program);
int kernel_links_refuse(struct kernel_links *l, size_t number, int err);
void kernel_links_close(struct kernel_links *l);
/* As closer_begin(): returns the child that closes them, or 0. */
pid_t kernel_links_close_begin(struct kernel_links *l);
