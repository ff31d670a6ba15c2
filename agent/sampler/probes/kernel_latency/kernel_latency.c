/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/kernel_latency/kernel_latency.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/kprobe_multi.h"
#include "agent/sampler/probes/kernel_latency/kernel_links.h"
#include "base/cleanup.h"

struct kernel_latency {
	struct kernel_programs programs;
	bool stacks;
};

struct kernel_attached {
	enum kernel_way way;
	struct kernel_links links;
};

typedef int kernel_links_fn(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_target *targets, size_t count);

/* ---- life ----------------------------------------------------------------------------------- */

/* *RET_PROGRAM becomes NULL if it was not loaded. */
static int kernel_latency_find(
	struct bpf_object *object, const char *name, const struct bpf_program **ret_program)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program)
		return -EBADMSG;
	*ret_program = bpf_program__autoload(program) ? program : NULL;
	return 0;
}

static int kernel_latency_find_all(struct bpf_object *object, struct kernel_programs *programs)
{
	const struct {
		const char *name;
		const struct bpf_program **program;
	} all[] = {
		{ "kernel_entered", &programs->entered },
		{ "kernel_returned", &programs->returned },
		{ "kernel_in_session", &programs->session },
		{ "kernel_at_entries", &programs->entries },
		{ "kernel_at_returns", &programs->returns },
		{ "kernel_at_event", &programs->event },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all) && !err; i++)
		err = kernel_latency_find(object, all[i].name, all[i].program);
	return err;
}

int kernel_latency_create(
	struct bpf_object *object, bool stacks, struct kernel_latency **ret_latency)
{
	struct kernel_latency *k = calloc(1, sizeof(*k));
	int err = k ? kernel_latency_find_all(object, &k->programs) : -ENOMEM;

	if (err) {
		free(k);
		return err;
	}
	k->stacks = stacks;
	*ret_latency = k;
	return 0;
}

void kernel_latency_destroy(struct kernel_latency *k)
{
	free(k);
}

static bool kernel_latency_has(const struct kernel_latency *k, enum kernel_way way)
{
	const struct bpf_program *const programs[KERNEL_WAYS] = {
		[KERNEL_WAY_TRAMPOLINES] = k->programs.entered,
		[KERNEL_WAY_SESSION] = k->programs.session,
		[KERNEL_WAY_MULTI] = k->programs.entries,
		[KERNEL_WAY_EVENTS] = k->programs.event,
	};

	return programs[way] != NULL;
}

bool kernel_latency_can_attach(const struct kernel_latency *k)
{
	for (enum kernel_way way = 0; way < KERNEL_WAYS; way++)
		if (kernel_latency_has(k, way))
			return true;
	return false;
}

/* ---- attaching ------------------------------------------------------------------------------ */

static const struct {
	kernel_links_fn *attach;
	size_t limit; /* of targets */
} kernel_ways[KERNEL_WAYS] = {
	[KERNEL_WAY_TRAMPOLINES] = { kernel_links_trampolines, KERNEL_TRAMPOLINES_MAX },
	[KERNEL_WAY_SESSION] = { kernel_links_multi, SIZE_MAX },
	[KERNEL_WAY_MULTI] = { kernel_links_multi, SIZE_MAX },
	[KERNEL_WAY_EVENTS] = { kernel_links_events, KERNEL_EVENTS_MAX },
};

static size_t kernel_latency_limit(const struct kernel_latency *k, enum kernel_way way)
{
	size_t limit = kernel_ways[way].limit;

	return k->stacks && limit != SIZE_MAX ? MIN(limit, (size_t)KERNEL_COPIES_WITH_STACKS_MAX)
					      : limit;
}

/* The first way from WAY on that works for so many targets; KERNEL_WAYS = none. */
static enum kernel_way kernel_latency_next_way(
	const struct kernel_latency *k, enum kernel_way way, size_t count)
{
	while (way < KERNEL_WAYS &&
		(!kernel_latency_has(k, way) || count > kernel_latency_limit(k, way)))
		way++;
	return way;
}

/*
 * Leaves all functions to the next way, if there is one, when no function could be attached, or not
 * all to trampolines, which fewer functions can have: all are measured alike.
 */
