/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The share of index builds in the descriptors that this process may open. Builds that wait keep
 * their files open; if these took all descriptors, no build could start.
 */
#include <stdbool.h>

struct build_share {
	unsigned int children; /* builds that run at once, at least 1 */
	unsigned int waiting; /* builds that wait at once, at least 1 */
	bool is_small; /* builds will wait for each other */
};

/* LEFT: how many descriptors can still be opened once the rings are open. */
struct build_share build_share_of(unsigned int left);
/* An estimate of LEFT for a process with LIMIT that has opened none yet, on a machine with CPUS. */
unsigned int build_share_left_of(unsigned int limit, unsigned int cpus);
