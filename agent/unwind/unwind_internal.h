/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The room's own struct, shared by unwind.c and finish.c. */
#include "agent/unwind/pages.h"
#include "agent/unwind/unwind.h"

struct unwind {
	struct unwind_options options;
	struct pages pages;
	struct space ranges;
	struct map processes; /* generation's number → struct known_process */
	struct abi_unwind_range *scratch; /* of the process being written */
	size_t scratch_capacity;
	uint32_t module_turn; /* counts what modules became known */
	uint32_t turn; /* counts seconds, about */
	bool full; /* of processes */
	bool paused;
	bool told_full; /* what the kernel was told */
};

/* A segment of MAPPING's module that is mapped there. */
struct unwind_part {
	uint64_t start, end; /* pc */
	uint64_t elf_addr; /* of start */
};
bool unwind_part_of(const struct mapping *mapping, const struct index_segment *segment,
	struct unwind_part *ret_part);
