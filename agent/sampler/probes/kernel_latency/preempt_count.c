/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/kernel_latency/preempt_count.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

enum { UNNAMED_DEPTH = 4 };

static void preempt_count_free_btf(struct btf **btf)
{
	btf__free(*btf);
}

/* Finds a member of STRUCTURE, also in unnamed members of it. */
static bool preempt_count_find_member(const struct btf *btf, const struct btf_type *structure,
	const char *name, uint32_t *ret_off, int depth)
{
	for (uint32_t i = 0; i < btf_vlen(structure); i++) {
		const struct btf_member *member = &btf_members(structure)[i];
		const struct btf_type *type = btf__type_by_id(btf, member->type);
		const char *own = btf__name_by_offset(btf, member->name_off);
		uint32_t off = btf_member_bit_offset(structure, i) / 8, within = 0;

		if (own && !strcmp(own, name)) {
			*ret_off = off;
			return true;
		}
		if (own && !*own && type && btf_is_composite(type) && depth < UNNAMED_DEPTH &&
			preempt_count_find_member(btf, type, name, &within, depth + 1)) {
			*ret_off = off + within;
			return true;
		}
	}
	return false;
}

/* A variable of its own until 6.1 and from 6.15 on. Returns the number of its type. */
static int preempt_count_find_variable(const struct btf *btf, uint32_t *ret_off)
{
	int id = btf__find_by_name_kind(btf, "__preempt_count", BTF_KIND_VAR);
	int hot = btf__find_by_name_kind(btf, "pcpu_hot", BTF_KIND_STRUCT);
	const struct btf_type *type = hot < 0 ? NULL : btf__type_by_id(btf, (uint32_t)hot);

	*ret_off = 0;
	if (id > 0)
		return id;
	if (!type || !preempt_count_find_member(btf, type, "preempt_count", ret_off, 0))
		return -ENOENT;
	return btf__find_by_name_kind(btf, "pcpu_hot", BTF_KIND_VAR);
}

/* Whether the kernel loads a program that takes the variable's address on this CPU. */
static bool preempt_count_is_readable(int variable)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
			.dst_reg = BPF_REG_1,
			.src_reg = BPF_PSEUDO_BTF_ID,
			.imm = variable },
		{ 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_this_cpu_ptr },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	autoclose int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "preempt_count", "Dual BSD/GPL",
		program, ARRAY_SIZE(program), NULL);

	return fd >= 0;
}

int preempt_count_find(struct preempt_count *ret_count)
{
	autocall(preempt_count_free_btf) struct btf *btf = btf__load_vmlinux_btf();
	int variable = btf ? preempt_count_find_variable(btf, &ret_count->off) : -ENOENT;

	if (variable <= 0 || !preempt_count_is_readable(variable))
		return -EOPNOTSUPP;
	ret_count->variable = (uint32_t)variable;
	return 0;
}
