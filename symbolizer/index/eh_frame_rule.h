/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One row of call frame information → the rule that BPF understands. What cannot be said there
 * becomes ABI_CFA_UNSUPPORTED or ABI_REG_UNSUPPORTED, so that a walk stops instead of going astray.
 */
#include <string.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/index/eh_frame.h"

/* DWARF register numbers of a machine (its psABI). */
struct cfi_machine {
	uint64_t fp, sp, ra;
	uint64_t kept; /* another register to be followed (x86_64: rbx or r12); 0 = none */
	bool link; /* the return address may still be in a register */
};

struct cfi_machine cfi_machine(const struct cfi_section *s);

/* SIGNAL: the row is a signal frame's. Fields that do not matter are 0: equal rules look equal. */
struct abi_unwind_rule cfi_rule(
	const struct cfi_machine *m, bool signal, const struct cfi_state *state);

/*
 * RULE where nothing but the CFA's offset changed, which is most rows. False: that takes more. The
 * offset is not written alone: rules are read as two numbers, and the processor would wait for it.
 */
static inline bool cfi_rule_move(struct abi_unwind_rule *rule, int64_t cfa_offset)
{
	uint64_t head;

	if ((rule->cfa != ABI_CFA_SP && rule->cfa != ABI_CFA_FP) ||
		cfa_offset != (int32_t)cfa_offset)
		return false;
	memcpy(&head, rule, sizeof(head));
	head = (uint32_t)head | (uint64_t)(uint32_t)cfa_offset << 32;
	memcpy(rule, &head, sizeof(head));
	return true;
}

/* What is valid at a function's first instruction. */
struct abi_unwind_rule cfi_entry_rule(const struct cfi_section *s);

/* `bregN offset`, leaving the cursor behind it. */
bool cfi_read_breg(struct cursor *c, uint64_t *ret_register, int64_t *ret_offset);
