/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Load-time settings specific to bpf/probes/off_cpu.bpf.c. */
#include "bpf/abi/sample.h"

struct abi_off_cpu_config {
	abi_u32 chance; /* probability that a wait is sampled, in units of 2^-32; 0 = all are */
};
