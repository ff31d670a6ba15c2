/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs the sampler over a recording of its host, without privileges and without waiting. The
 * sampler is the program's code; the loop, collect, the index builds and the index cache are
 * replaced at link time (replay_*.c), everything else through base/host.h.
 */
#include "base/buffer.h"
#include "tests/replay/recording.h"

struct replay_report {
	const uint8_t *expected, *got; /* profiles, decompressed */
	size_t expected_bytes, got_bytes;
};

typedef void replay_report_fn(void *context, const struct replay_report *report);

struct replay_result {
	unsigned int reports;
	uint64_t unanswered; /* questions without an answer in the recording */
	char first_unanswered[256];
	uint64_t samples;
	uint8_t *used; /* by record number: 1 = it was used; freed by the caller */
};

/*
 * Calls FN for each profile that the recorded run wrote; WITHOUT is enum mechanism values. Only one
 * replay at a time in a process. Returns -EBADMSG if the recording is invalid or the sampler did
 * not write a profile when the recorded run did.
 */
int replay_run(const struct recording *recording, uint32_t without, replay_report_fn *fn,
	void *context, struct replay_result *ret_result);
