/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/sampler_options.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The inode of /proc/self/ns/pid in the machine's first pid namespace (PROC_PID_INIT_INO). */
static const ino_t INITIAL_PIDNS = 0xeffffffc;

/* How deep our pid namespace is: NSpid lists one pid per level. */
static uint32_t pidns_level(void)
{
	struct stat info;
	char line[256];
	uint32_t level = 0;
	autofclose FILE *status = NULL;

	if (!stat("/proc/self/ns/pid", &info) && info.st_ino == INITIAL_PIDNS)
		return 0;
	status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		for (const char *at = line + 6; *at; at++)
			level += *at == '\t';
	}
	/* /proc shows the levels from its own mount's namespace down: at least one below the first.
	 */
	return level ? level : 1;
}

void sampler_options_common(struct abi_sampler_config *filter)
{
	filter->read_goids = 1;
	filter->self_tgid = (uint32_t)getpid();
	filter->pidns_level = pidns_level();
}
