// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps that all probes share, without a program: see the header. */
#include "bpf/descendants_map.bpf.h"
#include "bpf/shared.bpf.h"

char shared_license[] SEC("license") = "Dual BSD/GPL";
