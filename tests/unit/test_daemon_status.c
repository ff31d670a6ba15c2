/* SPDX-License-Identifier: Apache-2.0 */
/* The /status endpoint, and what a reload changes in it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/daemon/daemon_internal.h"
#include "agent/sampler/process/selection.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/secret_file.h"
#include "base/io.h"
#include "base/version.h"
#include "tests/unit/fake_sampler.h"
#include "tests/unit/remove_tree.h"

static const uint64_t SECOND = 1000000000;

struct bench {
	struct sampler sampler;
	struct daemon daemon;
	char directory[64], config_path[96], option[128];
	char *argv[4];
};

static void write_config(const struct bench *b, const char *text)
{
	assert_int_equal(io_replace_file(AT_FDCWD, b->config_path, text, strlen(text), 0600), 0);
}

/* An agent that has been started with an empty settings file. */
static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct daemon *d = &b->daemon;
	autofree char *message = NULL;

	snprintf(b->directory, sizeof(b->directory), "/tmp/fathom-status-XXXXXX");
	assert_non_null(mkdtemp(b->directory));
	snprintf(b->config_path, sizeof(b->config_path), "%s/fathom.yaml", b->directory);
	snprintf(b->option, sizeof(b->option), "--config-path=%s", b->config_path);
	write_config(b, "");
	b->argv[0] = (char *)"agent";
	b->argv[1] = b->option;
	b->argv[2] = (char *)"--cpu-budget=0";
	d->argc = 3;
	d->argv = b->argv;
	d->sampler = &b->sampler;
	d->window_timer = d->frequency_timer = d->budget_timer = d->clock_fd = -1;
	assert_int_equal(config_parse(&d->config, IN_AGENT, d->argc, d->argv), 0);
	assert_int_equal(daemon_settings_read(&d->config, &d->settings, &message), 0);
	d->token = strdup("t");
	assert_int_equal(
		daemon_probes_create(&d->config, &b->sampler.metrics, &d->probes, &message), 0);
	budget_init(&d->budget, d->settings.cpu_share, d->settings.frequency_hz);
	d->cache_directory = b->directory;
	d->started_ns = clock_monotonic_ns();
	d->started_real_ns = clock_real_ns();
	assert_int_equal(loop_create(&d->loop), 0);
	assert_int_equal(daemon_start_windows(d), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	daemon_export_destroy(b->daemon.export, 0);
	daemon_probes_destroy(b->daemon.probes);
	store_destroy(b->daemon.store);
	selection_destroy(b->daemon.settings.selection);
	loop_destroy(b->daemon.loop);
	secret_free(&b->daemon.token);
	config_deinit(&b->daemon.config);
	remove_tree(b->directory);
	free(b);
	return 0;
}

/* ---- /status -------------------------------------------------------------------------------- */

/* Valid for the life of OUT. */
static const char *status(struct bench *b, struct buffer *out)
{
	buffer_init(out, 1 << 20);
	assert_int_equal(daemon_write_status(&b->daemon, out), 0);
	assert_int_equal(buffer_append(out, "", 1), 0);
	return (const char *)out->bytes;
}

static void assert_says(struct bench *b, const char *wanted)
{
	autocall(buffer_deinit) struct buffer out;
	const char *text = status(b, &out);

	if (!strstr(text, wanted))
		print_error("no %s in %s\n", wanted, text);
	assert_non_null(strstr(text, wanted));
}

static void status_has_all_its_parts(void **state)
{
	struct bench *b = *state;

	b->sampler.sizes = (struct sampler_sizes){ 1001, 1002, 1003, 1004, 1005, 1006 };
	b->daemon.windows = 77;
	b->daemon.store_merges_cpu_ns = SECOND * 5 / 4;
	metrics_add(&b->sampler.metrics, METRIC_MEMORY_CACHES, 5);
	metrics_add(&b->sampler.metrics, METRIC_MEMORY_WINDOW, 6);
	assert_says(b, "\"version\": \"" FATHOM_VERSION "\"");
	assert_says(b, "\"windows\": 77,");
	assert_says(b, "\"window_seconds\": 10.000,");
	assert_says(b, "\"frequency_hertz\": {\"configured\": 19, \"effective\": 19}");
	assert_says(b, "\"bpf_seconds\": 1.500, \"http_seconds\": 0.000, "
		       "\"index_builds_seconds\": 2.500, \"file_helper_seconds\": 0.125");
	assert_says(b, "\"store_merges_seconds\": 1.250}");
	assert_says(b, "\"caches_evicted\": 5, \"windows_ended_early\": 6");
	assert_says(b, "\"index_bytes\": 1001, \"kallsyms_bytes\": 1002, "
		       "\"profile_bytes\": 1003, \"bpf_map_bytes\": 1004");
	assert_says(b, "\"processes\": 1005,\n  \"modules\": 1006,\n  \"index_builds_pending\": 3");
	assert_says(b, "\"samples\": {\"taken\": 12345, ");
	assert_says(b, "\"store\": null,");
	assert_says(b, "\"export\": null,");
	assert_says(b, "\"counters\": {");
}

