/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/seam/window_latency.h"

const char *window_latency_state_name(enum window_latency_state state)
{
	static const char *const names[WINDOW_LATENCY_STATES] = {
		[WINDOW_LATENCY_WAITING] = "waiting",
		[WINDOW_LATENCY_MEASURED] = "measured",
		[WINDOW_LATENCY_REFUSED] = "refused",
		[WINDOW_LATENCY_SUSPENDED] = "suspended",
		[WINDOW_LATENCY_REMOVED] = "removed",
	};

	return state < WINDOW_LATENCY_STATES ? names[state] : "";
}
