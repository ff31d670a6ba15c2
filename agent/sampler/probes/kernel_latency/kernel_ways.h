/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The ways in which programs can be attached to kernel functions, best first. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kernel_way {
	KERNEL_WAY_TRAMPOLINES, /* fentry and fexit: cheapest, but a program for each function */
	KERNEL_WAY_SESSION, /* kprobe.multi, entry and return in one link (Linux 6.10) */
	KERNEL_WAY_MULTI, /* kprobe.multi, a link for entries and one for returns (5.18) */
	KERNEL_WAY_EVENTS, /* kprobes and kretprobes, an event for each */
	KERNEL_WAYS
};

/* As users see it: "fentry/fexit". */
const char *kernel_way_name(enum kernel_way way);
/*
 * Tries WAY, at a function that only the kernel's self-tests call. WITHOUT has the enum mechanism
 * values that are switched off. Returns 0, -EOPNOTSUPP if this kernel lacks it, or another negative
 * errno.
 */
int kernel_way_try(enum kernel_way way, uint32_t without);
/* The number of perf events at kernel functions as their type; a negative errno without them. */
int kernel_way_event_type(void);
/* Writes the kernel's lockdown mode. Returns false without lockdown, or if it cannot be read. */
bool kernel_ways_lockdown(char *mode, size_t size);
enum { KERNEL_WAYS_TEXT_BYTES = 512 };
/* Writes what is wrong with each way, and the lockdown mode if there is one. */
void kernel_ways_explain(uint32_t without, char text[KERNEL_WAYS_TEXT_BYTES]);
