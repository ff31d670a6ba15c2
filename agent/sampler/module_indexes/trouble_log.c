/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/module_indexes/trouble_log.h"

#include <string.h>

#include "base/log.h"
#include "symbolizer/debuginfod/debuginfod.h"

void trouble_log_check_servers(struct trouble_log *log, const struct debuginfod *debuginfod)
{
	struct debuginfod_state state;

	if (!debuginfod)
		return;
	state = debuginfod_state(debuginfod);
	if (state.failures && !log->servers_failing)
		log_warn("debuginfod does not respond, trying again later",
			"error=\"%s\" http_status=%u", debuginfod_explain(state.last.error),
			state.last.http_status);
	else if (!state.failures && log->servers_failing)
		log_info("debuginfod responds again", "%s", "");
	log->servers_failing = state.failures > 0;
	if (state.wrong && !log->servers_wrong)
		log_warn("debuginfod sent files that do not match the request or cannot be read, "
			 "ignoring them",
			"%s", "");
	log->servers_wrong = state.wrong > 0;
}

void trouble_log_check_builds(struct trouble_log *log, const struct builds *builds)
{
	struct builds_setbacks now = builds_setbacks(builds), reported = log->setbacks;

	if (now.interrupted > reported.interrupted)
		log_warn("index builds were killed, or memory was short; trying again later",
			"builds=%llu",
			(unsigned long long)(now.interrupted - reported.interrupted));
	if (now.not_started > reported.not_started)
		log_warn("index builds cannot be started, trying again later",
			"builds=%llu error=\"%s\"",
			(unsigned long long)(now.not_started - reported.not_started),
			strerror(-now.start_error));
	log->setbacks = now;
}
