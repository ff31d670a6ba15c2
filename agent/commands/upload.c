/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom upload`: sends pprof files to a server, as the agent would. */
#include "agent/commands/upload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/commands/commands.h"
#include "agent/settings/log_options.h"
#include "agent/settings/remote_settings.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	MAX_ATTEMPTS = 6,
	SERVICE_BYTES = 256,
};

static const uint64_t FIRST_WAIT_NS = 500000000, MAX_WAIT_NS = UINT64_C(60000000000);

struct upload {
	struct remotes *remotes;
	struct remote *remote;
	const struct labels *external;
	bool quiet;
	bool sample_labels; /* the server accepts sample labels */
	const char *path; /* path of the current file */
	bool answered;
	struct remote_result result;
	uint64_t payloads, samples, bytes; /* sent from the current file */
};

static void upload_on_done(void *context, const struct remote_result *result)
{
	struct upload *u = context;

	u->result = *result;
	u->answered = true;
}

static int send_once(struct upload *u, const struct payload *payload)
{
	int err;

	u->answered = false;
	err = remote_send(u->remote, payload, upload_on_done, u);
	while (!err && !u->answered)
		err = remotes_run(u->remotes, 1000);
	u->bytes += u->result.sent_bytes;
	return err;
}

static void upload_wait_for(struct upload *u, uint64_t wait_ns)
{
	uint64_t end = clock_monotonic_ns() + wait_ns, now;

	while ((now = clock_monotonic_ns()) < end)
		remotes_run(u->remotes, (int)((end - now) / 1000000) + 1);
}

static bool is_retried(const struct remote_result *result, int attempt)
{
	/* "Internal error" may be caused by the payload itself: retry it less often. */
	int most = result->blurred ? MAX_ATTEMPTS / 2 : MAX_ATTEMPTS;

	return (result->verdict == REMOTE_RETRY || result->verdict == REMOTE_AMBIGUOUS) &&
	       attempt < most;
}

static void tell_retry(const struct upload *u, uint64_t wait_ns)
{
	fprintf(stderr, "fathom upload: %s: %s (%s); trying again in %.1f s%s\n", u->path,
		*u->result.message ? u->result.message : "no answer", u->result.code,
		(double)wait_ns / 1e9,
		u->result.verdict == REMOTE_AMBIGUOUS ? "; it may arrive twice" : "");
}

static int send_payload(void *context, const struct payload *payload)
{
	struct upload *u = context;
	uint64_t wait_ns = FIRST_WAIT_NS;
	int err = send_once(u, payload);

	for (int attempt = 1; !err && is_retried(&u->result, attempt); attempt++) {
		uint64_t now_ns = MIN(MAX(wait_ns, u->result.retry_after_ns), MAX_WAIT_NS);

		tell_retry(u, now_ns);
		upload_wait_for(u, now_ns);
		wait_ns *= 2;
		err = send_once(u, payload);
	}
	if (err)
		return err;
	if (u->result.verdict != REMOTE_SENT) {
		fprintf(stderr, "fathom upload: %s: %s (%s)\n", u->path,
			*u->result.message ? u->result.message : "rejected", u->result.code);
		return -ECANCELED;
	}
	u->payloads++;
	u->samples += payload->samples;
	return 0;
}

/* Derives a service name from PATH: `app` for /tmp/app.pb.gz. */
static void service_of(const char *path, char service[SERVICE_BYTES])
{
	static const char *const suffixes[] = { ".gz", ".pb", ".pprof", ".prof" };
	const char *slash = strrchr(path, '/');

	snprintf(service, SERVICE_BYTES, "%s", slash ? slash + 1 : path);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t length = strlen(service), end = strlen(suffixes[i]);

		if (length > end && !strcmp(service + length - end, suffixes[i]))
			service[length - end] = 0;
	}
}

static int64_t modified_ns(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return (int64_t)clock_real_ns();
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static int upload_file(struct upload *u, const char *path)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	char service[SERVICE_BYTES];
	struct upload_series series = {
		.external = u->external, .service = service, .sample_labels = u->sample_labels
	};
	const char *why = "";
	int err;

	u->path = path;
	u->payloads = u->samples = u->bytes = 0;
	service_of(path, service);
	series.time_ns = modified_ns(path);
	err = pprof_read_file(path, &profile, &why);
	if (err) {
		fprintf(stderr, "fathom upload: %s: %s\n", path,
			err == -EBADMSG ? why
			: err == -E2BIG ? "is too large"
					: strerror(-err));
		return err;
	}
	err = upload_payloads(&profile, &series, send_payload, u);
	if (err && err != -ECANCELED)
		fprintf(stderr, "fathom upload: %s: %s\n", path,
			err == -E2BIG
				? "more series, sample types or comments than a server should get"
				: strerror(-err));
	if (!u->quiet)
		fprintf(stderr, "%s: %llu profiles, %llu samples, %llu bytes sent\n", path,
			(unsigned long long)u->payloads, (unsigned long long)u->samples,
			(unsigned long long)u->bytes);
	return err;
}

static int upload_all(struct upload *u, const struct config *config)
{
	int status = EXIT_DONE;

	for (int i = 0; i < config->rest_count; i++) {
		if (upload_file(u, config->rest[i]))
			status = EXIT_FAILED;
		/* The server will refuse the next file as well. */
		if (u->answered && u->result.verdict == REMOTE_DENIED)
			break;
	}
	return status;
}

static int upload_usage_error(const char *message)
{
	fprintf(stderr, "fathom upload: %s; see fathom upload --help\n", message);
	return EXIT_USAGE;
}

static int open_and_upload(const struct config *config, struct remote_settings *settings)
{
	autofree char *message = NULL;
	struct upload u = { .external = &settings->external,
		.quiet = config_flag(config, SETTING_quiet),
		.sample_labels =
			remote_type_has(settings->options.type, REMOTE_WANTS_SAMPLE_LABELS) };
	int status, err;

	if (remotes_create(&u.remotes)) {
		fprintf(stderr, "fathom upload: libcurl (libcurl.so.4) cannot be loaded\n");
		return EXIT_FAILED;
	}
	err = remote_create(u.remotes, &settings->options, &u.remote, &message);
	if (err) {
		status = upload_usage_error(message ? message : strerror(-err));
	} else {
		status = upload_all(&u, config);
		remote_destroy(u.remote);
	}
	remotes_destroy(u.remotes);
	return status;
}

int command_upload(struct invocation *call)
{
	const struct config *config = &call->config;
	autocall(remote_settings_deinit) struct remote_settings settings = { 0 };
	autofree char *message = NULL;
	int err;

	if (!config->rest_count)
		return upload_usage_error("no file given");
	err = remote_options_from_config(config, &settings, &message);
	if (err == -ENOENT)
		return upload_usage_error(
			"say where to: --remote-store-type and --remote-store-address");
	if (err)
		return upload_usage_error(message ? message : strerror(-err));
	return open_and_upload(config, &settings);
}
