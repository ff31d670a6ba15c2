/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

struct latency_plan;

/* What became of CMD. */
struct latency_ended {
	int exec_error; /* it could not be executed: a negative errno; 0 = it could */
	bool command_ended;
	int command_status; /* from waitpid(), if it has ended */
};

/* Returns a negative errno after printing the reason to stderr. */
int latency_run(const struct latency_plan *plan, struct latency_ended *ret_ended);
