/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/build_share.h"

#include "base/cleanup.h"

enum {
	MAX_CHILDREN = 2,
	MAX_WAITING = 1024,
	SMALL_WAITING = 64,
	/* A waiting build's file and the root directory of its process. */
	WAITING_DESCRIPTORS = 2,
	/* The same, the index, both ends of the child's socket, /dev/null, and debug files. */
	RUNNING_DESCRIPTORS = 10,
	/* The server and some clients, the store, the build ID reader, files that are being read.
	 */
	OTHER_DESCRIPTORS = 16,
	/* The sampler's maps, programs and fixed files, and its perf events on each CPU. */
	SAMPLER_DESCRIPTORS = 52,
	CPU_DESCRIPTORS = 3,
};

struct build_share build_share_of(unsigned int left)
{
	unsigned int builds = left > OTHER_DESCRIPTORS ? left - OTHER_DESCRIPTORS : 0;
	struct build_share share = { .children = MAX_CHILDREN };

	if (builds < MAX_CHILDREN * (RUNNING_DESCRIPTORS + WAITING_DESCRIPTORS))
		share.children = 1;
	builds -= MIN(builds, share.children * RUNNING_DESCRIPTORS);
	share.waiting = MIN(MAX(builds / WAITING_DESCRIPTORS, 1U), (unsigned int)MAX_WAITING);
	share.is_small = share.waiting < SMALL_WAITING;
	return share;
}

unsigned int build_share_left_of(unsigned int limit, unsigned int cpus)
{
	unsigned int used = SAMPLER_DESCRIPTORS + MIN(cpus, limit) * CPU_DESCRIPTORS;

	return limit > used ? limit - used : 0;
}
