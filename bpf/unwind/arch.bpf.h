/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The architecture-specific parts of unwinding, one header each. */
#if defined(__TARGET_ARCH_arm64) || (!defined(__BPF__) && defined(__aarch64__))
#include "bpf/unwind/arch_arm64.bpf.h"
#else
#include "bpf/unwind/arch_x86.bpf.h"
#endif
