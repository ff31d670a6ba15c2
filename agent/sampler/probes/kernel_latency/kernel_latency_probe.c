/* SPDX-License-Identifier: Apache-2.0 */
/* How long kernel functions take: the row. Its programs are those for the ways that work here. */
#include <bpf/libbpf.h>
#include <errno.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/kprobe_multi.h"
#include "agent/sampler/collect/object_constants.h"
#include "agent/sampler/probes/kernel_latency/kernel_copy.h"
#include "agent/sampler/probes/kernel_latency/kernel_latency.h"
#include "agent/sampler/probes/kernel_latency/kernel_ways.h"
#include "agent/sampler/probes/kernel_latency/preempt_count.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "bpf/abi/latency.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/kernel_latency.skel.h"
#include "bpf/probes/kernel_latency_stacks.skel.h"

static const struct {
	const char *program;
	enum kernel_way way;
	int type; /* expected attach type; 0 = as the object says */
} programs[] = {
	{ "kernel_entered", KERNEL_WAY_TRAMPOLINES, 0 },
	{ "kernel_returned", KERNEL_WAY_TRAMPOLINES, 0 },
	{ "kernel_in_session", KERNEL_WAY_SESSION, KPROBE_SESSION_TYPE },
	{ "kernel_at_entries", KERNEL_WAY_MULTI, KPROBE_MULTI_TYPE },
	{ "kernel_at_returns", KERNEL_WAY_MULTI, KPROBE_MULTI_TYPE },
	{ "kernel_at_event", KERNEL_WAY_EVENTS, 0 },
};

static bool kernel_latency_is_wanted(const struct collect_options *options)
{
	return options->latency && options->latency->kernel && !options->trace &&
	       !options->call_stacks;
}

static bool kernel_latency_stacks_is_wanted(const struct collect_options *options)
{
	return options->latency && options->latency->kernel && options->call_stacks;
}

/* Which ways work; a session replaces the two links. */
static void kernel_latency_find_ways(uint32_t without, bool works[KERNEL_WAYS])
{
	for (enum kernel_way way = 0; way < KERNEL_WAYS; way++)
		works[way] = !kernel_way_try(way, without);
	if (works[KERNEL_WAY_SESSION])
		works[KERNEL_WAY_MULTI] = false;
}

static int kernel_latency_configure_program(struct bpf_program *program, int type, bool works)
{
	int err = bpf_program__set_autoload(program, works);

	if (!err && works && type == KPROBE_SESSION_TYPE)
		err = kernel_copy_link_session(program);
	if (!err && type)
		err = bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)type);
	return err;
}

static int kernel_latency_choose_programs(
	const struct collect_options *options, struct bpf_object *object)
{
	bool works[KERNEL_WAYS];
	int err = 0;

	kernel_latency_find_ways(options->without, works);
	for (size_t i = 0; i < ARRAY_SIZE(programs) && !err; i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(object, programs[i].program);

		err = program ? kernel_latency_configure_program(
					program, programs[i].type, works[programs[i].way])
			      : -EBADMSG;
	}
	return err;
}

/* NULL if the object has none. */
static struct abi_latency_config *kernel_latency_settings(struct bpf_object *object)
{
	return object_constants(object, ".rodata.probe", sizeof(struct abi_latency_config));
}

int kernel_latency_configure_object(
	const struct collect_options *options, struct bpf_object *object)
{
	struct abi_latency_config *config = kernel_latency_settings(object);

	if (!config)
		return -EBADMSG;
	config->by_sets = options->latency->by_sets || options->latency->kernel_by_sets;
	config->follow = options->follow;
	config->own_env_end = options->latency->own_env_end;
	return kernel_latency_choose_programs(options, object);
}

/* ---- with stacks ---------------------------------------------------------------------------- */

static const void *kernel_latency_stacks_object(size_t *ret_bytes)
{
	return kernel_copy_prepare() ? NULL : kernel_latency_stacks_bpf__elf_bytes(ret_bytes);
}

/* The sections of programs that are copied do not say where they are attached. */
static int kernel_latency_set_target(struct bpf_program *program)
{
	bool trampoline = bpf_program__type(program) == BPF_PROG_TYPE_TRACING;

	if (!trampoline || !bpf_program__autoload(program))
		return 0;
	return bpf_program__set_attach_target(program, 0, "bpf_fentry_test1");
}

/* Without it, BPF goes by the stack on which a function is called. */
static int kernel_latency_link_preempt_count(
	struct bpf_object *object, struct abi_latency_config *config)
{
	struct preempt_count count;
	struct bpf_program *program;

	if (preempt_count_find(&count))
		return 0;
	bpf_object__for_each_program(program, object)
	{
		int err = kernel_copy_link_variable(
			program, ABI_LATENCY_PREEMPT_COUNT, count.variable);

		if (err)
			return err;
	}
	config->preempt_count_known = 1;
	config->preempt_count_off = count.off;
	return 0;
}

static int kernel_latency_stacks_configure(
	const struct collect_options *options, struct bpf_object *object)
{
	int err = kernel_latency_configure_object(options, object);
	struct bpf_program *program;

	if (!err)
		err = kernel_latency_link_preempt_count(object, kernel_latency_settings(object));
	bpf_object__for_each_program(program, object)
	{
		if (!err)
			err = kernel_latency_set_target(program);
	}
	return err;
}

const char *kernel_latency_probe_name(bool stacks)
{
	return stacks ? probe_kernel_latency_stacks.name : probe_kernel_latency.name;
}

const struct probe probe_kernel_latency = {
	.name = "kernel_latency",
	.object = kernel_latency_bpf__elf_bytes,
	.lender = "latency",
	.is_wanted = kernel_latency_is_wanted,
	.configure = kernel_latency_configure_object,
};

const struct probe probe_kernel_latency_stacks = {
	.name = "kernel_latency_stacks",
	.object = kernel_latency_stacks_object,
	.lender = "latency_stacks",
	.keeps_types = true, /* kernel_copy.h */
	.is_wanted = kernel_latency_stacks_is_wanted,
	.configure = kernel_latency_stacks_configure,
};
