/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Interface for samples: what the thread's runtime says about its fiber, shipped as a record of its
 * own (bpf/abi/fiber_facts.h). It takes the place of the stacks in the scratch memory, and is
 * hashed and shipped as these are.
 */
#include "bpf/abi/fiber_facts.h"
#include "bpf/runtimes/go_labels.bpf.h"
#include "bpf/scratch.bpf.h"
#include "bpf/stack.bpf.h"

enum { FACTS_WORD = 8 };

_Static_assert(
	offsetof(struct abi_fiber_facts, id) == offsetof(struct stack_record, id) &&
		offsetof(struct abi_fiber_facts, flags) == offsetof(struct stack_record, flags) &&
		offsetof(struct abi_fiber_facts, word_count) ==
			offsetof(struct stack_record, frame_count) &&
		offsetof(struct abi_fiber_facts, parent_id) ==
			offsetof(struct stack_record, frames),
	"the content takes the place of the frames");
_Static_assert(offsetof(struct scratch, walk.record) + offsetof(struct abi_fiber_facts, labels) +
			       GO_LABEL_PLACES + ABI_FIBER_LABEL_BYTES / ABI_FIBER_LABELS +
			       FACTS_WORD <=
		       sizeof(struct scratch),
	"the verifier sees no place outside of the memory");

/*
 * Puts what is known of the fiber into the scratch memory's record, and reads its labels. Returns 0
 * if there is nothing to ship. A global function: the verifier follows it once.
 */
__noinline int runtime_facts_read(void)
{
	struct scratch *s = scratch_of_cpu();
	struct abi_fiber_facts *to;
	__u32 end;

	if (!s)
		return 0;
	to = (struct abi_fiber_facts *)&s->walk.record;
	to->flags = ABI_FIBER_FACTS_MARK |
		    (s->runtime.state << ABI_FIBER_STATE_SHIFT & ABI_FIBER_STATE_MASK) |
		    (s->runtime.wait << ABI_FIBER_WAIT_SHIFT & ABI_FIBER_WAIT_MASK);
	to->parent_id = s->runtime.parent_id;
	to->created_at = s->runtime.created_at;
	to->start = s->runtime.start;
	to->label_count = 0;
	to->label_bytes = 0;
	if (s->runtime.labels)
		go_read_labels(s->runtime.labels, s->runtime.labels_kind, to);
	end = *(volatile __u32 *)&to->label_bytes & (GO_LABEL_PLACES - 1);
	for (__u32 i = 0; i < FACTS_WORD; i++)
		to->labels[end + i] = 0;
	to->word_count = ABI_FIBER_CONTENT_HEAD_WORDS + (end + FACTS_WORD - 1) / FACTS_WORD;
	return 1;
}

/* Comes when the sample's window is known, and before its stacks. */
static __always_inline void runtime_facts_take(const struct capture *t, struct scratch *s)
{
	struct stack_record *record = &s->walk.record;

	s->walk.sample.fiber_facts = 0;
	if (!s->runtime.state || !runtime_facts_read())
		return;
	record->kind = ABI_FIBER_FACTS;
	record->window = s->walk.sample.window;
	record->id = stack_hash();
	stack_ship(t, record, 0);
	s->walk.sample.fiber_facts = record->id;
}
