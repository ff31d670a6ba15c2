// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Arguments and results at the sites of functions: what test_arguments.c loads. */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel_types.h"
#include "bpf/probes/fetch.bpf.h"
#include "tests/bpf/programs/arguments.h"

char arguments_license[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ARGUMENT_SITES);
	__type(key, __u32);
	__type(value, struct argument_site);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

SEC("uprobe")
int arguments_at_site(void *ctx)
{
	__u32 number = (__u32)bpf_get_attach_cookie(ctx);
	const struct argument_site *site = bpf_map_lookup_elem(&sites, &number);
	struct argument_event *event;
	__u64 pc = 0;

	if (!site || fetch_register(ctx, ABI_FETCH_PC, &pc))
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return 0;
	event->site = number;
	fetch_all(ctx, &site->set, pc - site->distance, &event->room);
	bpf_ringbuf_submit(event, 0);
	return 0;
}
