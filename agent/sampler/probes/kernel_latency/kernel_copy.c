/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/kernel_latency/kernel_copy.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/latency.h"

static void kernel_copy_free_btf(struct btf **btf)
{
	btf__free(*btf);
}

/* The caller's own copy of PROGRAM's instructions; NULL without memory. */
static struct bpf_insn *kernel_copy_instructions(
	const struct bpf_program *program, size_t *ret_count)
{
	size_t count = bpf_program__insn_cnt(program);
	struct bpf_insn *copy = calloc(count + 1, sizeof(*copy));

	if (copy)
		memcpy(copy, bpf_program__insns(program), count * sizeof(*copy));
	*ret_count = count;
	return copy;
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Returns whether the cookie was found: an instruction of two slots. */
static bool kernel_copy_set_cookie(struct bpf_insn *instructions, size_t count, uint64_t cookie)
{
	bool found = false;

	for (size_t i = 0; i + 1 < count; i++) {
		struct bpf_insn *at = &instructions[i];

		if (at->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (!at->src_reg && at->imm == ABI_LATENCY_OWN_COOKIE && !at[1].imm) {
			at[0].imm = (int32_t)(uint32_t)cookie;
			at[1].imm = (int32_t)(cookie >> 32);
			found = true;
		}
		i++;
	}
	return found;
}

int kernel_copy_load(const struct bpf_program *program, const struct kernel_copy *copy)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		.expected_attach_type = bpf_program__expected_attach_type(program),
		.attach_btf_id = copy->function);
	size_t count;
	autofree struct bpf_insn *instructions = kernel_copy_instructions(program, &count);
	int fd;

	if (!instructions)
		return -ENOMEM;
	if (!kernel_copy_set_cookie(instructions, count, copy->cookie))
		return -EBADMSG;
	fd = bpf_prog_load(bpf_program__type(program), "kernel_latency", "Dual BSD/GPL",
		instructions, count, &options);
	return fd < 0 ? -errno : fd;
}

/* ---- sessions ------------------------------------------------------------------------------- */

static bool kernel_copy_set_call(
	struct bpf_insn *instructions, size_t count, int32_t placeholder, int32_t function)
{
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		struct bpf_insn *at = &instructions[i];

		if (at->code == (BPF_JMP | BPF_CALL) && at->imm == placeholder) {
			at->src_reg = BPF_PSEUDO_KFUNC_CALL;
			at->imm = function;
			found = true;
		}
	}
	return found;
}

int kernel_copy_link_session(struct bpf_program *program)
{
	autocall(kernel_copy_free_btf) struct btf *btf = btf__load_vmlinux_btf();
	size_t count;
	autofree struct bpf_insn *instructions = kernel_copy_instructions(program, &count);
	int cookie, is_return;

	if (!btf)
		return -EOPNOTSUPP;
	if (!instructions)
		return -ENOMEM;
	cookie = btf__find_by_name_kind(btf, "bpf_session_cookie", BTF_KIND_FUNC);
	is_return = btf__find_by_name_kind(btf, "bpf_session_is_return", BTF_KIND_FUNC);
	if (cookie < 0 || is_return < 0)
		return -EOPNOTSUPP;
	if (!kernel_copy_set_call(instructions, count, ABI_LATENCY_CALL_SESSION_COOKIE, cookie) ||
		!kernel_copy_set_call(
			instructions, count, ABI_LATENCY_CALL_SESSION_IS_RETURN, is_return))
		return -EBADMSG;
	return bpf_program__set_insns(program, instructions, count);
}
