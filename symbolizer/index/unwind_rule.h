/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rules of a page in the order and in the 32 bits that bpf/abi/unwind.h wants them in. */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"

/* Whether RULE is a narrow one, and *RET_BITS with what it is then. */
bool unwind_rule_narrow(const struct abi_unwind_rule *rule, uint32_t *ret_bits);
struct abi_unwind_rule unwind_rule_of_bits(uint32_t bits);
/* All but the CFA's offset, as a number to sort by. */
uint64_t unwind_rule_kind(const struct abi_unwind_rule *rule);
