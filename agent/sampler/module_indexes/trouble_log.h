/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Log lines about what delays indexes: debuginfod servers that do not answer, builds that were
 * interrupted or could not be started. Each change is reported once. One thread.
 */
#include <stdbool.h>

#include "symbolizer/builds/builds.h"

struct debuginfod;

/* What the log has reported; zero it at first. */
struct trouble_log {
	bool servers_failing, servers_wrong;
	struct builds_setbacks setbacks;
};

/* Call about once a second. DEBUGINFOD: NULL = no server is used. */
void trouble_log_check_servers(struct trouble_log *log, const struct debuginfod *debuginfod);
void trouble_log_check_builds(struct trouble_log *log, const struct builds *builds);
