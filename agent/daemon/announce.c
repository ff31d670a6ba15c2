/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for a person who starts the agent by hand: where to look, and what is hottest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/daemon/daemon_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pid_namespace.h"

enum {
	HOTTEST = 10,
	NAME_BYTES = 240, /* per function name */
};

/* The first window may be too short to tell: windows end at round times. */
static const uint64_t ENOUGH_NS = UINT64_C(5000000000);

static bool to_a_person(const struct daemon *d)
{
	return config_flag(&d->config, SETTING_announce) ||
	       (isatty(STDERR_FILENO) && !config_flag(&d->config, SETTING_quiet));
}

/* HOST:PORT for a local browser: loopback for a wildcard address, the bound port for port 0. */
static void put_address(const struct daemon *d, char *text, size_t size)
{
	const char *address = config_text(&d->config, SETTING_http_address);
	const char *colon = strrchr(address, ':');
	int host = colon ? (int)(colon - address) : 0;

	if (host == 0 || !strncmp(address, "0.0.0.0:", 8))
		snprintf(text, size, "127.0.0.1:%u", serve_port(d->serve));
	else
		snprintf(text, size, "%.*s:%u", host, address, serve_port(d->serve));
}

/* In the user part of an address (RFC 3986) a token may have only these as they are. */
static void print_escaped(const char *token)
{
	static const char PLAIN[] = "-._~";

	for (const char *c = token; *c; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			     (*c >= '0' && *c <= '9') || strchr(PLAIN, *c);

		fprintf(stderr, plain ? "%c" : "%%%02X", (unsigned char)*c);
	}
}

static void announce_page(const struct daemon *d)
{
	char at[128];

	put_address(d, at, sizeof(at));
	fputs("Look at it:      http://fathom:", stderr);
	print_escaped(d->token);
	fprintf(stderr,
		"@%s/\n"
		"Profile it, as root: go tool pprof 'http://%s/debug/pprof/profile?seconds=5'\n",
		at, at);
}

void daemon_announce(const struct daemon *d)
{
	const char *address = config_text(&d->config, SETTING_http_address);
	const char *store = config_text(&d->config, SETTING_local_store_directory);

	d->serve ? log_info("sampling", "hz=%" PRIu64 " address=%s port=%u socket=%s",
			   d->settings.frequency_hz, address ? address : "", serve_port(d->serve),
			   d->http_socket ? d->http_socket : "")
		 : log_info("sampling", "hz=%" PRIu64, d->settings.frequency_hz);
	if (pid_namespace_is_contained())
		log_warn(PID_NAMESPACE_TROUBLE, "to_do=\"" PID_NAMESPACE_FIX "\"%s", "");
	if (!to_a_person(d))
		return;
	fprintf(stderr, "fathom samples this machine %" PRIu64 " times a second on each CPU.\n",
		d->settings.frequency_hz);
	if (d->store)
		fprintf(stderr, "Profiles are in: %s\n", store);
	if (d->serve && serve_port(d->serve))
		announce_page(d);
	fputs("Ctrl-C ends it. The hottest functions appear after the first window.\n", stderr);
}

void daemon_announce_end(const struct daemon *d)
{
	log_info("sampling ended", "samples=%" PRIu64 " lost=%" PRIu64 " undecided=%" PRIu64,
		sampler_samples(d->sampler), daemon_samples_lost(d),
		metrics_get(sampler_metrics(d->sampler), METRIC_SAMPLES_UNDECIDED));
}

static void print_hot(const struct report_hot *hot, uint64_t samples)
{
	fprintf(stderr, "%6.1f%% %5.1f%%  %.*s  %s\n",
		100.0 * (double)hot->self_count / (double)samples,
		100.0 * (double)hot->total_count / (double)samples, NAME_BYTES, hot->name,
		hot->module);
}

void daemon_announce_hottest(
	struct daemon *d, const struct sealed_window *window, const struct report_sources *sources)
{
	uint64_t samples = profile_tick_count(sources->profile);
	struct report_hot *hot = NULL;
	size_t count = 0;

	if (d->hottest_reported || d->stopping || !to_a_person(d) || !samples ||
		clock_monotonic_ns() - window->began_ns < ENOUGH_NS)
		return;
	d->hottest_reported = true;
	if (report_hottest(sources, &hot, HOTTEST, &count))
		return;
	fprintf(stderr, "\n   self  total  function (of %" PRIu64 " samples)\n", samples);
	for (size_t i = 0; i < count; i++)
		print_hot(&hot[i], samples);
	report_hottest_free(hot, count);
}
