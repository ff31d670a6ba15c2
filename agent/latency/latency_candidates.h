/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What --dry-run lists: the functions that patterns name, where they would be probed, and why
 * others cannot be. Plain data, made by whoever chose the functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct latency_candidate {
	/* Foreign bytes, borrowed; never NULL. */
	const char *name, *linkage, *binary;
	uint64_t
		address; /* ELF address of the entry; 0 = it exists only inlined, or the kernel's */
	uint32_t entry_count; /* of kernel functions, those with this name; 0 = one entry */
	uint32_t return_count;
	bool restarts; /* one more place is probed: where it begins again */
	uint32_t aliases; /* further names of the same code that patterns name */
	/* "" or the end of a sentence about the function: what is special about its probes. */
	const char *note;
	const char *refusal; /* the same: why it cannot be probed; NULL = it can */
	/* If it cannot be probed and exists only inlined: a call of it; else and if unknown "". */
	const char *caller, *file;
	uint32_t line; /* 0 = unknown */
	uint32_t calls; /* inlined ones */
};

struct latency_candidates {
	const struct latency_candidate *items;
	size_t count;
	uint64_t excluded; /* named, but left out by --exclude and --exclude-vendor */
};

/* A table for people. Returns the buffer's error. */
int latency_candidates_text(const struct latency_candidates *candidates, struct buffer *out);
/* One JSON object in one line. */
int latency_candidates_json(const struct latency_candidates *candidates, struct buffer *out);
