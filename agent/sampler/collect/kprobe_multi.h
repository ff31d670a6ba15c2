/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A link of one BPF program to many kernel functions (BPF_TRACE_KPROBE_MULTI, Linux 5.18), or to
 * their entries and returns (a session, 6.10), made by the system call itself: libbpf has sessions
 * from 1.5 on.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* enum bpf_attach_type; older headers lack them. */
enum { KPROBE_MULTI_TYPE = 42, KPROBE_SESSION_TYPE = 56 };

struct kprobe_multi {
	const uint64_t *addresses; /* kaddr of the functions; NULL = by `name` */
	const char *name; /* of the one function */
	const uint64_t *cookies; /* of the same functions; NULL = all 0 */
	size_t count;
	bool at_return; /* not in a session, which has both */
	bool session;
};

/*
 * PROGRAM was loaded with the type as its expected type. Returns the link's descriptor or a
 * negative errno, and then no function is attached.
 */
int kprobe_multi_attach(int program, const struct kprobe_multi *kprobes);
/* The calls that the kernel could not show to LINK's program; 0 if it does not count them. */
uint64_t kprobe_multi_missed(int link);
