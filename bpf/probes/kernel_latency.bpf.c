// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long kernel functions take. The histograms, the functions and the counters are those of
 * latency.bpf.c (user space reuses its maps).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/kernel_programs.bpf.h"

char kernel_latency_license[] SEC("license") = "Dual BSD/GPL";
