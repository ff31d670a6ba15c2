/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/runtimes/go/goids.h"

#include <stddef.h>

bool goids_how(const struct index_go *go, uint32_t generation, const uint32_t *exec_id,
	struct abi_runtime_process *ret_how)
{
	/* An index is a foreign file: offsets of 0 would read the wrong words and call them ids. */
	if (!go || !go->version || !go->supported || !generation)
		return false;
	if (!go->g_tls_offset || !go->g_m || !go->m_curg || !go->g_goid)
		return false;
	*ret_how = (struct abi_runtime_process){
		.kind = ABI_RUNTIME_GO,
		.generation = generation,
		.exec_id = exec_id ? *exec_id : 0,
		.exec_known = exec_id != NULL,
		.go.g_tls_offset = (uint64_t)go->g_tls_offset,
		.go.g_m = go->g_m,
		.go.m_curg = go->m_curg,
		.go.g_goid = go->g_goid,
	};
	return true;
}
