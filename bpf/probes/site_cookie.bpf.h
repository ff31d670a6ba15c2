/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Which place of user code a program runs at: the cookie that user space gave it. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/site_path.h"
#include "bpf/kernel_types.h"
#include "bpf/task.bpf.h"

/*
 * Before 5.15. While programs run, the kernel keeps the event for its own use, the path included.
 * Returns ABI_SITE_NO_COOKIE if that cannot be read.
 */
static __always_inline __u64 site_cookie_in_path(struct task_struct *task)
{
	struct uprobe_dispatch_data *dispatched;
	struct trace_uprobe *event;
	char characters[ABI_SITE_PATH_CHARACTERS];
	const char *path;

	/* Without uprobes nothing can be attached, which is a clearer error than one of loading. */
	if (!bpf_core_field_exists(task->utask) || !bpf_core_type_exists(struct trace_uprobe))
		return ABI_SITE_NO_COOKIE;
	dispatched = (struct uprobe_dispatch_data *)BPF_CORE_READ(task, utask, vaddr);
	event = BPF_CORE_READ(dispatched, tu);
	path = BPF_CORE_READ(event, filename);
	if (!path ||
		bpf_probe_read_kernel(characters, sizeof(characters), path + ABI_SITE_PATH_PREFIX))
		return ABI_SITE_NO_COOKIE;
	return abi_site_path_cookie(characters);
}

static __always_inline __u64 site_cookie(void *ctx, struct task_struct *task, bool in_path)
{
	if (!in_path && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return bpf_get_attach_cookie(ctx);
	return site_cookie_in_path(task);
}
