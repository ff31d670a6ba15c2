/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an index says about a Go program: how to read goroutine ids. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbolizer/index/index.h"

enum { INDEX_RUNTIME_GO = 0 /* struct index_runtime.kind */ };

/* The facts of struct index_runtime, and `reserved`, which is not stored. */
struct index_go {
	uint32_t version; /* 1.21 → 21; 0 = not a Go program */
	uint32_t supported; /* 1: the fields below are known */
	int64_t g_tls_offset; /* from the thread pointer; or ABI_GO_G_IN_REGISTER */
	uint32_t g_m, m_curg, g_goid;
	uint32_t g_stack_hi, g_sched_bp, g_labels; /* g_labels 0 = unknown */
	uint32_t labels_kind; /* 0 none, 1 map, 2 slice */
	uint32_t reserved;
};

_Static_assert(offsetof(struct index_go, reserved) == INDEX_RUNTIME_WORDS * sizeof(uint32_t),
	"Go facts are written as they are");

/* Returns false if the module is not a Go program. */
static inline bool index_go(const struct index *index, struct index_go *ret_go)
{
	const uint32_t *facts = index_runtime_facts(index, INDEX_RUNTIME_GO);

	if (!facts)
		return false;
	*ret_go = (struct index_go){ 0 };
	memcpy(ret_go, facts, INDEX_RUNTIME_WORDS * sizeof(*facts));
	return true;
}
