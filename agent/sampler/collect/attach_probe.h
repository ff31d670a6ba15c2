/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks whether this kernel can attach BPF programs to functions: attaches an empty program in
 * each way and detaches it again. Sampling needs neither.
 */

/*
 * One link for many user functions (BPF_TRACE_UPROBE_MULTI, Linux 6.6), tried on a function of this
 * program, for this process only. Returns 0 or the system call's negative errno.
 */
int attach_probe_uprobe_multi(void);
/* A trampoline at a kernel function's entry (BPF_TRACE_FENTRY), tried on the kernel's test one. */
int attach_probe_fentry(void);
