/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/attach_probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/sampler/collect/mapping_probe.h"
#include "base/cleanup.h"
#include "bpf/abi/sample.h"

enum {
	TRACE_UPROBE_MULTI = 48, /* enum bpf_attach_type of Linux 6.6; older headers lack it */
	KERNEL_ENOTSUPP = 524, /* the kernel's ENOTSUPP, unknown to libc; not EOPNOTSUPP */
};

/* Only the kernel's BPF self-tests call it. Exists since Linux 5.5. */
static const char TEST_FUNCTION[] = "bpf_fentry_test1";

/* The part of union bpf_attr that BPF_LINK_CREATE reads for TRACE_UPROBE_MULTI. */
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

/* Loads a program that returns 0. */
static int attach_probe_load(
	enum bpf_prog_type type, unsigned int attach_type, uint32_t function_id)
{
	static const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		.expected_attach_type = (enum bpf_attach_type)attach_type,
		.attach_btf_id = function_id);
	int fd = bpf_prog_load(
		type, "attach_probe", "Dual BSD/GPL", program, ARRAY_SIZE(program), &options);

	return fd < 0 ? -errno : fd;
}

int attach_probe_uprobe_multi(void)
{
	static const char path[] = "/proc/self/exe";
	uint64_t address = (uintptr_t)attach_probe_uprobe_multi, offset;
	autoclose int program = attach_probe_load(BPF_PROG_TYPE_KPROBE, TRACE_UPROBE_MULTI, 0),
		      link = -1;
	struct uprobe_multi_link attr = {
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)&offset,
		.count = 1,
		.pid = (uint32_t)getpid(),
	};
	struct abi_mapping own;

	if (program < 0)
		return program;
	if (!mapping_probe_own(address, &own))
		return -ENOENT;
	attr.program_fd = (uint32_t)program;
	offset = address - own.start + own.file_off;
	link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return link < 0 ? -errno : 0;
}

int attach_probe_fentry(void)
{
	int function = libbpf_find_vmlinux_btf_id(TEST_FUNCTION, BPF_TRACE_FENTRY);
	autoclose int program = -1, link = -1;

	if (function < 0)
		return function;
	program = attach_probe_load(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, (uint32_t)function);
	if (program < 0)
		return program;
	link = bpf_raw_tracepoint_open(NULL, program);
	if (link >= 0)
		return 0;
	return errno == KERNEL_ENOTSUPP ? -EOPNOTSUPP : -errno;
}
