/* SPDX-License-Identifier: Apache-2.0 */
/* What a reload of the agent's settings changes, what it leaves, and who is notified. */
#include "tests/unit/daemon_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/log.h"

static const uint64_t SECOND = 1000000000;

/* Reloads without an error; a note counts as an error. */
static void reload_to(struct daemon_fixture *f, const char *text)
{
	char *message = (char *)"of an earlier call";

	daemon_fixture_write(f, text);
	assert_int_equal(daemon_reload(&f->daemon, &message), 0);
	if (message)
		fail_msg("%s", message);
}

static void reload(struct daemon_fixture *f)
{
	autofree char *message = NULL;

	(void)daemon_reload(&f->daemon, &message);
}

/* Runs the timers that are due within TIME_NS. */
static void stop(void *context)
{
	loop_stop(context);
}

static void run_for(struct daemon_fixture *f, uint64_t time_ns)
{
	int timer;

	assert_int_equal(loop_timer(f->daemon.loop, time_ns, 0, stop, f->daemon.loop, &timer), 0);
	assert_int_equal(loop_run(f->daemon.loop), 0);
}

/* ---- what changes --------------------------------------------------------------------------- */

static void write_token(const struct daemon_fixture *f, const char *name, const char *token)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	assert_int_equal(io_replace_file(AT_FDCWD, path, token, strlen(token), 0600), 0);
}

static void a_token_file_takes_effect_with_the_reload_that_names_it(void **state)
{
	struct daemon_fixture *f = *state;
	autofree char *own = strdup(f->daemon.token);
	char text[128];

	write_token(f, "one", "first\n");
	write_token(f, "two", "second\n");
	snprintf(text, sizeof(text), "http-token-file: %s/one\n", f->directory);
	reload_to(f, text);
	assert_string_equal(f->daemon.token, "first");
	snprintf(text, sizeof(text), "http-token-file: %s/two\n", f->directory);
	reload_to(f, text);
	assert_string_equal(f->daemon.token, "second");
	reload_to(f, "");
	assert_string_equal(f->daemon.token, own);
}

static void a_changed_token_is_logged_and_an_unchanged_one_is_not(void **state)
{
	struct daemon_fixture *f = *state;
	char text[128];

	reload_to(f, "log-level: info\n");
	write_token(f, "token", "first\n");
	snprintf(text, sizeof(text), "log-level: info\nhttp-token-file: %s/token\n", f->directory);
	daemon_fixture_write(f, text);
	assert_non_null(strstr(daemon_fixture_logged(f, reload), "token of the HTTP address has"));
	assert_null(strstr(daemon_fixture_logged(f, reload), "token of the HTTP address has"));
	assert_string_equal(f->daemon.token, "first");
	write_token(f, "token", "second\n");
	assert_non_null(strstr(daemon_fixture_logged(f, reload), "token of the HTTP address has"));
}

static void a_missing_token_changes_nothing(void **state)
{
	struct daemon_fixture *f = *state;
	autofree char *message = NULL;

	daemon_fixture_write(f,
		"http-token-file: /nonexistent/token\nprofiling-cpu-sampling-frequency: 97\n"
		"remote-store-type: file\nremote-store-address: /tmp\n");
	assert_int_equal(daemon_reload(&f->daemon, &message), -EINVAL);
	assert_non_null(strstr(message, "/nonexistent/token: No such file or directory"));
	assert_int_equal(f->daemon.settings.frequency_hz, 19);
	assert_null(f->daemon.export);
}

static void open_store(struct daemon_fixture *f)
{
	char directory[96];
	const struct store_options options = { .directory = directory,
		.limit_bytes = 1 << 20,
		.now = { (int64_t)clock_real_ns(), clock_boot_ns() },
		.metrics = &f->sampler.metrics };

	snprintf(directory, sizeof(directory), "%s/profiles", f->directory);
	assert_int_equal(store_create(&options, &f->daemon.store), 0);
}

