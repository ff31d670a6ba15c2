/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs the sampler over a recording of its host, without privileges and without waiting. What is
 * the sampler's own is the program's code; the loop, collect, the index builds and the index cache
 * are replaced when a test is linked (replay_*.c), the rest through base/host.h.
 */
#include "base/buffer.h"
#include "tests/replay/recording.h"

struct replay_report {
	const uint8_t *expected, *got; /* profiles, uncompressed */
	size_t expected_bytes, got_bytes;
};

typedef void replay_report_fn(void *context, const struct replay_report *report);

struct replay_result {
	unsigned int reports;
	uint64_t unanswered; /* questions that were not asked when it was recorded */
	char first_unanswered[256];
	uint64_t samples;
	uint8_t *used; /* by record: 1 = it was an answer; the caller's to free */
};

/*
 * Calls FN for each profile that the recorded run wrote. One at a time in a process. -EBADMSG: the
 * recording makes no sense, or the sampler did not come to write a profile where it should.
 */
int replay_run(const struct recording *recording, replay_report_fn *fn, void *context,
	struct replay_result *ret_result);
