/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A row on its way from call frame information to a page. Many go at once: there are millions. */
#include <stdint.h>

#include "bpf/abi/unwind.h"

struct unwind_row {
	uint64_t low; /* valid from here on, up to where the next one begins */
	struct abi_unwind_rule rule;
};
