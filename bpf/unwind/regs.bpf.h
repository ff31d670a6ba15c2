/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Registers of the sampled thread: one header per architecture. */
#if defined(__TARGET_ARCH_x86)
#include "bpf/unwind/regs_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "bpf/unwind/regs_arm64.bpf.h"
#else
#error "this architecture is not supported"
#endif
