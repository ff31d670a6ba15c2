/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probed_files/measured_pids.h"

#include "base/cleanup.h"

/* The place of PID; the count if it is not there. */
static size_t measured_pids_find(const struct measured_pids *pids, uint32_t pid)
{
	size_t i = 0;

	while (i < pids->count && pids->items[i] != pid)
		i++;
	return i;
}

bool measured_pids_have(const struct measured_pids *pids, uint32_t pid)
{
	return measured_pids_find(pids, pid) < pids->count;
}

bool measured_pids_add(struct measured_pids *pids, uint32_t pid)
{
	if (measured_pids_have(pids, pid))
		return false;
	if (pids->count == ARRAY_SIZE(pids->items)) {
		pids->refused++;
		return false;
	}
	pids->items[pids->count++] = pid;
	return true;
}

bool measured_pids_remove(struct measured_pids *pids, uint32_t pid)
{
	size_t i = measured_pids_find(pids, pid);

	if (i == pids->count)
		return false;
	pids->items[i] = pids->items[--pids->count];
	return true;
}
