/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How BPF reads goroutine ids: from a module's Go facts (index_go) to the entry of the BPF map.
 * Facts that do not suffice give none: a goroutine is never guessed.
 */
#include <stdbool.h>

#include "bpf/abi/runtime_go.h"
#include "symbolizer/index/facts.h"

/* False when the facts do not suffice (not Go, unknown version). */
bool goids_how(const struct index_go *go, struct abi_runtime_go *ret_how);
