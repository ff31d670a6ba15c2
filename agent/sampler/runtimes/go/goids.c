/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/runtimes/go/goids.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/abi/fiber_facts.h"

enum { GO_MINORS = 1 << (ABI_FIBER_WAIT_BITS - ABI_FIBER_WAIT_REASON_BITS) };

/* Whether the member at OFFSET is WORD of the run of words that begins at BEGIN. */
static bool goids_is_at(uint32_t begin, uint32_t word, uint32_t offset)
{
	return offset == begin + word * sizeof(uint64_t);
}

/*
 * What a goroutine is, and its labels. Without them there are ids all the same: a version that has
 * the members in other places has none.
 */
static void goids_set_birth(const struct index_go *go, struct abi_runtime_go *how)
{
	uint32_t birth = go->g_gopc - ABI_GO_CREATED_AT * (uint32_t)sizeof(uint64_t);

	if (go->g_gopc <= go->g_goid || !goids_is_at(birth, ABI_GO_START, go->g_startpc))
		return;
	if (go->g_parent_goid && !goids_is_at(birth, ABI_GO_PARENT, go->g_parent_goid))
		return;
	how->g_birth = birth;
	how->has_parent = go->g_parent_goid != 0;
	if (goids_is_at(birth, ABI_GO_LABELS, go->g_labels) &&
		go->labels_kind <= ABI_GO_LABELS_SLICE)
		how->labels_kind = go->labels_kind;
}

/* Why a goroutine waits is said only by the words that all known versions have. */
static void goids_set_waits(const struct index_go *go, struct abi_runtime_go *how)
{
	uint32_t head = go->g_goid - ABI_GO_ID * (uint32_t)sizeof(uint64_t);

	if (go->version >= GO_MINORS || !go->m_lockedg || go->g_goid <= go->g_status ||
		!goids_is_at(head, ABI_GO_STATUS, go->g_status) ||
		!goids_is_at(head, ABI_GO_WAIT_REASON, go->g_waitreason))
		return;
	how->m_lockedg = go->m_lockedg;
	how->minor = go->version;
}

int goids_how(const struct index_go *go, const uint64_t *load_bias, struct abi_runtime_go *ret_how)
{
	/* An index is untrusted: offsets of 0 would read wrong words as ids. */
	if (!go || !go->version || !go->supported)
		return -EOPNOTSUPP;
	if (!go->g_tls_offset || !go->g_m || !go->m_curg || !go->g_goid)
		return -EOPNOTSUPP;
	if (go->g_tls_in_word && !load_bias)
		return -EAGAIN;
	*ret_how = (struct abi_runtime_go){
		.g_m = go->g_m,
		.m_curg = go->m_curg,
		.g_goid = go->g_goid,
	};
	if (go->g_tls_in_word)
		ret_how->g_tls_word = *load_bias + (uint64_t)go->g_tls_offset;
	else
		ret_how->g_tls_offset = (uint64_t)go->g_tls_offset;
	goids_set_birth(go, ret_how);
	goids_set_waits(go, ret_how);
	return 0;
}
