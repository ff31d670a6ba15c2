/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings `fathom agent` accepts; a rejection names the setting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/daemon_internal.h"
#include "agent/sampler/process/selection.h"
#include "base/cleanup.h"

/* Reads OPTION alone. *RET_SETTINGS is to be given to settings_deinit(). */
static int read_option(const char *option, struct daemon_settings *ret_settings, char **ret_message)
{
	char *argv[] = { (char *)"agent", (char *)option, NULL };
	struct config config;
	int err;

	assert_int_equal(config_parse(&config, IN_AGENT, option ? 2 : 1, argv), 0);
	err = daemon_settings_read(&config, ret_settings, ret_message);
	config_deinit(&config);
	return err;
}

static void settings_deinit(struct daemon_settings *settings)
{
	selection_destroy(settings->selection);
}

static struct daemon_settings taken(const char *option)
{
	struct daemon_settings settings;
	char *message = NULL;
	int err = read_option(option, &settings, &message);

	if (err)
		print_error("%s: %s\n", option, message);
	free(message);
	assert_int_equal(err, 0);
	return settings;
}

/* OPTION is refused: the message begins with its name and contains WHY. */
static void assert_refused(const char *option, const char *why)
{
	size_t name_length = strcspn(option, "=");
	struct daemon_settings settings;
	autofree char *message = NULL;

	assert_int_equal(read_option(option, &settings, &message), -EINVAL);
	assert_non_null(message);
	assert_int_equal(strncmp(message, option, name_length), 0);
	assert_true(message[name_length] == ' ' || message[name_length] == ':');
	assert_non_null(strstr(message, why));
}

static void defaults_are_those_of_the_manual(void **state)
{
	struct daemon_settings s = taken(NULL);

	(void)state;
	assert_int_equal(s.frequency_hz, 19);
	assert_int_equal(s.window_ns, UINT64_C(10000000000));
	assert_true(s.cpu_share == 0.05);
	assert_true(s.off_cpu_share == 0);
	assert_int_equal(s.store_bytes, 1 << 30);
	assert_int_equal(s.store_age_ns, UINT64_C(168) * 3600 * 1000000000);
	assert_null(s.selection);
	settings_deinit(&s);
}

static void the_frequency_is_1_to_1000(void **state)
{
	(void)state;
	assert_refused("--profiling-cpu-sampling-frequency=0", "1 to 1000");
	assert_refused("--profiling-cpu-sampling-frequency=1001", "1 to 1000");
	assert_int_equal(taken("--profiling-cpu-sampling-frequency=1").frequency_hz, 1);
	assert_int_equal(taken("--profiling-cpu-sampling-frequency=1000").frequency_hz, 1000);
}

static void a_window_is_a_second_to_an_hour(void **state)
{
	(void)state;
	assert_refused("--profiling-duration=999ms", "1s to 1h");
	assert_refused("--profiling-duration=3601s", "1s to 1h");
	assert_int_equal(taken("--profiling-duration=1s").window_ns, 1000000000);
	assert_int_equal(taken("--profiling-duration=1h").window_ns, UINT64_C(3600000000000));
}