static void put(struct daemon_fixture *f, uint64_t age_ns)
{
	assert_int_equal(store_put(f->daemon.store, "x", (int64_t)(clock_real_ns() - age_ns),
				 (int64_t)SECOND, "x", 1),
		0);
}

static void new_limits_of_the_store_apply_at_once(void **state)
{
	struct daemon_fixture *f = *state;

	open_store(f);
	put(f, 7200 * SECOND);
	put(f, 600 * SECOND);
	put(f, 60 * SECOND);
	reload_to(f, "local-store-max-age: 1h\n");
	assert_int_equal(store_count(f->daemon.store), 2);
	reload_to(f, "local-store-max-bytes: 4096\n");
	assert_int_equal(store_count(f->daemon.store), 1);
}

static void debug_line(struct daemon_fixture *f)
{
	(void)f;
	log_debug("a detail", "%s", "");
}

static void the_log_changes_at_once(void **state)
{
	struct daemon_fixture *f = *state;

	assert_string_equal(daemon_fixture_logged(f, debug_line), "");
	reload_to(f, "log-level: debug\nlog-format: json\n");
	assert_int_equal(*daemon_fixture_logged(f, debug_line), '{');
	reload_to(f, "");
	assert_string_equal(daemon_fixture_logged(f, debug_line), "");
}

static void another_window_length_moves_the_next_end(void **state)
{
	struct daemon_fixture *f = *state;
	uint64_t due = f->daemon.window_due_ns;

	reload_to(f, "node: n1\n");
	assert_int_equal(f->daemon.window_due_ns, due);
	reload_to(f, "profiling-duration: 1h\n");
	assert_int_not_equal(f->daemon.window_due_ns, due);
	assert_int_equal(f->sampler.rotations, 0);
	/* Windows end at round times, so a one-second window ends within two seconds. */
	reload_to(f, "profiling-duration: 1s\n");
	run_for(f, 2 * SECOND + SECOND / 2);
	assert_true(f->sampler.rotations >= 1);
}

/* ---- the budget ----------------------------------------------------------------------------- */

static void an_unchanged_budget_keeps_its_frequency(void **state)
{
	struct daemon_fixture *f = *state;

	f->daemon.budget.current_hz = 5;
	reload_to(f, "profiling-duration: 60s\n");
	assert_int_equal(f->daemon.budget.current_hz, 5);
	assert_int_equal(f->sampler.rotations, 0);
}

static void a_changed_budget_starts_from_the_configured_frequency(void **state)
{
	struct daemon_fixture *f = *state;

	f->daemon.budget.current_hz = 5;
	reload_to(f, "cpu-budget: 50\n");
	assert_int_equal(f->daemon.budget.current_hz, 19);
	assert_int_equal(f->sampler.hz, 19);
	assert_true(f->daemon.budget.share == 0.5);
	/* Neither does the sampling frequency change, nor does a window end. */
	reload_to(f, "cpu-budget: 60\n");
	assert_true(f->daemon.budget.share == 0.6);
	assert_int_equal(f->sampler.rotations, 1);
}

static void a_budget_is_watched_while_there_is_one(void **state)
{
	struct daemon_fixture *f = *state;

	reload_to(f, "cpu-budget: 50\n");
	assert_true(f->daemon.budget_timer >= 0);
	reload_to(f, "cpu-budget: 0\n");
	assert_int_equal(f->daemon.budget_timer, -1);
}

/* ---- what is told --------------------------------------------------------------------------- */

static void the_log_has_the_result(void **state)
{
	struct daemon_fixture *f = *state;

	reload_to(f, "log-level: info\n");
	assert_non_null(
		strstr(daemon_fixture_logged(f, reload), "msg=\"the settings were reloaded\""));
	assert_null(strstr(f->log, "note="));
	daemon_fixture_write(f, "log-level: info\nmemory-limit: 1G\n");
	assert_non_null(strstr(daemon_fixture_logged(f, reload),
		"note=\"--memory-limit takes effect at the next start\""));
	daemon_fixture_write(f, "profiling-duration: 0s\n");
	assert_non_null(strstr(daemon_fixture_logged(f, reload), "nothing changed\" error=\""));
	assert_non_null(strstr(f->log, "1s to 1h"));
}

