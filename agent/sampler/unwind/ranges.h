/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ranges of a process or a file in the kernel's table: collected mapping by mapping, then
 * written as one run.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/mappings.h"
#include "agent/sampler/unwind/unwind.h"

struct ranges {
	struct unwind *unwind;
	size_t count;
	bool waiting; /* a module's index is not ready, but may come */
	int error;
};

/* A run in the kernel's table; count 0 = none. */
struct range_run {
	uint32_t first, count;
};

/* One collection at a time. ranges_write() returns the first error of all calls. */
void ranges_begin(struct ranges *r, struct unwind *u);
void ranges_add(struct ranges *r, const struct mapping *mapping);
int ranges_write(const struct ranges *r, struct range_run *ret_run);
void ranges_give(struct unwind *u, const struct range_run *run);

/* The part of a segment that a mapping of its module maps. */
struct ranges_part {
	uint64_t start, end; /* pc */
	uint64_t elf_addr; /* of start */
};
bool ranges_part_of(const struct mapping *mapping, const struct index_segment *segment,
	struct ranges_part *ret_part);
