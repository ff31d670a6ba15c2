/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Packs unwind rules into the 32 bits, and the sort order, of bpf/abi/unwind.h. */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"

/* Returns true and sets *RET_BITS if RULE fits the narrow form. */
bool unwind_rule_narrow(const struct abi_unwind_rule *rule, uint32_t *ret_bits);
struct abi_unwind_rule unwind_rule_of_bits(uint32_t bits);
/* Sort key: everything but the CFA's offset. */
uint64_t unwind_rule_kind(const struct abi_unwind_rule *rule);
