/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Adds names to unnamed locations of a foreign pprof profile. The caller provides the lookup;
 * locations that already have a name keep it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/commands/upload.h"
#include "symbolizer/index/index.h"

struct profile_names_options {
	/*
	 * Stores the frames at ADDRESS in mapping MAPPING (an index into the message), innermost
	 * first. Returns their number, 0 if the address is unknown.
	 */
	size_t (*look_up)(void *context, size_t mapping, uint64_t address,
		struct index_frame *ret_frames, size_t max);
	void *context;
	bool no_inlines, linkage_names;
};

struct profile_names_counts {
	size_t nameless; /* locations without a name in the input */
	size_t named; /* those that got a name */
};

/*
 * Adds functions, lines and strings to PROFILE's message and sets the has_* flags that are now
 * true. Returns -E2BIG if a limit is exceeded, -ENOMEM; after an error the message may only be
 * freed.
 */
int profile_names_add(struct pprof_read *profile, const struct profile_names_options *options,
	struct profile_names_counts *ret_counts);
