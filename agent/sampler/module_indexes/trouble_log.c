/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/module_indexes/trouble_log.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "symbolizer/debuginfod/debuginfod.h"

static const uint64_t BUILDS_LOG_EVERY_NS = UINT64_C(60000000000);

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

static void trouble_log_interrupted(struct trouble_log *log)
{
	uint64_t builds = log->setbacks.interrupted - log->logged.interrupted;

	if (!builds || !log_rate_allows_every(&log->interrupted_log, BUILDS_LOG_EVERY_NS))
		return;
	log_warn("index builds were killed, or memory was short; trying again later", "builds=%llu",
		(unsigned long long)builds);
	log->logged.interrupted = log->setbacks.interrupted;
}

static void trouble_log_hanging(struct trouble_log *log)
{
	uint64_t builds = log->setbacks.hanging - log->logged.hanging;

	if (!builds || !log_rate_allows_every(&log->hanging_log, BUILDS_LOG_EVERY_NS))
		return;
	log_warn("files did not answer while they were indexed; trying again later", "builds=%llu",
		(unsigned long long)builds);
	log->logged.hanging = log->setbacks.hanging;
}

static void trouble_log_not_started(struct trouble_log *log)
{
	uint64_t builds = log->setbacks.not_started - log->logged.not_started;

	if (!builds || !log_rate_allows_every(&log->not_started_log, BUILDS_LOG_EVERY_NS))
		return;
	log_warn("index builds cannot be started, trying again later", "builds=%llu error=\"%s\"",
		(unsigned long long)builds, strerror(-log->setbacks.start_error));
	log->logged.not_started = log->setbacks.not_started;
}

static void trouble_log_no_space(struct trouble_log *log)
{
	uint64_t builds = log->setbacks.no_space - log->logged.no_space;

	if (!builds || !log_rate_allows_every(&log->no_space_log, BUILDS_LOG_EVERY_NS))
		return;
	log_warn("no space for module indexes in the cache directory, trying again later",
		"builds=%llu error=\"%s\"", (unsigned long long)builds,
		strerror(-log->setbacks.space_error));
	log->logged.no_space = log->setbacks.no_space;
}

/* TROUBLE remembers the last of BUILDS, which failed since the last look. */
static void trouble_remember(struct trouble_builds *trouble, uint64_t builds, int error)
{
	if (!builds)
		return;
	*trouble = (struct trouble_builds){
		.real_ns = clock_real_ns(),
		.builds = builds,
		.error = error,
	};
}

void trouble_log_check_builds(struct trouble_log *log, const struct builds *builds)
{
	struct builds_setbacks now = builds_setbacks(builds), before = log->setbacks;

	trouble_remember(&log->not_started, now.not_started - before.not_started, now.start_error);
	trouble_remember(&log->no_space, now.no_space - before.no_space, now.space_error);
	log->setbacks = now;
	trouble_log_interrupted(log);
	trouble_log_hanging(log);
	trouble_log_not_started(log);
	trouble_log_no_space(log);
}
