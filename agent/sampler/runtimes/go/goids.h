/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How BPF reads goroutine ids: turns a module's Go facts (index_go) into the entry of the BPF map.
 * A goroutine is never guessed.
 */
#include <stdint.h>

#include "bpf/abi/runtime_go.h"
#include "symbolizer/index/runtime_go.h"

/*
 * LOAD_BIAS is that of the module in the process, NULL = not known. Returns -EAGAIN if it is
 * needed, -EOPNOTSUPP if the facts do not suffice (not Go, unknown version).
 */
int goids_how(const struct index_go *go, const uint64_t *load_bias, struct abi_runtime_go *ret_how);
