/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A link of one BPF program to many places of user code (BPF_TRACE_UPROBE_MULTI, Linux 6.6), made
 * by the system call itself: libbpf has it from 1.3 on.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UPROBE_MULTI_TYPE = 48 /* enum bpf_attach_type of Linux 6.6; older headers lack it */ };

struct uprobe_multi {
	const char *path; /* of the file */
	const uint64_t *offsets; /* in the file */
	const uint64_t *cookies; /* of the same places; NULL = all 0 */
	size_t count;
	uint32_t pid; /* 0 = all processes */
};

/*
 * PROGRAM, loaded with UPROBE_MULTI_TYPE as its expected type, runs at all places. Returns the
 * link's descriptor or a negative errno, and then no place is attached.
 */
int uprobe_multi_attach(int program, const struct uprobe_multi *uprobes);
/*
 * Whether the process that LINK is for, with `pid`, is gone or was replaced: the kernel knows it by
 * its first thread, whose place another one takes if that executes a program. False before 6.8.
 */
bool uprobe_multi_lost_process(int link);