static void status_names_what_last_went_wrong(void **state)
{
	struct bench *b = *state;
	struct daemon *d = &b->daemon;
	const uint64_t at_ns = 1795262400 * SECOND; /* 2026-11-21T12:00:00Z */

	assert_says(b, "\"last_loss\": null,\n  \"last_builds_not_started\": null,\n"
		       "  \"last_builds_no_space\": null,\n"
		       "  \"last_long_turn\": null,\n  \"longest_turn\": null,");
	b->sampler.trouble = (struct sampler_trouble){
		.lost = { at_ns, 12, 34, "ring_full" },
		.not_started = { at_ns + SECOND, 5, -EMFILE },
		.no_space = { at_ns + SECOND, 6, -EDQUOT },
	};
	d->turns.last_long = (struct observed_turn){ at_ns + 2 * SECOND,
		{ 3 * SECOND / 2, "rings", 5 * SECOND / 4 } };
	d->turns.longest = (struct observed_turn){ at_ns, { 7 * SECOND, "http", 6 * SECOND } };
	assert_says(b, "\"last_loss\": {\"time\": \"2026-11-21T12:00:00Z\", \"samples\": 12, "
		       "\"records\": 34, \"reason\": \"ring_full\"}");
	assert_says(b, "\"last_builds_not_started\": {\"time\": \"2026-11-21T12:00:01Z\", "
		       "\"builds\": 5, \"error\": \"Too many open files\"}");
	assert_says(b, "\"last_builds_no_space\": {\"time\": \"2026-11-21T12:00:01Z\", "
		       "\"builds\": 6, \"error\": \"Disk quota exceeded\"}");
	assert_says(b, "\"last_long_turn\": {\"time\": \"2026-11-21T12:00:02Z\", "
		       "\"seconds\": 1.500, \"step\": \"rings\", \"step_seconds\": 1.250}");
	assert_says(b, "\"longest_turn\": {\"time\": \"2026-11-21T12:00:00Z\", "
		       "\"seconds\": 7.000, \"step\": \"http\", \"step_seconds\": 6.000}");
}

/* The number after "KEY": in STATUS. */
static double number_of(struct bench *b, const char *key)
{
	autocall(buffer_deinit) struct buffer out;
	const char *text = status(b, &out), *at;
	char quoted[64];

	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = strstr(text, quoted);
	if (!at)
		fail_msg("no %s in %s", quoted, text);
	return strtod(at + strlen(quoted), NULL);
}

static void its_cost_is_reported(void **state)
{
	struct bench *b = *state;
	double own = (double)clock_cpu_ns() / 1e9;

	b->daemon.settings.cpu_share = 0.05;
	b->daemon.last_seal_ns = 250000000;
	b->daemon.started_ns = clock_monotonic_ns() - 100 * SECOND;
	assert_true(number_of(b, "budget_percent") == 5);
	assert_true(number_of(b, "own_seconds") >= own - 0.001);
	assert_true(number_of(b, "own_seconds") < own + 10);
	/* Of a hundred seconds; the kernel's program took one and a half, builds two and a half. */
	assert_true(number_of(b, "used_percent") >= 3.9 + own * 0.99);
	assert_true(number_of(b, "used_percent") < 12 + own);
	assert_true(number_of(b, "last_window_cpu_seconds") == 0.25);
	assert_true(number_of(b, "uptime_seconds") >= 100);
	assert_says(b, "\"recent_percent\": null");
	b->daemon.budget.used = 0.125;
	assert_true(number_of(b, "recent_percent") == 12.5);
}

