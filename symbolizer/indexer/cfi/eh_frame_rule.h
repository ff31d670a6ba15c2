/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts a row of call frame information to a rule for BPF. Rows that rules cannot express become
 * ABI_CFA_UNSUPPORTED or ABI_REG_UNSUPPORTED, so that a walk stops instead of going wrong.
 */
#include <string.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/cfi/eh_frame.h"

struct cfi_machine cfi_machine(const struct cfi_section *s);

/* SIGNAL: the row is a signal frame's. Unused fields are 0, so that rules compare as bytes. */
struct abi_unwind_rule cfi_rule(
	const struct cfi_machine *m, bool signal, const struct cfi_state *state);

/* Whether only the offset of RULE changes if the CFA's offset becomes CFA_OFFSET: most rows. */
static inline bool cfi_rule_can_move(const struct abi_unwind_rule *rule, int64_t cfa_offset)
{
	return (rule->cfa == ABI_CFA_SP || rule->cfa == ABI_CFA_FP) &&
	       cfa_offset == (int32_t)cfa_offset;
}

/*
 * Copies RULE with another CFA offset. The result is assembled in a register: rules are read as two
 * numbers, and a separate store of the offset would stall the load.
 */
static inline void cfi_rule_move(
	const struct abi_unwind_rule *rule, int32_t cfa_offset, struct abi_unwind_rule *ret_rule)
{
	uint32_t kinds, tail;
	uint64_t head;

	memcpy(&kinds, rule, sizeof(kinds));
	memcpy(&tail, (const uint8_t *)rule + sizeof(head), sizeof(tail));
	head = kinds | (uint64_t)(uint32_t)cfa_offset << 32;
	memcpy(ret_rule, &head, sizeof(head));
	memcpy((uint8_t *)ret_rule + sizeof(head), &tail, sizeof(tail));
}

/* Returns the rule at a function's first instruction. */
struct abi_unwind_rule cfi_entry_rule(const struct cfi_section *s);

/* Reads `bregN offset`; false if there is another operation at C. */
bool cfi_read_breg(struct cursor *c, uint64_t *ret_register, int64_t *ret_offset);
