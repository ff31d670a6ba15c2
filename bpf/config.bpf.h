/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The load-time settings that every object has. User space writes them between opening and loading
 * an object, by the section's name. As they are read-only data, the verifier drops code that they
 * switch off.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sampler.h"

const volatile struct abi_sampler_config config SEC(".rodata.config") = {
	.max_frames = ABI_MAX_FRAMES,
	.unfinished_allowance = ABI_UNFINISHED_STACK_BYTES,
	.page_shift = 12,
};
