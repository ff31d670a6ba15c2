// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How long functions take: runs at the entry and at each return instruction of the probed ones. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/latency_calls.bpf.h"

char latency_license[] SEC("license") = "Dual BSD/GPL";

/* Only one of the two is loaded: for a link to many sites, if the kernel has that (6.6). */
SEC("uprobe")
int latency_at_sites(void *ctx)
{
	struct latency_measured measured;

	latency_hit(ctx, 0, &measured);
	return 0;
}

SEC("uprobe")
int latency_at_site(void *ctx)
{
	struct latency_measured measured;

	latency_hit(ctx, 0, &measured);
	return 0;
}
