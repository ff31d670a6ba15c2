/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/truncation.h"

#include "agent/sampler/profile/profile.h"

enum metric truncation_of(uint32_t flags)
{
	switch ((flags & PROFILE_STACK_END_MASK) >> PROFILE_STACK_END_SHIFT) {
	case ABI_UNWIND_DEPTH:
		return METRIC_UNWIND_DEPTH;
	case ABI_UNWIND_GAP:
		return METRIC_UNWIND_NO_TABLE;
	case ABI_UNWIND_MISSED:
	case ABI_UNWIND_NOT_LOADED:
		return METRIC_UNWIND_NOT_LOADED;
	case ABI_UNWIND_UNREADABLE:
		return METRIC_UNWIND_UNREADABLE;
	case ABI_UNWIND_BAD_REGISTER:
		return METRIC_UNWIND_BAD_REGISTER;
	case ABI_UNWIND_UNKNOWN_MAPPING:
		return METRIC_UNWIND_UNKNOWN_MAPPING;
	default:
		return flags & PROFILE_STACK_DEPTH ? METRIC_UNWIND_DEPTH : METRIC_UNWIND_NO_ROOT;
	}
}

const char *truncation_mark(enum metric end)
{
	switch (end) {
	case METRIC_UNWIND_DEPTH:
		return "[truncated: depth]";
	case METRIC_UNWIND_NO_TABLE:
		return "[truncated: no_table]";
	case METRIC_UNWIND_NOT_LOADED:
		return "[truncated: not_loaded]";
	case METRIC_UNWIND_UNREADABLE:
		return "[truncated: unreadable_stack]";
	case METRIC_UNWIND_BAD_REGISTER:
		return "[truncated: bad_register]";
	case METRIC_UNWIND_UNKNOWN_MAPPING:
		return "[truncated: unknown_mapping]";
	default:
		return "[truncated: no_root]";
	}
}
