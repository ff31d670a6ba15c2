/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/runtimes/go/goids.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the member at OFFSET is WORD of the run of words that begins at BIRTH. */
static bool goids_is_at(uint32_t birth, enum abi_go_birth word, uint32_t offset)
{
	return offset == birth + word * sizeof(uint64_t);
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
	return 0;
}