static void its_table_sizes_are_reported(void **state)
{
	struct bench *b = *state;

	assert_true(number_of(b, "limit_bytes") == 256 << 20);
	assert_true(number_of(b, "resident_bytes") > 500000);
	assert_true(number_of(b, "open_fds") == daemon_open_fds());
	assert_true(number_of(b, "max_fds") == descriptors_limit());
	assert_true(number_of(b, "max_waiting_builds") == 7);
	assert_true(number_of(b, "pid") == getpid());
	assert_says(b, "\"ready\": false");
	b->daemon.ready = true;
	assert_says(b, "\"ready\": true");
}

static void losses_are_summed_and_listed_by_reason(void **state)
{
	struct bench *b = *state;

	metrics_add(&b->sampler.metrics, METRIC_LOST_MEMORY_LIMIT, 3);
	metrics_add(&b->sampler.metrics, METRIC_LOST_RING_FULL, 4);
	assert_says(b, "\"lost\": 7, ");
	assert_says(b, "\"memory_limit\": 3");
	assert_says(b, "\"ring_full\": 4");
}

static void lost_records_are_reported_with_their_consequences(void **state)
{
	struct bench *b = *state;

	assert_says(b, "\"side_band\": {\"gaps\": 0, \"records_lost\": 0, "
		       "\"processes_read_again\": 0, \"samples_unnamed\": "
		       "{\"process_gone\": 0, \"lost_records\": 0, \"lost_mapping\": 0, "
		       "\"executing\": 0}},");
	metrics_add(&b->sampler.metrics, METRIC_SIDEBAND_GAPS, 2);
	metrics_add(&b->sampler.metrics, METRIC_LOST_SIDEBAND, 603);
	metrics_add(&b->sampler.metrics, METRIC_PROCESS_RESYNCS, 4);
	metrics_add(&b->sampler.metrics, METRIC_UNNAMED_GONE, 5);
	metrics_add(&b->sampler.metrics, METRIC_UNNAMED_LOST_RECORDS, 6);
	metrics_add(&b->sampler.metrics, METRIC_UNNAMED_LOST_MAPPING, 7);
	metrics_add(&b->sampler.metrics, METRIC_UNNAMED_EXECUTING, 8);
	assert_says(b, "\"side_band\": {\"gaps\": 2, \"records_lost\": 603, "
		       "\"processes_read_again\": 4, \"samples_unnamed\": "
		       "{\"process_gone\": 5, \"lost_records\": 6, \"lost_mapping\": 7, "
		       "\"executing\": 8}},");
}

static void the_store_is_reported(void **state)
{
	struct bench *b = *state;
	char directory[96];
	struct store_options options = {
		.directory = directory, .limit_bytes = 1 << 20, .metrics = &b->sampler.metrics
	};

	snprintf(directory, sizeof(directory), "%s/profiles", b->directory);
	assert_int_equal(store_create(&options, &b->daemon.store), 0);
	assert_says(b, "\"files\": 0, \"bytes\": 0, \"limit_bytes\": 1073741824, "
		       "\"limit_age_seconds\": 604800, \"oldest\": null}");
	assert_int_equal(store_put(b->daemon.store, "x", INT64_C(1795262400) * (int64_t)SECOND,
				 (int64_t)SECOND, "x", 1),
		0);
	assert_says(b, "\"files\": 1, \"bytes\": 4096,");
	assert_says(b, "\"oldest\": \"2026-11-21T12:00:00Z\"}");
}