static int kernel_latency_attach_all(const struct kernel_latency *k,
	const struct kernel_target *targets, size_t count, struct kernel_attached *attached)
{
	enum kernel_way way = kernel_latency_next_way(k, 0, count);
	int err = -EOPNOTSUPP;

	while (way < KERNEL_WAYS) {
		struct kernel_links *links = &attached->links;
		enum kernel_way next = kernel_latency_next_way(k, way + 1, count);

		attached->way = way;
		err = kernel_ways[way].attach(links, &k->programs, targets, count);
		if (!err && !links->count)
			err = links->refused_count ? links->refused[0].err : -ENOENT;
		if (next == KERNEL_WAYS || err == -EINTR ||
			(!err && !(way == KERNEL_WAY_TRAMPOLINES && links->refused_count)))
			return err;
		kernel_links_close(links);
		way = next;
	}
	return err;
}

static void kernel_latency_explain(const struct kernel_latency *k, size_t count, int err,
	enum kernel_way way, char problem[KERNEL_PROBLEM_BYTES])
{
	if (!kernel_latency_can_attach(k))
		kernel_ways_explain(0, problem);
	else if (err == -E2BIG)
		snprintf(problem, KERNEL_PROBLEM_BYTES,
			"%zu functions, but this kernel attaches them one by one, so that at most "
			"%zu are possible%s (kprobe.multi, Linux 5.18 with CONFIG_FPROBE, has no "
			"such limit)",
			count, kernel_latency_limit(k, KERNEL_WAY_EVENTS),
			k->stacks ? " with their callers" : "");
	else
		snprintf(problem, KERNEL_PROBLEM_BYTES, "%s: %s", kernel_way_name(way),
			strerror(-err));
}

int kernel_latency_attach(struct kernel_latency *k, const struct kernel_target *targets,
	size_t count, struct kernel_attached **ret_attached, char problem[KERNEL_PROBLEM_BYTES])
{
	struct kernel_attached *attached = calloc(1, sizeof(*attached));
	int err = attached ? 0 : -ENOMEM;

	problem[0] = 0;
	if (!err && kernel_latency_can_attach(k) &&
		kernel_latency_next_way(k, 0, count) == KERNEL_WAYS)
		err = -E2BIG;
	if (!err)
		err = kernel_latency_attach_all(k, targets, count, attached);
	if (!err) {
		*ret_attached = attached;
		return 0;
	}
	if (attached)
		kernel_latency_explain(k, count, err, attached->way, problem);
	kernel_latency_detach(attached);
	return err;
}

void kernel_latency_detach(struct kernel_attached *attached)
{
	if (attached)
		kernel_links_close(&attached->links);
	free(attached);
}

pid_t kernel_latency_detach_begin(struct kernel_attached *attached)
{
	pid_t closer = kernel_links_close_begin(&attached->links);

	free(attached);
	return closer;
}

enum kernel_way kernel_latency_way(const struct kernel_attached *attached)
{
	return attached->way;
}

const struct kernel_refused *kernel_latency_refused(
	const struct kernel_attached *attached, size_t *ret_count)
{
	*ret_count = attached->links.refused_count;
	return attached->links.refused;
}

/* ---- what was missed ------------------------------------------------------------------------ */

/* How often a program could not run because another one, or itself, was running on its CPU. */
static uint64_t kernel_latency_recursions(int program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t bytes = sizeof(info);

	return bpf_obj_get_info_by_fd(program, &info, &bytes) ? 0 : info.recursion_misses;
}

uint64_t kernel_latency_missed(const struct kernel_attached *attached)
{
	const struct kernel_links *links = &attached->links;
	uint64_t missed = 0;

	for (size_t i = 0; i < links->entry_count; i++)
		missed += kernel_latency_recursions(links->entries[i]);
	for (size_t i = 0; i < links->count && attached->way != KERNEL_WAY_TRAMPOLINES &&
			   attached->way != KERNEL_WAY_EVENTS;
		i++)
		missed += kprobe_multi_missed(links->links[i]);
	return missed;
}

uint64_t kernel_latency_missed_by_shared(const struct kernel_latency *k)
{
	uint64_t missed = 0;

	if (k->programs.session)
		missed += kernel_latency_recursions(bpf_program__fd(k->programs.session));
	if (k->programs.entries)
		missed += kernel_latency_recursions(bpf_program__fd(k->programs.entries));
	return missed;
}