static void the_budget_is_a_percentage(void **state)
{
	static const char *const bad[] = { "--cpu-budget=", "--cpu-budget=x", "--cpu-budget=-1",
		"--cpu-budget=5%%", "--cpu-budget=5 %", "--cpu-budget=100001", "--cpu-budget=nan" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(bad[i], "percentage of one CPU");
	assert_true(taken("--cpu-budget=0").cpu_share == 0);
	assert_true(taken("--cpu-budget=2.5").cpu_share == 0.025);
	assert_true(taken("--cpu-budget=200%").cpu_share == 2);
	assert_true(taken("--cpu-budget=100000").cpu_share == 1000);
}

static void the_share_of_waits_is_a_probability(void **state)
{
	static const char *const bad[] = { "--off-cpu-threshold=", "--off-cpu-threshold=x",
		"--off-cpu-threshold=-0.1", "--off-cpu-threshold=1.01", "--off-cpu-threshold=0.5%",
		"--off-cpu-threshold=nan" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(bad[i], "probability");
	assert_true(taken("--off-cpu-threshold=0").off_cpu_share == 0);
	assert_true(taken("--off-cpu-threshold=0.25").off_cpu_share == 0.25);
	assert_true(taken("--off-cpu-threshold=1").off_cpu_share == 1);
}

static void a_store_is_at_least_one_block(void **state)
{
	(void)state;
	assert_refused("--local-store-max-bytes=0", "4K or more");
	assert_refused("--local-store-max-bytes=4095", "4K or more");
	assert_int_equal(taken("--local-store-max-bytes=4096").store_bytes, 4096);
}

static void addresses_are_checked_before_they_are_listened_on(void **state)
{
	static const char *const good[] = { "--http-address=", "--http-address=:7071",
		"--http-address=localhost:0", "--http-address=unix:/run/fathom" };

	(void)state;
	assert_refused("--http-address=7071", "IP:PORT");
	assert_refused("--http-address=example.org:7071", "IP:PORT");
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		(void)taken(good[i]);
}

static void selectors_are_checked(void **state)
{
	struct daemon_settings s;

	(void)state;
	assert_refused("--include=name=x", SELECTION_KEYS);
	assert_refused("--exclude=name=x", SELECTION_KEYS);
	assert_refused("--pod-annotations=perhaps", "opt-out, opt-in or ignore");
	s = taken("--include=comm=x");
	assert_non_null(s.selection);
	settings_deinit(&s);
	s = taken("--exclude=comm=x");
	assert_non_null(s.selection);
	settings_deinit(&s);
}

static void pods_cannot_choose_where_no_runtime_is_asked(void **state)
{
	static const char *const options[] = { "--include=namespace=x", "--exclude=label.a=x",
		"--exclude=comm=x,container=y", "--include=annotation.a/b=c", "--include=pod=x",
		"--pod-annotations=opt-in", "--exclude=comm=x" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char *argv[] = { (char *)"agent",
			(char *)"--metadata-container-runtime-socket-path=", (char *)options[i] };
		bool is_fine = i == ARRAY_SIZE(options) - 1;
		struct daemon_settings s = { 0 };
		struct config config;
		autofree char *message = NULL;

		assert_int_equal(config_parse(&config, IN_AGENT, 3, argv), 0);
		assert_int_equal(
			daemon_settings_read(&config, &s, &message), is_fine ? 0 : -EINVAL);
		assert_true(is_fine || strstr(message, "runtime-socket-path is empty"));
		settings_deinit(&s);
		config_deinit(&config);
	}
}

static void the_rest_is_checked_too(void **state)
{
	(void)state;
	assert_refused("--log-level=loud", "");
	assert_refused("--test-without=guess",
		"vma-lookup, own-rings, kernel-walk, packed-stacks, packed-rules, uprobe-multi, "
		"attach-cookie, fentry, kprobe-session, kprobe-multi and process-uprobes");
	assert_int_not_equal(taken("--test-without=vma-lookup").without, 0);
	assert_int_equal(taken(NULL).without, 0);
	assert_refused("--remote-store-type=tape", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_manual),
		cmocka_unit_test(the_frequency_is_1_to_1000),
		cmocka_unit_test(a_window_is_a_second_to_an_hour),
		cmocka_unit_test(the_budget_is_a_percentage),
		cmocka_unit_test(the_share_of_waits_is_a_probability),
		cmocka_unit_test(a_store_is_at_least_one_block),
		cmocka_unit_test(addresses_are_checked_before_they_are_listened_on),
		cmocka_unit_test(selectors_are_checked),
		cmocka_unit_test(pods_cannot_choose_where_no_runtime_is_asked),
		cmocka_unit_test(the_rest_is_checked_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
