/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Interface for the step from a frame to its caller: the rules from ABI_CFA_RUNTIME on, which the
 * index has for a runtime's functions that switch stacks. Each runtime has its own range of
 * numbers.
 */
#include "bpf/runtimes/go_unwind.bpf.h"

/*
 * Moves S to the stack of RULE's frame, whose CFA is then sp + cfa_off. Sets *RET_DONE if S is
 * already the caller. Returns an enum abi_unwind_end.
 */
UNWIND_INLINE int runtime_unwind(
	struct unwind_state *s, const struct abi_unwind_rule *rule, bool *ret_done)
{
	return go_unwind(s, rule, ret_done);
}