/* An error without a message is logged as its errno. */
static void a_bad_environment_is_refused(void **state)
{
	struct daemon_fixture *f = *state;

	assert_int_equal(setenv("FATHOM_MEMORY_LIMIT", "much", 1), 0);
	assert_non_null(strstr(daemon_fixture_logged(f, reload), "error=\"Invalid argument\""));
	assert_int_equal(unsetenv("FATHOM_MEMORY_LIMIT"), 0);
	assert_null(strstr(daemon_fixture_logged(f, reload), "error="));
}

static int listen_for_notices(struct daemon_fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", f->directory);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
	return fd;
}

static void assert_notice(int fd, const char *begin)
{
	char text[256] = "";

	assert_true(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
	assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
}

/* Whether or not it succeeded: systemd waits for it. */
static void systemd_is_notified_of_begin_and_end(void **state)
{
	struct daemon_fixture *f = *state;
	autoclose int fd = listen_for_notices(f);
	char text[8];

	for (int i = 0; i < 2; i++) {
		reload(f);
		assert_notice(fd, "RELOADING=1\nMONOTONIC_USEC=");
		assert_notice(fd, "READY=1");
		assert_int_equal(recv(fd, text, sizeof(text), MSG_DONTWAIT), -1);
		daemon_fixture_write(f, "profiling-duration: 0s\n");
	}
	assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
}

/* ---- over HTTP ------------------------------------------------------------------------------ */

static void assert_answer(struct daemon_fixture *f, int wanted, const char *text)
{
	autocall(buffer_deinit) struct buffer out;
	struct serve_handlers handlers;

	buffer_init(&out, 4096);
	daemon_http_handlers(&f->daemon, &handlers);
	assert_int_equal(handlers.reload(handlers.context, &out), wanted);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_string_equal((const char *)out.bytes, text);
}

static void a_reload_over_http_returns_the_result(void **state)
{
	struct daemon_fixture *f = *state;
	char wanted[256];

	assert_answer(f, 0, "reloaded\n");
	daemon_fixture_write(f, "memory-limit: 1G\n");
	assert_answer(f, 0, "reloaded; --memory-limit takes effect at the next start\n");
	daemon_fixture_write(f, "profiling-duration: 0s\n");
	snprintf(wanted, sizeof(wanted),
		"nothing changed: %s:1: profiling-duration must be 1s to 1h\n", f->config_path);
	assert_answer(f, -EINVAL, wanted);
	assert_int_equal(setenv("FATHOM_MEMORY_LIMIT", "much", 1), 0);
	assert_answer(f, -EINVAL, "nothing changed: Invalid argument\n");
	assert_int_equal(unsetenv("FATHOM_MEMORY_LIMIT"), 0);
}

static void without_a_file_the_command_line_is_read_again(void **state)
{
	struct daemon_fixture *f = *state;

	f->daemon.argc = 1;
	assert_answer(f, 0, "reloaded; --config-path takes effect at the next start\n");
}

#define CASE(name) \
	cmocka_unit_test_setup_teardown(name, daemon_fixture_setup, daemon_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_token_file_takes_effect_with_the_reload_that_names_it),
		CASE(a_changed_token_is_logged_and_an_unchanged_one_is_not),
		CASE(a_missing_token_changes_nothing),
		CASE(new_limits_of_the_store_apply_at_once),
		CASE(the_log_changes_at_once),
		CASE(another_window_length_moves_the_next_end),
		CASE(an_unchanged_budget_keeps_its_frequency),
		CASE(a_changed_budget_starts_from_the_configured_frequency),
		CASE(a_budget_is_watched_while_there_is_one),
		CASE(the_log_has_the_result),
		CASE(a_bad_environment_is_refused),
		CASE(systemd_is_notified_of_begin_and_end),
		CASE(a_reload_over_http_returns_the_result),
		CASE(without_a_file_the_command_line_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
