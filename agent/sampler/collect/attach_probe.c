/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/attach_probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/collect/kprobe_multi.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/collect/uprobe_multi.h"
#include "base/cleanup.h"
#include "bpf/abi/sample.h"

/* The kernel's ENOTSUPP, unknown to libc; not EOPNOTSUPP. */
enum { KERNEL_ENOTSUPP = 524 };

/* Only the kernel's BPF self-tests call it. Exists since Linux 5.5. */
static const char TEST_FUNCTION[] = "bpf_fentry_test1";

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
	uint64_t address = (uintptr_t)attach_probe_uprobe_multi, offset;
	autoclose int program = attach_probe_load(BPF_PROG_TYPE_KPROBE, UPROBE_MULTI_TYPE, 0),
		      link = -1;
	struct uprobe_multi uprobes = {
		.path = "/proc/self/exe",
		.offsets = &offset,
		.count = 1,
		.pid = (uint32_t)getpid(),
	};
	struct abi_mapping own;

	if (program < 0)
		return program;
	if (!mapping_probe_own(address, &own))
		return -ENOENT;
	offset = address - own.start + own.file_off;
	link = uprobe_multi_attach(program, &uprobes);
	return link < 0 ? link : 0;
}

int attach_probe_kprobe_multi(bool session)
{
	autoclose int program = attach_probe_load(BPF_PROG_TYPE_KPROBE,
			      session ? KPROBE_SESSION_TYPE : KPROBE_MULTI_TYPE, 0),
		      link = -1;

	if (program < 0)
		return program;
	link = kprobe_multi_attach(program,
		&(struct kprobe_multi){ .name = TEST_FUNCTION, .count = 1, .session = session });
	return link < 0 ? link : 0;
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
