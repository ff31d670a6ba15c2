// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fetches at one place: what test_fetch.c loads. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/fetch.bpf.h"

char fetches_license[] SEC("license") = "Dual BSD/GPL";

struct abi_fetch_set set;
struct abi_fetch_room room;
__u64 entry_pc, hits;

SEC("uprobe")
int fetch_at_entry(void *ctx)
{
	fetch_all(ctx, &set, entry_pc, &room);
	hits++;
	return 0;
}
