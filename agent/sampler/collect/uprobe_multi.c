/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/uprobe_multi.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The part of union bpf_attr that BPF_LINK_CREATE reads for UPROBE_MULTI_TYPE. */
struct uprobe_multi_link {
	uint32_t program_fd;
	uint32_t target_fd; /* 0 */
	uint32_t attach_type;
	uint32_t link_flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t reference_counters;
	uint64_t cookies;
	uint32_t count;
	uint32_t flags;
	uint32_t pid;
	uint32_t padding;
};

/* struct bpf_link_info of such a link, as it is from Linux 6.8 on. */
struct uprobe_multi_info {
	uint32_t type, id, program_id, padding;
	uint64_t path, offsets, reference_counters, cookies;
	uint32_t path_size, count, flags, pid;
};

int uprobe_multi_attach(int program, const struct uprobe_multi *uprobes)
{
	struct uprobe_multi_link attr = {
		.program_fd = (uint32_t)program,
		.attach_type = UPROBE_MULTI_TYPE,
		.path = (uintptr_t)uprobes->path,
		.offsets = (uintptr_t)uprobes->offsets,
		.cookies = (uintptr_t)uprobes->cookies,
		.count = (uint32_t)uprobes->count,
		.pid = uprobes->pid,
	};
	int link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return link < 0 ? -errno : link;
}

bool uprobe_multi_lost_process(int link)
{
	struct uprobe_multi_info info = { 0 };
	uint32_t bytes = sizeof(info);

	return !bpf_obj_get_info_by_fd(link, &info, &bytes) && bytes >= sizeof(info) && !info.pid;
}
