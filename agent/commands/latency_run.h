/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct latency_plan;

/*
 * Returns a negative errno after printing the reason to stderr. *RET_COMMAND_STATUS is set in any
 * case: held_command_exit_status() of CMD, 0 without CMD.
 */
int latency_run(const struct latency_plan *plan, int *ret_command_status);
