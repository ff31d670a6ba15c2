/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/process_uprobes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/collect/uprobe_multi.h"
#include "base/cleanup.h"
#include "bpf/abi/sample.h"

enum { STACK_BYTES = 64 << 10 };

/* Who calls the function, with flags of clone(). */
enum {
	OTHER_PROCESS = CLONE_VM | CLONE_VFORK,
	OTHER_THREAD = CLONE_VM | CLONE_VFORK | CLONE_THREAD | CLONE_SIGHAND,
};

/* Its first instruction is an ordinary one. */
__attribute__((noinline)) static void process_uprobes_target(volatile int *calls)
{
	*calls += 1;
}

static int process_uprobes_call(void *calls)
{
	process_uprobes_target(calls);
	return 0;
}

/* Loads a program that counts in the first element of MAP. */
static int process_uprobes_load(int map)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
			.dst_reg = BPF_REG_1,
			.src_reg = BPF_PSEUDO_MAP_VALUE,
			.imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 1 },
		{ .code = BPF_STX | BPF_DW | BPF_ATOMIC,
			.dst_reg = BPF_REG_1,
			.src_reg = BPF_REG_2,
			.imm = BPF_ADD },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		.expected_attach_type = (enum bpf_attach_type)UPROBE_MULTI_TYPE);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "process_uprobe", "Dual BSD/GPL", program,
		ARRAY_SIZE(program), &options);

	return fd < 0 ? -errno : fd;
}

static int process_uprobes_attach(int program)
{
	uint64_t address = (uintptr_t)process_uprobes_target, offset;
	const struct uprobe_multi uprobes = {
		.path = "/proc/self/exe",
		.offsets = &offset,
		.count = 1,
		.pid = (uint32_t)getpid(),
	};
	struct abi_mapping own;

	if (!mapping_probe_own(address, &own))
		return -ENOENT;
	offset = address - own.start + own.file_off;
	return uprobe_multi_attach(program, &uprobes);
}

/* Has the function called, by a thread that ends, or by a process that shares our memory. */
static int process_uprobes_have_called(int flags, char *stack)
{
	int calls = 0;
	pid_t pid = clone(process_uprobes_call, stack + STACK_BYTES, flags, &calls);

	if (pid < 0)
		return -errno;
	if (flags == OTHER_PROCESS && waitpid(pid, NULL, __WCLONE) < 0)
		return -errno;
	return calls == 1 ? 0 : -ECHILD;
}

static int process_uprobes_count(int map, char *stack)
{
	uint64_t of_process = 0, of_thread = 0;
	uint32_t zero = 0;
	int err = process_uprobes_have_called(OTHER_PROCESS, stack);

	if (!err && bpf_map_lookup_elem(map, &zero, &of_process))
		err = -errno;
	if (!err)
		err = process_uprobes_have_called(OTHER_THREAD, stack);
	if (!err && bpf_map_lookup_elem(map, &zero, &of_thread))
		err = -errno;
	if (err)
		return err;
	return of_process == 0 && of_thread == 1 ? 0 : -EOPNOTSUPP;
}

int process_uprobes_probe(void)
{
	autoclose int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "process_uprobe", sizeof(uint32_t),
			      sizeof(uint64_t), 1, NULL),
		      program = -1, link = -1;
	void *stack;
	int err;

	if (map < 0)
		return -errno;
	program = process_uprobes_load(map);
	if (program < 0)
		return program;
	link = process_uprobes_attach(program);
	if (link < 0)
		return link;
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		return -errno;
	err = process_uprobes_count(map, stack);
	munmap(stack, STACK_BYTES);
	return err;
}
