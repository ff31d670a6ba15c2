/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Mechanisms that exist only for speed or memory; the head of each file says what it gains. Without
 * them samples take a slower or larger path to the same profile. Tests switch them off one by one,
 * with the hidden option --test-without=NAMES of the commands that sample, and compare.
 */
#include <stdint.h>

enum mechanism {
	MECHANISM_VMA_LOOKUP = 1 << 0, /* `vma-lookup`: bpf/unwind/vma.bpf.h */
	MECHANISM_OWN_RINGS = 1 << 1, /* `own-rings`: bpf/sample_ring.bpf.h */
	MECHANISM_KERNEL_WALK = 1 << 2, /* `kernel-walk`: bpf/unwind/kernel_walk_x86.bpf.h */
	MECHANISM_PACKED_STACKS = 1 << 3, /* `packed-stacks`: agent/sampler/unwind/stack_pack.h */
	MECHANISM_PACKED_RULES = 1 << 4, /* `packed-rules`: bpf/abi/unwind.h */
	MECHANISM_UPROBE_MULTI = 1 << 5, /* `uprobe-multi`: agent/sampler/collect/uprobe_multi.h */
	MECHANISM_ATTACH_COOKIE = 1 << 6, /* `attach-cookie`: bpf/abi/site_path.h */
	/* agent/sampler/probes/kernel_latency/: ways to attach to kernel functions */
	MECHANISM_FENTRY = 1 << 7, /* `fentry` */
	MECHANISM_KPROBE_SESSION = 1 << 8, /* `kprobe-session` */
	MECHANISM_KPROBE_MULTI = 1 << 9, /* `kprobe-multi` */
	/* `process-uprobes`: agent/sampler/collect/process_uprobes.h */
	MECHANISM_PROCESS_UPROBES = 1 << 10,
};

/* All names, for messages. */
#define MECHANISMS_NAMES                                                                  \
	"vma-lookup, own-rings, kernel-walk, packed-stacks, packed-rules, uprobe-multi, " \
	"attach-cookie, fentry, kprobe-session, kprobe-multi and process-uprobes"

/*
 * Parses NAMES, separated by commas (NULL = none), into enum mechanism values. Returns -EINVAL if
 * one of them is no mechanism.
 */
int mechanisms_parse(const char *names, uint32_t *ret_mechanisms);
