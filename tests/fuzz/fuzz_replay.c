/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of the sampler's host: whatever rings, /proc and mapped files contain, and at
 * whatever time, the sampler must not read beyond it, leak, or run for ever. The contents of the
 * profiles do not matter.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"
#include "tests/replay/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *context, const struct replay_report *report)
{
	(void)context;
	(void)report;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct replay_result result = { 0 };
	struct recording recording;

	log_configure(LOG_ERROR, false);
	if (recording_parse(data, size, &recording))
		return 0;
	(void)replay_run(&recording, 0, ignore, NULL, &result);
	free(result.used);
	recording_deinit(&recording);
	return 0;
}
