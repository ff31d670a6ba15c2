/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/admin.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/private_mount.h"

static const uint32_t ADMIN = UINT32_C(1) << CAP_SYS_ADMIN;

/* Adds it to, or removes it from, the effective set. Returns false if nothing changes. */
static bool set_effective(bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, sets) || !(sets[0].permitted & ADMIN) ||
		!(sets[0].effective & ADMIN) == !on)
		return false;
	sets[0].effective ^= ADMIN;
	return syscall(SYS_capset, &header, sets) == 0;
}

void admin_lay_down(void)
{
	if (prctl(PR_CAPBSET_READ, CAP_CHECKPOINT_RESTORE, 0, 0, 0) >= 0)
		(void)set_effective(false);
}

bool admin_take_up(void)
{
	return set_effective(true);
}

int admin_mount_open(const char *kind, const char *path)
{
	bool taken = admin_take_up();
	int fd = private_mount_open(kind, path);

	if (taken)
		admin_lay_down();
	return fd;
}