static void texts_are_json(void **state)
{
	autocall(buffer_deinit) struct buffer out;
	struct json j;

	(void)state;
	buffer_init(&out, 1 << 20);
	json_init(&j, &out, JSON_COMPACT);
	daemon_json_text(&j, NULL, "a\"b\\c\nd\x1b\xff\xc3\xa4");
	assert_int_equal(json_finish(&j), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_string_equal((const char *)out.bytes, "\"a\\\"b\\\\c?d??\xc3\xa4\"");
}

/* ---- reload --------------------------------------------------------------------------------- */

static int reload(struct bench *b, char **ret_message)
{
	*ret_message = NULL;
	return daemon_reload(&b->daemon, ret_message);
}

/* Without an error, and without a setting that needs a restart. */
static void reload_to(struct bench *b, const char *text)
{
	autofree char *message = NULL;

	write_config(b, text);
	assert_int_equal(reload(b, &message), 0);
	assert_null(message);
}

static void a_reload_applies_changeable_settings(void **state)
{
	struct bench *b = *state;
	struct daemon *d = &b->daemon;
	uint64_t before = clock_monotonic_ns();

	d->window_due_ns = 0;
	reload_to(b, "profiling-duration: 60s\nprofiling-cpu-sampling-frequency: 97\n"
		     "include: comm=x\nnode: n7\n");
	assert_int_equal(d->settings.window_ns, 60 * SECOND);
	assert_int_equal(d->budget.current_hz, 97);
	assert_int_equal(b->sampler.hz, 97);
	assert_ptr_equal(b->sampler.selection, d->settings.selection);
	assert_non_null(b->sampler.selection);
	assert_int_equal(b->sampler.offers, 1);
	/* Windows end at round times: a short remainder is added to the next one. */
	assert_in_range(d->window_due_ns, before, clock_monotonic_ns() + 120 * SECOND);
	assert_says(b, "\"node\": \"n7\"");
	/* Settings that did not change are not applied again. */
	reload_to(b, "profiling-duration: 60s\nprofiling-cpu-sampling-frequency: 97\n");
	assert_int_equal(b->sampler.rotations, 1);
	assert_null(b->sampler.selection);
}

static void a_reload_names_settings_that_need_a_restart(void **state)
{
	struct bench *b = *state;
	autofree char *message = NULL;

	write_config(b, "memory-limit: 1G\nnode: n8\n");
	assert_int_equal(reload(b, &message), 0);
	assert_string_equal(message, "--memory-limit takes effect at the next start");
	assert_int_equal(config_number(&b->daemon.config, SETTING_memory_limit), 256 << 20);
	assert_says(b, "\"node\": \"n8\"");
}

static void assert_nothing_changes(struct bench *b, const char *why)
{
	autofree char *message = NULL;

	assert_int_equal(reload(b, &message), -EINVAL);
	assert_non_null(message);
	if (!strstr(message, why))
		print_error("%s\n", message);
	assert_non_null(strstr(message, why));
	assert_int_equal(b->daemon.settings.frequency_hz, 19);
	assert_int_equal(b->sampler.selects + b->sampler.rotations + b->sampler.offers, 0);
	assert_says(b, "\"configured\": 19");
}

static void a_reload_of_invalid_settings_changes_nothing(void **state)
{
	struct bench *b = *state;

	write_config(b, "profiling-cpu-sampling-frequency: 97\nprofiling-duration: 0s\n");
	assert_nothing_changes(b, "1s to 1h");
	write_config(b, "profiling-cpu-sampling-frequency: 97\nno-such-setting: 1\n");
	assert_nothing_changes(b, "no-such-setting");
	write_config(b, "profiling-cpu-sampling-frequency: 97\nremote-store-type: tape\n");
	assert_nothing_changes(b, "tape");
	assert_int_equal(unlink(b->config_path), 0);
	assert_int_equal(mkfifo(b->config_path, 0600), 0);
	assert_nothing_changes(b, "not a regular file");
}

static void a_reload_begins_and_ends_sending(void **state)
{
	struct bench *b = *state;
	char text[512];

	snprintf(text, sizeof(text),
		"spool-directory: %s/spool\nremote-store-type: file\n"
		"remote-store-address: %s\n",
		b->directory, b->directory);
	reload_to(b, text);
	assert_non_null(b->daemon.export);
	assert_says(b, "\"export\": {\"spool_bytes\":0,");
	reload_to(b, "");
	assert_null(b->daemon.export);
	assert_says(b, "\"export\": null");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(status_has_all_its_parts),
		CASE(status_names_what_last_went_wrong),
		CASE(its_cost_is_reported),
		CASE(its_table_sizes_are_reported),
		CASE(losses_are_summed_and_listed_by_reason),
		CASE(lost_records_are_reported_with_their_consequences),
		CASE(the_store_is_reported),
		CASE(texts_are_json),
		CASE(a_reload_applies_changeable_settings),
		CASE(a_reload_names_settings_that_need_a_restart),
		CASE(a_reload_of_invalid_settings_changes_nothing),
		CASE(a_reload_begins_and_ends_sending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
