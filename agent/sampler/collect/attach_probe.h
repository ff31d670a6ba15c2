/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks whether this kernel can attach BPF programs to functions: attaches an empty program in
 * each way and detaches it again. Sampling needs neither.
 */
#include <stdbool.h>

/*
 * One link for many user functions (BPF_TRACE_UPROBE_MULTI, Linux 6.6), tried on a function of this
 * program, for this process only. Returns 0 or the system call's negative errno.
 */
int attach_probe_uprobe_multi(void);
/*
 * One link for many kernel functions: at their entries (Linux 5.18), or as SESSION at entries and
 * returns (6.10). Tried on the kernel's test function.
 */
int attach_probe_kprobe_multi(bool session);
/* A trampoline at a kernel function's entry (BPF_TRACE_FENTRY), tried on the kernel's test one. */
int attach_probe_fentry(void);
