/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an index says about a Go program: how to read goroutine ids. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbolizer/index/index.h"

enum { INDEX_RUNTIME_GO = 0 /* struct index_runtime.kind */ };

/* Why goroutines of a Go program cannot be read. */
enum index_go_refusal {
	INDEX_GO_SUPPORTED = 0,
	INDEX_GO_UNKNOWN_VERSION, /* no release is known by that name, and there is no DWARF */
	INDEX_GO_NEW_VERSION, /* newer than the releases that were measured */
	INDEX_GO_CONTRADICTION, /* its DWARF differs from what was measured of that release */
	INDEX_GO_NO_TLS, /* where g is in thread-local storage was not found */
};

/*
 * The facts of struct index_runtime, and `reserved`, which is not stored. Offsets are of members of
 * runtime.g and runtime.m, in bytes.
 */
struct index_go {
	uint32_t version; /* 1.21 → 21; 0 = not a Go program */
	uint8_t supported; /* 1: the fields below are known */
	uint8_t refusal; /* enum index_go_refusal, if not supported */
	uint8_t labels_kind; /* 0 none, 1 map, 2 slice */
	uint8_t g_tls_in_word; /* 1: not fixed at link time (a shared library) */
	/*
	 * Of g, from the thread pointer; or ABI_GO_G_IN_REGISTER. In a word: the ELF address of
	 * the word in which the dynamic linker stores the offset.
	 */
	int64_t g_tls_offset;
	uint16_t g_m, m_curg, g_goid;
	uint16_t g_stack_hi, g_sched_bp, g_labels; /* g_labels 0 = unknown */
	uint16_t g_status; /* atomicstatus, 32 bits */
	uint16_t g_gopc, g_startpc; /* pc behind the go statement, and of the first function */
	uint16_t g_parent_goid; /* 0 = goroutines do not know it (before 1.21) */
	uint16_t g_waitreason; /* 8 bits: why the goroutine waits, a number of each version's own */
	uint16_t m_lockedg; /* the goroutine that called LockOSThread */
	uint16_t padding[2]; /* 0 */
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
