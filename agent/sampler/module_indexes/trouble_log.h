/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Log lines about what delays indexes: debuginfod servers that do not answer, builds that were
 * interrupted, could not be started or had no space. A server's failure and recovery are reported
 * once each; of builds, the first line comes at once, later ones at most once a minute, with the
 * sum since the last one. One thread.
 */
#include <stdbool.h>

#include "agent/sampler/seam/trouble.h"
#include "base/log.h"
#include "symbolizer/builds/builds.h"

struct debuginfod;

/* What was noticed and what the log has reported; zero it at first. */
struct trouble_log {
	bool servers_failing, servers_wrong;
	struct builds_setbacks setbacks, logged;
	struct log_rate interrupted_log, hanging_log, not_started_log, no_space_log;
	struct trouble_builds not_started, no_space; /* noticed last */
};

/* Call about once a second. DEBUGINFOD: NULL = no server is used. */
void trouble_log_check_servers(struct trouble_log *log, const struct debuginfod *debuginfod);
void trouble_log_check_builds(struct trouble_log *log, const struct builds *builds);
