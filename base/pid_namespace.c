/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pid_namespace.h"

#include <errno.h>
#include <sys/stat.h>

/* PROC_PID_INIT_INO (include/linux/proc_ns.h): inode of the initial pid namespace. */
static const ino_t INITIAL = 0xeffffffc;

int pid_namespace_is_initial(bool *ret_initial)
{
	struct stat info;

	if (stat("/proc/self/ns/pid", &info))
		return -errno;
	*ret_initial = info.st_ino == INITIAL;
	return 0;
}

bool pid_namespace_is_contained(void)
{
	bool initial;

	return !pid_namespace_is_initial(&initial) && !initial;
}
