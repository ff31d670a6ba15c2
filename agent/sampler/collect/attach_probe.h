/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether this kernel lets BPF programs be attached to functions: each way is tried with a program
 * that does nothing, and undone. Sampling needs neither.
 */

/*
 * One link for many user functions (BPF_TRACE_UPROBE_MULTI, Linux 6.6), on a function of this
 * program, for this process alone. 0, or the system call's error.
 */
int attach_probe_uprobe_multi(void);
/* A trampoline at the entry of a kernel function (BPF_TRACE_FENTRY), on one made for tests. */
int attach_probe_fentry(void);
