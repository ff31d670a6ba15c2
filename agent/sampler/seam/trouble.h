/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What last went wrong in the sampler, for whoever looks at the agent. Times: CLOCK_REALTIME. */
#include <stdint.h>

/* Samples or kernel records that were lost, as noticed by one look (once a second). */
struct trouble_loss {
	uint64_t real_ns; /* 0 = nothing was lost */
	uint64_t samples, records;
	const char *reason; /* of most samples, as in fathom_samples_lost_total; NULL = none */
};

/* Index builds that failed for lack of something that has nothing to do with their files. */
struct trouble_builds {
	uint64_t real_ns; /* 0 = there were none */
	uint64_t builds;
	int error; /* a negative errno: what was short */
};

struct sampler_trouble {
	struct trouble_loss lost;
	struct trouble_builds not_started;
	struct trouble_builds no_space; /* for the index in the cache directory */
};
