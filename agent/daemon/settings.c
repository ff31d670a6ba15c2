/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/sampler/process/selection.h"
#include "agent/settings/log_options.h"
#include "agent/settings/sampling_options.h"
#include "agent/daemon/daemon.h"
#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/fixed_settings.h"
#include "agent/daemon/metadata_settings.h"
#include "agent/daemon/notify.h"
#include "agent/daemon/token.h"
#include "agent/server/serve/address.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret_file.h"

enum { MAX_AGENT_HZ = 1000, MIN_STORE_BYTES = 4096 };

static const uint64_t SECOND_NS = 1000000000;

static bool parse_percent(const char *text, double *ret_share)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%")) || !(percent >= 0 && percent <= 100000))
		return false;
	*ret_share = percent / 100;
	return true;
}

static bool parse_share(const char *text, double *ret_share)
{
	char *end;
	double share = strtod(text, &end);

	if (end == text || *end || !(share >= 0 && share <= 1))
		return false;
	*ret_share = share;
	return true;
}

static int read_selection(
	const struct config *config, struct selection **ret_selection, char **ret_message)
{
	bool second = false;
	int err = selection_create(config_text(config, SETTING_include),
		config_text(config, SETTING_exclude), ret_selection, &second);

	if (!err)
		return 0;
	return config_refuse(config, second ? SETTING_exclude : SETTING_include, ret_message, " %s",
		err == -EINVAL ? "must be KEY=GLOB, with a key of " SELECTION_KEYS
			       : strerror(-err));
}

/* Where no runtime is asked, nobody knows pods. */
static int check_pods(
	const struct config *config, const struct daemon_settings *s, char **ret_message)
{
	const struct pod_choices_options choices = { s->selection, s->pod_annotations };
	const char *socket = config_text(config, SETTING_container_runtime_socket);

	if (!socket || *socket || !pod_choices_need_runtime(&choices))
		return 0;
	return config_refuse(config, SETTING_container_runtime_socket, ret_message,
		" is empty, so pods are not known: include, exclude and pod-annotations cannot "
		"choose by them");
}

static int read_choice(const struct config *config, struct daemon_settings *s, char **ret_message)
{
	int err;

	if (!pod_annotations_parse(
		    config_text(config, SETTING_pod_annotations), &s->pod_annotations))
		return config_refuse(config, SETTING_pod_annotations, ret_message,
			" must be opt-out, opt-in or ignore");
	err = read_selection(config, &s->selection, ret_message);
	if (!err)
		err = check_pods(config, s, ret_message);
	if (err) {
		selection_destroy(s->selection);
		s->selection = NULL;
	}
	return err;
}

static int check_limits(const struct config *config, char **ret_message)
{
	const char *address = config_text(config, SETTING_http_address);
	struct address parsed;

	if (config_number(config, SETTING_local_store_max_bytes) < MIN_STORE_BYTES)
		return config_refuse(config, SETTING_local_store_max_bytes, ret_message,
			" must be 4K or more; to keep no profiles, leave local-store-directory "
			"empty");
	if (address && *address && address_parse(address, &parsed))
		return config_refuse(config, SETTING_http_address, ret_message,
			" must be IP:PORT, localhost:PORT, :PORT or unix:/PATH");
	return 0;
}

