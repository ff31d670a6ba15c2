/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The load-time settings of bpf/probes/off_cpu.bpf.c alone. */
#include "bpf/abi/sample.h"

struct abi_off_cpu_config {
	abi_u32 chance; /* of 2^32 waits so many are sampled; 0 = all */
};
