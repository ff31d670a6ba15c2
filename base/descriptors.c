/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#include "base/cleanup.h"

void descriptors_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

unsigned int descriptors_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= UINT_MAX)
		return UINT_MAX;
	return (unsigned int)limit.rlim_cur;
}

unsigned int descriptors_left(void)
{
	unsigned int limit = descriptors_limit();
	/* The kernel gives the lowest number that is free. */
	autoclose int lowest = open("/", O_PATH | O_CLOEXEC);

	if (limit == UINT_MAX)
		return UINT_MAX;
	return lowest >= 0 && (unsigned int)lowest < limit ? limit - (unsigned int)lowest : 0;
}