int daemon_settings_read(
	const struct config *config, struct daemon_settings *ret_settings, char **ret_message)
{
	struct daemon_settings s = {
		.frequency_hz = config_number(config, SETTING_sampling_frequency),
		.window_ns = config_number(config, SETTING_profiling_duration),
		.store_bytes = config_number(config, SETTING_local_store_max_bytes),
		.store_age_ns = config_number(config, SETTING_local_store_max_age),
	};
	enum setting setting;
	const char *problem = log_options_problem(config, &setting);
	int err;

	*ret_message = NULL;
	if (!problem)
		problem = sampling_options_problem(config, &setting);
	if (problem)
		return config_refuse(config, setting, ret_message, " %s", problem);
	s.without = sampling_options_without(config);
	if (s.frequency_hz < 1 || s.frequency_hz > MAX_AGENT_HZ)
		return config_refuse(
			config, SETTING_sampling_frequency, ret_message, " must be 1 to 1000");
	if (s.window_ns < SECOND_NS || s.window_ns > 3600 * SECOND_NS)
		return config_refuse(
			config, SETTING_profiling_duration, ret_message, " must be 1s to 1h");
	if (!parse_percent(config_text(config, SETTING_cpu_budget), &s.cpu_share))
		return config_refuse(config, SETTING_cpu_budget, ret_message,
			" must be a percentage of one CPU; 0: no limit");
	if (!parse_share(config_text(config, SETTING_off_cpu_threshold), &s.off_cpu_share))
		return config_refuse(config, SETTING_off_cpu_threshold, ret_message,
			" must be a probability from 0 (off) to 1 (all)");
	err = check_limits(config, ret_message);
	if (!err)
		err = metadata_settings_check(config, ret_message);
	if (!err)
		err = daemon_export_check(config, ret_message);
	if (!err)
		err = daemon_probes_check(config, ret_message);
	if (!err)
		err = read_choice(config, &s, ret_message);
	if (err)
		return err;
	*ret_settings = s;
	return 0;
}

int daemon_check(const struct config *config, char **ret_message)
{
	struct daemon_settings settings;
	int err = daemon_settings_read(config, &settings, ret_message);

	if (!err)
		selection_destroy(settings.selection);
	return err;
}

/* An unchanged budget keeps the frequency it has reached. */
static void apply_budget(struct daemon *d, const struct daemon_settings *old)
{
	const struct daemon_settings *new = &d->settings;
	uint64_t before = d->budget.current_hz;

	if (new->frequency_hz == old->frequency_hz &&new->cpu_share == old->cpu_share)
		return;
	daemon_share_budget(d);
	budget_init(&d->budget, new->cpu_share, new->frequency_hz);
	daemon_share_with_probes(d);
	if (d->budget.current_hz != before)
		daemon_set_frequency(d);
	if (daemon_schedule_budget(d))
		log_warn("the CPU budget cannot be enforced, ignoring", "%s", "");
}

/* Clients must send the new token from their next request on. Takes TOKEN. */
static void apply_token(struct daemon *d, char *token)
{
	if (strcmp(token, d->token) != 0)
		log_info("the token of the HTTP address has changed", "%s", "");
	if (d->serve)
		serve_set_token(d->serve, token);
	secret_free(&d->token);
	d->token = token;
}

static void daemon_settings_apply(struct daemon *d, const struct daemon_settings *settings)
{
	const struct daemon_settings old = d->settings;

	d->settings = *settings;
	sampler_select(d->sampler, settings->selection);
	if (daemon_choose_pods(d, true))
		log_warn("which pods are profiled could not be changed, ignoring", "%s", "");
	selection_destroy(old.selection);
	(void)log_options(&d->config);
	if (d->store) {
		store_set_limits(d->store, settings->store_bytes, settings->store_age_ns);
		daemon_trim_store(d);
	}
	apply_budget(d, &old);
	sampler_offer_files_again(d->sampler);
	if (old.window_ns != settings->window_ns)
		daemon_schedule_window(d);
}

/* A pipe delivers only once: reading it again would give all defaults. */
static int check_readable_again(const char *path, char **ret_message)
{
	struct stat st;

	if (stat(path, &st) || S_ISREG(st.st_mode))
		return 0;
	if (asprintf(ret_message, "%s: not a regular file, so it cannot be read again", path) < 0)
		*ret_message = NULL;
	return -EINVAL;
}

static int read_again(const struct daemon *d, struct config *ret_config,
	struct daemon_settings *ret_settings, char **ret_message)
{
	struct config config;
	const char *path;
	int err = config_parse(&config, IN_AGENT, d->argc, d->argv);

