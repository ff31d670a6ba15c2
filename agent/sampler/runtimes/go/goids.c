/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/runtimes/go/goids.h"

#include <stddef.h>
#include <stdint.h>

/* Without them there are goroutine ids all the same. */
static void goids_set_labels(const struct index_go *go, struct abi_runtime_go *how)
{
	if (!go->g_labels || go->labels_kind > ABI_GO_LABELS_SLICE)
		return;
	how->g_labels = go->g_labels;
	how->labels_kind = go->labels_kind;
}

bool goids_how(const struct index_go *go, struct abi_runtime_go *ret_how)
{
	/* An index is untrusted: offsets of 0 would read wrong words as ids. */
	if (!go || !go->version || !go->supported)
		return false;
	if (!go->g_tls_offset || !go->g_m || !go->m_curg || !go->g_goid)
		return false;
	*ret_how = (struct abi_runtime_go){
		.g_tls_offset = (uint64_t)go->g_tls_offset,
		.g_m = go->g_m,
		.m_curg = go->m_curg,
		.g_goid = go->g_goid,
	};
	goids_set_labels(go, ret_how);
	return true;
}
