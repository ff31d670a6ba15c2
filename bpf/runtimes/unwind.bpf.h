/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What the step from a frame to its caller asks of the runtimes: the rules from ABI_CFA_RUNTIME on,
 * which the index holds for the functions of a runtime that change stacks. Each runtime has its own
 * numbers; the next one is asked where the last one's end.
 */
#include "bpf/runtimes/go_unwind.bpf.h"

/*
 * Moves S to the stack where RULE's frame is; its CFA is cfa_off above sp there. *RET_DONE: the
 * caller was reached already. An enum abi_unwind_end.
 */
UNWIND_INLINE int runtime_unwind(
	struct unwind_state *s, const struct abi_unwind_rule *rule, bool *ret_done)
{
	return go_unwind(s, rule, ret_done);
}