	if (err)
		return err;
	path = config_text(&config, SETTING_config_path);
	if (path)
		err = check_readable_again(path, ret_message);
	if (!err && path)
		err = config_load(&config, path, ret_message);
	if (!err)
		err = daemon_settings_read(&config, ret_settings, ret_message);
	if (err) {
		config_deinit(&config);
		return err;
	}
	*ret_config = config;
	return 0;
}

/* Without memory the probes stay those of the new settings, with the old labels. */
static void restore_probes(struct daemon *d)
{
	autofree char *message = NULL;

	if (daemon_probes_set(d->sampler, &d->config, &message) ||
		daemon_probes_reload(d->probes, &d->config, &message))
		log_error("the probes could not be restored, ignoring", "%s", "");
}

static int apply_probes(struct daemon *d, const struct config *config, char **ret_message)
{
	int err = daemon_probes_set(d->sampler, config, ret_message);

	if (err)
		return err;
	err = daemon_probes_reload(d->probes, config, ret_message);
	if (err)
		restore_probes(d);
	return err;
}

/* What was known is forgotten: others may tell something else. *RET_NEW is D's if nothing changes.
 */
static int make_metadata_again(struct daemon *d, const struct config *config,
	struct metadata **ret_new, char **ret_message)
{
	if (metadata_settings_differ(&d->config, config))
		return metadata_settings_create(
			config, sampler_metrics_to_add(d->sampler), ret_new, ret_message);
	*ret_new = d->metadata;
	return 0;
}

/* The stores come last of what can fail: daemon_export_reload() changes all or nothing. */
static int apply_probes_and_stores(
	struct daemon *d, const struct config *config, char **ret_message)
{
	int err = apply_probes(d, config, ret_message);

	if (err)
		return err;
	err = daemon_export_reload(&d->export, config, sampler_metrics_to_add(d->sampler),
		d->cache_directory, ret_message);
	if (err)
		restore_probes(d);
	return err;
}

static int apply_what_can_fail(struct daemon *d, const struct config *config, char **ret_message)
{
	struct metadata *metadata = d->metadata, *other;
	char *token = NULL;
	int err = token_get(config, d->cache_directory, &token, ret_message);

	if (!err)
		err = make_metadata_again(d, config, &metadata, ret_message);
	if (!err)
		err = apply_probes_and_stores(d, config, ret_message);
	/* Whichever is not needed: the new one if something else has failed. */
	other = err ? metadata : d->metadata;
	if (!err)
		d->metadata = metadata;
	if (other != d->metadata)
		metadata_destroy(other);
	if (err) {
		secret_free(&token);
		return err;
	}
	apply_token(d, token);
	return 0;
}

static int daemon_settings_reload(struct daemon *d, char **ret_message)
{
	struct daemon_settings settings;
	struct config config;
	int err = read_again(d, &config, &settings, ret_message);

	if (err)
		return err;
	err = apply_what_can_fail(d, &config, ret_message);
	if (err) {
		selection_destroy(settings.selection);
		config_deinit(&config);
		return err;
	}
	fixed_settings_keep(&d->config, &config, ret_message);
	config_deinit(&d->config);
	d->config = config;
	daemon_settings_apply(d, &settings);
	return 0;
}

int daemon_reload(struct daemon *d, char **ret_message)
{
	int err;

	*ret_message = NULL;
	loop_step(d->loop, "reload");
	notify_reloading();
	err = daemon_settings_reload(d, ret_message);
	if (err)
		log_error("the settings could not be reloaded, nothing changed", "error=\"%s\"",
			*ret_message ? *ret_message : strerror(-err));
	else if (*ret_message)
		log_info("the settings were reloaded", "note=\"%s\"", *ret_message);
	else
		log_info("the settings were reloaded", "%s", "");
	notify_send("READY=1");
	return err;
}
