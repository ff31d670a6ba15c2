/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The room's own struct, shared by its files. */
#include "agent/sampler/unwind/files.h"
#include "agent/sampler/unwind/pages.h"
#include "agent/sampler/unwind/unwind.h"
#include "bpf/unwind/step.bpf.h"

struct unwind {
	struct unwind_options options;
	struct pages pages;
	struct space ranges;
	struct map processes; /* generation's number → struct known_process */
	struct files files;
	struct abi_unwind_range *scratch; /* of the process or file being written */
	size_t scratch_capacity;
	uint32_t modules_epoch; /* counts calls of unwind_modules_changed() */
	uint32_t tick; /* counts calls of unwind_tick(), about one a second */
	uint32_t version; /* of the process entry written last */
	bool full; /* the table of processes is */
	bool paused; /* by unwind_pause() */
	bool reported_full; /* what was last reported to the kernel */
};

/* What is known of PC's code. Sets *RET_WAITS if its module's index is not ready. */
enum unwind_place unwind_place_of(struct unwind *u, const struct mappings *mappings, uint64_t pc,
	struct abi_unwind_rule *ret_rule, const struct mapping **ret_waits);

/* Whether the kernel's table has files (VMA lookup) and not processes. */
static inline bool unwind_by_file(const struct unwind *u)
{
	return u->options.target.set_file;
}
