/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/latency_profile.h"

#include <stdio.h>
#include <string.h>

#include "agent/commands/output_file.h"
#include "agent/report/report.h"
#include "agent/sampler/sampler_latency.h"
#include "base/buffer.h"
#include "base/cleanup.h"

enum { PROFILE_LIMIT_BYTES = 1 << 30 };

static const uint64_t TABLES_WAIT_NS = UINT64_C(10000000000);
static const uint64_t NAMES_WAIT_NS = UINT64_C(120000000000);
/* Each call is a record, which fathom reads; see docs/latency.md for what that costs. */
static const uint64_t MAX_CALLS_PER_SECOND = 50000;

void latency_profile_options(struct sampler_options *options, struct latency_options *probe)
{
	options->collect.call_stacks = true;
	probe->max_calls_per_second = MAX_CALLS_PER_SECOND;
	options->collect.user = true;
	/* The values are nanoseconds, each as it was measured. */
	options->collect.period = 1;
	options->collect.frequency_hz = 0;
}

int latency_profile_prepare(struct sampler *sampler)
{
	return sampler_prepare(sampler, TABLES_WAIT_NS);
}

void latency_profile_finish(struct sampler *sampler)
{
	unsigned int pending;

	(void)sampler_finish_debug(sampler, NAMES_WAIT_NS);
	pending = sampler_pending_builds(sampler);
	if (pending)
		fprintf(stderr,
			"fathom latency: %u modules are not indexed yet: their frames have no "
			"names\n",
			pending);
}

static int latency_profile_make(
	struct sampler *sampler, struct buffer *out, struct report_summary *ret_summary)
{
	struct sealed_window window = sampler_last_window(sampler);
	const struct report_options options = report_window_options(&window);
	const struct report_sources sources = report_window_sources(
		&window, sampler_symbolize(sampler), sampler_metrics_to_add(sampler));

	return report_pprof(&sources, &options, out, ret_summary);
}

/* The reasons are counted by record, the whole by call: some may have no reason here. */
static void latency_profile_say_missing(const struct sampler *sampler)
{
	const struct metrics *metrics = sampler_metrics(sampler);
	struct latency_counts counts = { 0 };
	uint64_t stacks = sampler_latency_stacks(sampler);

	if (latency_read_counts(sampler_latency(sampler), &counts) || counts.calls <= stacks)
		return;
	fprintf(stderr,
		"fathom latency: stacks not taken: %llu of %llu measured calls (no memory to walk "
		"in: %llu, ring buffer full: %llu, memory limit: %llu)\n",
		(unsigned long long)(counts.calls - stacks), (unsigned long long)counts.calls,
		(unsigned long long)counts.stacks_busy,
		(unsigned long long)metrics_get(metrics, METRIC_LOST_RING_FULL),
		(unsigned long long)metrics_get(metrics, METRIC_LOST_MEMORY_LIMIT));
}

static void latency_profile_say_kernel(const struct sampler *sampler)
{
	struct latency_counts counts = { 0 };

	if (latency_read_counts(sampler_latency(sampler), &counts) || !counts.kernel_stack_errors)
		return;
	fprintf(stderr,
		"fathom latency: %llu calls of kernel functions are in the profile without their "
		"callers in the kernel\n",
		(unsigned long long)counts.kernel_stack_errors);
}

static void latency_profile_say(
	const struct sampler *sampler, const struct report_summary *summary, const char *path)
{
	latency_profile_say_missing(sampler);
	latency_profile_say_kernel(sampler);
	if (summary->user_stacks > summary->complete_stacks)
		fprintf(stderr, "fathom latency: %.1f%% of the stacks are complete\n",
			100.0 * (double)summary->complete_stacks / (double)summary->user_stacks);
	fprintf(stderr, "fathom latency: wrote %s; look at it with: go tool pprof -http=: %s\n",
		path, path);
}

int latency_profile_write(struct sampler *sampler, const char *path, bool quiet)
{
	autocall(buffer_deinit) struct buffer out;
	struct report_summary summary = { 0 };
	int err;

	buffer_init(&out, PROFILE_LIMIT_BYTES);
	err = latency_profile_make(sampler, &out, &summary);
	if (err) {
		fprintf(stderr, "fathom latency: cannot make the profile: %s\n", strerror(-err));
		return err;
	}
	err = output_file_write(path, &out);
	if (err) {
		fprintf(stderr, "fathom latency: cannot write %s: %s\n", path, strerror(-err));
		return err;
	}
	if (!quiet)
		latency_profile_say(sampler, &summary, path);
	return 0;
}
