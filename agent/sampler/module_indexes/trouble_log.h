/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Log lines about what delays indexes: debuginfod servers that do not answer, builds that were
 * interrupted or could not be started. Each change is reported once. One thread.
 */
#include <stdbool.h>

#include "symbolizer/builds/builds.h"

struct debuginfod;

/* Zero at first: what the log has reported. */
struct trouble_log {
	bool servers_failing, servers_wrong;
	struct builds_setbacks setbacks;
};

/* About once a second. DEBUGINFOD: NULL = no server is asked. */
void trouble_log_check_servers(struct trouble_log *log, const struct debuginfod *debuginfod);
void trouble_log_check_builds(struct trouble_log *log, const struct builds *builds);
