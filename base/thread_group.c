/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread_group.h"

#include <stdio.h>

#include "base/cleanup.h"

uint32_t thread_group_of(uint32_t id)
{
	autofclose FILE *status = NULL;
	char line[256];
	unsigned int group;

	snprintf(line, sizeof(line), "/proc/%u/status", id);
	status = fopen(line, "re");
	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "Tgid: %u", &group) == 1)
			return group;
	}
	return 0;
}
