/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A row of an unwind table, passed in batches from call frame information to pages. */
#include <stdint.h>

#include "bpf/abi/unwind.h"

struct unwind_row {
	uint64_t low; /* first address; valid up to the next row's */
	struct abi_unwind_rule rule;
};
