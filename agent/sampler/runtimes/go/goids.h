/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How BPF reads goroutine ids: turns a module's Go facts (index_go) into the entry of the BPF map.
 * A goroutine is never guessed.
 */
#include <stdbool.h>

#include "bpf/abi/runtime_go.h"
#include "symbolizer/index/runtime_go.h"

/* Returns false if the facts do not suffice (not Go, unknown version). */
bool goids_how(const struct index_go *go, struct abi_runtime_go *ret_how);
