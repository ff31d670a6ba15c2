/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/kernel_latency/kernel_copy.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
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

/*
 * With what libbpf has loaded the programs of these sections: among it, where their functions begin
 * and the types of these. All of it is libbpf's, until the object is closed; its probe keeps the
 * types open (probe.h).
 */
static struct kernel_template {
	const char *section;
	enum bpf_prog_type type;
	enum bpf_attach_type attach_type;
	bool prepared;
	const struct bpf_program *program; /* NULL = not loaded yet */
	struct bpf_prog_load_opts options;
} kernel_templates[] = {
	{ .section = "kernel_copy.entered", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY },
	{ .section = "kernel_copy.returned", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT },
	{ .section = "kernel_copy.event", BPF_PROG_TYPE_KPROBE },
};

static int kernel_copy_note(
	struct bpf_program *program, struct bpf_prog_load_opts *options, long number)
{
	kernel_templates[number].program = program;
	kernel_templates[number].options = *options;
	return 0;
}

int kernel_copy_prepare(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(kernel_templates); i++) {
		struct kernel_template *template = &kernel_templates[i];
		LIBBPF_OPTS(libbpf_prog_handler_opts, handler, .cookie = (long)i,
			.prog_prepare_load_fn = kernel_copy_note);
		int id = template->prepared
				 ? 0
				 : libbpf_register_prog_handler(template->section, template->type,
					   template->attach_type, &handler);

		if (id < 0)
			return id;
		template->prepared = true;
	}
	return 0;
}

/* What a copy of PROGRAM is to be loaded with, besides its function. */
static struct bpf_prog_load_opts kernel_copy_options(const struct bpf_program *program)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		.expected_attach_type = bpf_program__expected_attach_type(program));

	for (size_t i = 0; i < ARRAY_SIZE(kernel_templates); i++) {
		const struct bpf_prog_load_opts *known = &kernel_templates[i].options;

		if (kernel_templates[i].program != program)
			continue;
		options.prog_btf_fd = known->prog_btf_fd;
		options.func_info = known->func_info;
		options.func_info_cnt = known->func_info_cnt;
		options.func_info_rec_size = known->func_info_rec_size;
	}
	return options;
}

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
	struct bpf_prog_load_opts options = kernel_copy_options(program);
	size_t count;
	autofree struct bpf_insn *instructions = kernel_copy_instructions(program, &count);
	int fd;

	if (!instructions)
		return -ENOMEM;
	if (!kernel_copy_set_cookie(instructions, count, copy->cookie))
		return -EBADMSG;
	options.attach_btf_id = copy->function;
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

/* ---- variables ------------------------------------------------------------------------------ */

static bool kernel_copy_replace_variable(
	struct bpf_insn *instructions, size_t count, int32_t placeholder, int32_t variable)
{
	bool found = false;

	for (size_t i = 0; i + 1 < count; i++) {
		struct bpf_insn *at = &instructions[i];

		if (at->code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (!at->src_reg && at->imm == placeholder) {
			at->src_reg = BPF_PSEUDO_BTF_ID;
			at->imm = variable;
			found = true;
		}
		i++;
	}
	return found;
}

int kernel_copy_link_variable(struct bpf_program *program, int32_t placeholder, uint32_t variable)
{
	size_t count;
	autofree struct bpf_insn *instructions = kernel_copy_instructions(program, &count);

	if (!instructions)
		return -ENOMEM;
	if (!kernel_copy_replace_variable(instructions, count, placeholder, (int32_t)variable))
		return -EBADMSG;
	return bpf_program__set_insns(program, instructions, count);
}
