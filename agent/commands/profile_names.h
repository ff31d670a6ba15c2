/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Gives the locations of somebody else's profile the names they lack. Where names come from is its
 * caller's business; what has a name keeps it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/commands/upload.h"
#include "symbolizer/index/index.h"

struct profile_names_options {
	/*
	 * The frames at ADDRESS of mapping number MAPPING of the message, innermost first; returns
	 * their number, 0 when nothing is known.
	 */
	size_t (*look_up)(void *context, size_t mapping, uint64_t address,
		struct index_frame *ret_frames, size_t max);
	void *context;
	bool no_inlines, linkage_names;
};

struct profile_names_counts {
	size_t nameless; /* locations that had no name */
	size_t named; /* of them, those that have one now */
};

/*
 * Functions, lines and strings are added to PROFILE's message, and has_* flags that have become
 * true are set. -E2BIG over a limit, -ENOMEM: the message can be freed and nothing else.
 */
int profile_names_add(struct upload_profile *profile, const struct profile_names_options *options,
	struct profile_names_counts *ret_counts);
