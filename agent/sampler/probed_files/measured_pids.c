/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probed_files/measured_pids.h"

#include "base/cleanup.h"

enum { ENDING_TICKS = 2 };

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

/* Its end is not to be waited for. Returns whether it was. */
static bool measured_pids_lives(struct measured_pids *pids, uint32_t pid)
{
	for (size_t i = 0; i < pids->ending_count; i++) {
		if (pids->ending[i].pid != pid)
			continue;
		/* In order, the oldest first. */
		for (pids->ending_count--; i < pids->ending_count; i++)
			pids->ending[i] = pids->ending[i + 1];
		return true;
	}
	return false;
}

bool measured_pids_add(struct measured_pids *pids, uint32_t pid)
{
	(void)measured_pids_lives(pids, pid);
	if (measured_pids_have(pids, pid))
		return false;
	if (pids->count == ARRAY_SIZE(pids->items) && pids->ending_count)
		(void)measured_pids_remove(pids, pids->ending[0].pid);
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
	(void)measured_pids_lives(pids, pid);
	pids->items[i] = pids->items[--pids->count];
	return true;
}

bool measured_pids_end(struct measured_pids *pids, uint32_t pid)
{
	bool changed = false;

	if (!measured_pids_have(pids, pid))
		return false;
	(void)measured_pids_lives(pids, pid);
	if (pids->ending_count == ARRAY_SIZE(pids->ending))
		changed = measured_pids_remove(pids, pids->ending[0].pid);
	pids->ending[pids->ending_count++] =
		(struct measured_pid_ending){ .pid = pid, .ticks = ENDING_TICKS };
	return changed;
}

bool measured_pids_begin(struct measured_pids *pids, uint32_t pid)
{
	return measured_pids_lives(pids, pid) && measured_pids_remove(pids, pid);
}

bool measured_pids_tick(struct measured_pids *pids)
{
	bool changed = false;

	for (size_t i = 0; i < pids->ending_count; i++)
		pids->ending[i].ticks--;
	while (pids->ending_count && !pids->ending[0].ticks)
		changed |= measured_pids_remove(pids, pids->ending[0].pid);
	return changed;
}
