/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What each CPU has at hand of the processes that were sampled on it last: where their code is
 * mapped, and the rules of the code they were in. A tick finds the processor's caches full of other
 * things, so that each line of memory that a walk does without counts.
 *
 * All of it holds as long as nothing changes that it was made of. A process that changed gets a new
 * serial number, with which no rule was ever kept.
 */
#include "bpf/stack.bpf.h"
#include "bpf/unwind.bpf.h"

enum {
	UNWIND_NEAR_RANGES = 8,
	UNWIND_NEAR_PROCESSES = 32,
	UNWIND_NEAR_RULES = 512,
	UNWIND_NEAR_HASH_SHIFT = 40,
	UNWIND_NEAR_EPOCHS =
		4, /* as a power of two: by how much the use of a page may look older */
};

/* More than enum unwind_place tells: Go's, and at calls its frame pointer is to be trusted. */
enum { UNWIND_PLACE_GO_FRAME = 16 };

/* Of what a process's ranges are. All the same: nothing has changed. */
struct unwind_near_key {
	__u64 mm; /* or the version of the ranges that user space wrote */
	__u64 arg_start; /* the stack's place tells apart what has the same memory anew */
	__u32 tgid;
	__u32 changes; /* of the mappings; 0: not counted, valid for one sample only */
	__u32 files_turn;
	__u32 epoch; /* so that pages are seen to be used */
};

struct unwind_near {
	struct unwind_near_key key;
	__u64 serial; /* 0: rules are not kept */
	__u64 next; /* place to be filled */
	struct abi_unwind_range ranges[UNWIND_NEAR_RANGES];
};

struct unwind_near_processes {
	__u64 last_serial;
	struct unwind_near of[UNWIND_NEAR_PROCESSES];
};

/* The rule of a pc of a process. */
struct unwind_near_rule {
	__u64 pc;
	__u64 serial; /* of the process; 0: of this step only */
	struct abi_unwind_rule rule;
	__u32 place; /* enum unwind_place, or UNWIND_PLACE_GO_FRAME */
};

struct unwind_near_rules {
	struct unwind_near_rule of[UNWIND_NEAR_RULES];
};

_Static_assert(sizeof(struct unwind_near_rule) == 32, "two in a line of the cache");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct unwind_near_processes);
} unwind_near_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct unwind_near_rules);
} unwind_near_rules SEC(".maps");

/* What is at hand of TGID, or of another that has its place. */
static __always_inline struct unwind_near *unwind_near_in(
	struct unwind_near_processes *all, __u32 tgid)
{
	__u64 hash = (__u64)tgid * STACK_HASH_MUL_3;

	return &all->of[(hash >> UNWIND_NEAR_HASH_SHIFT) & (UNWIND_NEAR_PROCESSES - 1)];
}

static __always_inline struct unwind_near *unwind_near_of(__u32 whose, __u32 tgid)
{
	struct unwind_near_processes *all = bpf_map_lookup_elem(&unwind_near_processes, &whose);

	return all ? unwind_near_in(all, tgid) : NULL;
}

static __always_inline bool unwind_near_same(
	const struct unwind_near_key *a, const struct unwind_near_key *b)
{
	return a->mm == b->mm && a->arg_start == b->arg_start && a->tgid == b->tgid &&
	       a->changes == b->changes && a->files_turn == b->files_turn && a->epoch == b->epoch;
}

/* Makes what is at hand that of KEY, emptied where it was another's. Its serial number. */
static __always_inline __u64 unwind_near_begin(__u32 whose, const struct unwind_near_key *key)
{
	struct unwind_near_processes *all = bpf_map_lookup_elem(&unwind_near_processes, &whose);
	struct unwind_near *near;

	if (!all)
		return 0;
	near = unwind_near_in(all, key->tgid);
	if (key->changes && unwind_near_same(&near->key, key))
		return near->serial;
	near->key = *key;
	near->serial = key->changes ? ++all->last_serial : 0;
	for (int i = 0; i < UNWIND_NEAR_RANGES; i++)
		near->ranges[i].end = 0;
	return near->serial;
}

/* Where the rule of PC is, or is to be written. */
static __always_inline struct unwind_near_rule *unwind_near_rule(
	__u32 whose, __u64 pc, __u64 serial)
{
	struct unwind_near_rules *all = bpf_map_lookup_elem(&unwind_near_rules, &whose);
	__u64 hash = (pc + serial) * STACK_HASH_MUL_3;

	return all ? &all->of[(hash >> UNWIND_NEAR_HASH_SHIFT) & (UNWIND_NEAR_RULES - 1)] : NULL;
}
