/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The label by which Pyroscope finds the samples of a span: `span_id`, 8 bytes in hexadecimal.
 * Programs set it as a label of their fibers (goroutines) under that name, as `span id`, or, for
 * older servers, as `profile_id`.
 */
#include "agent/sampler/profile/profile.h"
#include "pprof/pprof.h"

/*
 * Sets *RET_LABEL, whose text is valid as long as PROFILE, and returns 1; 0 if the fiber of SAMPLE
 * has none that is such an id.
 */
size_t span_label(const struct profile *profile, const struct profile_sample *sample,
	struct pprof_label *ret_label);
