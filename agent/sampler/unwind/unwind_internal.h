/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The room's own struct, shared by its files. */
#include "agent/sampler/unwind/files.h"
#include "agent/sampler/unwind/pages.h"
#include "agent/sampler/unwind/unwind.h"

struct unwind {
	struct unwind_options options;
	struct pages pages;
	struct space ranges;
	struct map processes; /* generation's number → struct known_process */
	struct files files;
	struct abi_unwind_range *scratch; /* of the process or file being written */
	size_t scratch_capacity;
	uint32_t module_turn; /* counts what modules became known */
	uint32_t turn; /* counts seconds, about */
	uint32_t version; /* of the last process's ranges that were written */
	bool full; /* of processes */
	bool paused;
	bool told_full; /* what the kernel was told */
};

/* Whether the kernel finds mappings by itself. */
static inline bool unwind_by_file(const struct unwind *u)
{
	return u->options.target.set_file;
}
