/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/kprobe_multi.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AT_RETURN = 1 /* BPF_F_KPROBE_MULTI_RETURN */ };

/* The part of union bpf_attr that BPF_LINK_CREATE reads for these types. */
struct kprobe_multi_link {
	uint32_t program_fd;
	uint32_t target_fd; /* 0 */
	uint32_t attach_type;
	uint32_t link_flags;
	uint32_t flags;
	uint32_t count;
	uint64_t names;
	uint64_t addresses;
	uint64_t cookies;
};

/* The beginning of struct bpf_link_info of such a link, as it is from Linux 6.7 on. */
struct kprobe_multi_info {
	uint32_t type, id, program_id, padding;
	uint64_t addresses;
	uint32_t count, flags;
	uint64_t missed;
};

int kprobe_multi_attach(int program, const struct kprobe_multi *kprobes)
{
	struct kprobe_multi_link attr = {
		.program_fd = (uint32_t)program,
		.attach_type = kprobes->session ? KPROBE_SESSION_TYPE : KPROBE_MULTI_TYPE,
		.flags = kprobes->at_return ? AT_RETURN : 0,
		.count = (uint32_t)kprobes->count,
		.names = kprobes->addresses ? 0 : (uintptr_t)&kprobes->name,
		.addresses = (uintptr_t)kprobes->addresses,
		.cookies = (uintptr_t)kprobes->cookies,
	};
	int link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return link < 0 ? -errno : link;
}

uint64_t kprobe_multi_missed(int link)
{
	struct kprobe_multi_info info = { 0 };
	uint32_t bytes = sizeof(info);

	return bpf_obj_get_info_by_fd(link, &info, &bytes) ? 0 : info.missed;
}
