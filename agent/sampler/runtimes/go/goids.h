/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells the sampler how to read goroutine ids of Go processes: from a module's Go facts (index_go)
 * to the entry of the BPF map. One entry per live generation of a process whose program is Go and
 * whose offsets are known; the entry carries the generation's number, so that a goid read with
 * another program's offsets is recognized and left out, and the program's exec id once that is
 * known, so that the sampler does not use the offsets after an exec.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/sampler.h"
#include "symbolizer/index/facts.h"

/*
 * EXEC_ID: the program's, as in samples; NULL = not known yet. False when the facts do not suffice
 * (not Go, unknown version).
 */
bool goids_how(const struct index_go *go, uint32_t generation, const uint32_t *exec_id,
	struct abi_runtime_process *ret_how);
