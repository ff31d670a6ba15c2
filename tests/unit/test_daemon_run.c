/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom agent` from its start to its end, with a fake sampler, as a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/daemon/daemon.h"
#include "agent/server/store/store.h"
#include "agent/settings/exit_status.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "tests/unit/fake_sampler.h"
#include "tests/unit/remove_tree.h"

enum { ARGUMENTS_LIMIT = 12, LOG_LIMIT = 64 << 10, HUNG_S = 60 };

static const uint64_t SECOND = 1000000000;

struct bench {
	struct sampler *sampler; /* in memory that the agent shares */
	char directory[64], log_path[96], store[96], socket[96], config_path[96];
	char store_option[128], http_option[128], cache_option[128], config_option[128];
	int notify_fd, sealed_fds[2];
	pid_t pid; /* 0 = not running */
	char text[LOG_LIMIT]; /* of the last read */
};

static void path_in(struct bench *b, char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", b->directory, name);
}

static int listen_for_notices(struct bench *b)
{
	const struct timeval hung = { .tv_sec = HUNG_S };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	path_in(b, address.sun_path, sizeof(address.sun_path), "notify");
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &hung, sizeof(hung)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
	return fd;
}

static void make_sampler(struct bench *b)
{
	void *world;

	b->sampler = mmap(NULL, sizeof(*b->sampler), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(b->sampler, MAP_FAILED);
	assert_int_equal(report_setup(&world), 0);
	assert_int_equal(pipe2(b->sealed_fds, O_CLOEXEC), 0);
	b->sampler->world = world;
	b->sampler->sealed_fd = b->sealed_fds[1];
	b->sampler->window = (struct sealed_window){
		.number = 1,
		.began_ns = clock_monotonic_ns(),
		.began_real_ns = clock_real_ns(),
		.period = 52631578,
		.profile = b->sampler->world->profile,
		.processes = &b->sampler->world->described,
		.anon_module = processes_anon_module(b->sampler->world->processes),
	};
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	snprintf(b->directory, sizeof(b->directory), "/tmp/fathom-agent-XXXXXX");
	assert_non_null(mkdtemp(b->directory));
	path_in(b, b->log_path, sizeof(b->log_path), "log");
	path_in(b, b->store, sizeof(b->store), "profiles");
	path_in(b, b->socket, sizeof(b->socket), "socket");
	path_in(b, b->config_path, sizeof(b->config_path), "fathom.yaml");
	snprintf(b->store_option, sizeof(b->store_option), "--local-store-directory=%s", b->store);
	snprintf(b->http_option, sizeof(b->http_option), "--http-address=unix:%s", b->socket);
	snprintf(b->cache_option, sizeof(b->cache_option), "--cache-directory=%s/cache",
		b->directory);
	snprintf(b->config_option, sizeof(b->config_option), "--config-path=%s", b->config_path);
	b->notify_fd = listen_for_notices(b);
	make_sampler(b);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	void *world = b->sampler->world;

	if (b->pid) {
		kill(b->pid, SIGKILL);
		waitpid(b->pid, NULL, 0);
	}
	unsetenv("NOTIFY_SOCKET");
	close(b->notify_fd);
	close(b->sealed_fds[0]);
	close(b->sealed_fds[1]);
	report_teardown(&world);
	munmap(b->sampler, sizeof(*b->sampler));
	remove_tree(b->directory);
	free(b);
	return 0;
}

/* ---- the agent ------------------------------------------------------------------------------ */

static int run_agent(struct bench *b, int argc, char **argv)
{
	autoclose int log = open(b->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	autofree char *message = NULL;
	struct config config;

	fake_sampler_next = b->sampler;
	if (dup2(log, STDERR_FILENO) < 0 || config_parse(&config, IN_AGENT, argc, argv))
		return 99;
	if (config_text(&config, SETTING_config_path) &&
		config_load(&config, b->config_path, &message))
		return 98;
	return daemon_run(&config, argc, argv);
}

/* Starts it with a NULL-terminated list of options; without HTTP and a store by default. */
static void start(struct bench *b, ...)
{
	char *argv[ARGUMENTS_LIMIT] = { (char *)"agent", b->cache_option, (char *)"--http-address=",
		(char *)"--http-socket=", (char *)"--local-store-directory=" };
	int argc = 5;
	va_list list;

	va_start(list, b);
	while ((argv[argc] = va_arg(list, char *)))
		argc++;
	va_end(list);
	b->pid = fork();
	assert_true(b->pid >= 0);
	if (b->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(run_agent(b, argc, argv));
}

/* Waits until it has ended. Returns its exit status. */
static int ended(struct bench *b)
{
	int status;

	assert_int_equal(waitpid(b->pid, &status, 0), b->pid);
	b->pid = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Waits for the next notice, which must be TEXT or begin with it. */
static void assert_notice(struct bench *b, const char *text)
{
	char notice[256] = "";

	assert_true(recv(b->notify_fd, notice, sizeof(notice) - 1, 0) > 0);
	if (strncmp(notice, text, strlen(text)) != 0)
		fail_msg("%s in place of %s", notice, text);
}

static int stopped(struct bench *b)
{
	assert_int_equal(kill(b->pid, SIGTERM), 0);
	assert_notice(b, "STOPPING=1");
	return ended(b);
}

static const char *read_log(struct bench *b)
{
	autocall(buffer_deinit) struct buffer out;

	buffer_init(&out, LOG_LIMIT - 1);
	assert_int_equal(io_read_file(AT_FDCWD, b->log_path, &out), 0);
	snprintf(b->text, sizeof(b->text), "%.*s", (int)out.size, (const char *)out.bytes);
	return b->text;
}

static void assert_logged(struct bench *b, const char *text)
{
	if (!strstr(read_log(b), text))
		fail_msg("no %s in %s", text, b->text);
}

/* Asks over HTTP and returns the whole answer. */
static const char *ask(struct bench *b, const char *method_and_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t size = 0;
	ssize_t got;

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", b->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(dprintf(fd, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
			    method_and_path) > 0);
	while ((got = read(fd, b->text + size, sizeof(b->text) - 1 - size)) > 0)
		size += (size_t)got;
	b->text[size] = 0;
	return b->text;
}

static void sample(struct bench *b)
{
	struct profile_frame frame = in_program(MAIN, 0, b->sampler->world);

	add_user(b->sampler->world, b->sampler->world->one, &frame, 1);
}

/* Opens the store that the agent left behind. */
static size_t stored(struct bench *b)
{
	const struct store_options options = {
		.directory = b->store, .limit_bytes = 1 << 20, .metrics = &b->sampler->metrics
	};
	struct store *store;
	size_t count;

	assert_int_equal(store_create(&options, &store), 0);
	count = store_count(store);
	store_destroy(store);
	return count;
}

/* ---- its life ------------------------------------------------------------------------------- */

static void it_samples_until_a_signal_stops_it(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT };
	struct bench *b = *state;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		start(b, b->http_option, NULL);
		assert_notice(b, "READY=1");
		assert_non_null(strstr(ask(b, "GET /ready"), "HTTP/1.1 200"));
		assert_non_null(strstr(ask(b, "GET /status"), "\"ready\": true"));
		assert_int_equal(kill(b->pid, signals[i]), 0);
		assert_notice(b, "STOPPING=1");
		assert_int_equal(ended(b), EXIT_DONE);
		assert_int_equal(b->sampler->stopped, i + 1);
		assert_int_equal(b->sampler->destroyed, i + 1);
		assert_int_equal(access(b->socket, F_OK), -1);
	}
}

static void the_sampler_gets_the_settings(void **state)
{
	struct bench *b = *state;
	const struct sampler_options *o = &b->sampler->options;

	start(b, "--profiling-cpu-sampling-frequency=97", "--memory-limit=400M",
		"--cache-max-bytes=3M", "--off-cpu-threshold=0.25", "--include=comm=x", NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(o->collect.frequency_hz, 97);
	assert_true(o->collect.off_cpu_share == 0.25);
	assert_true(o->collect.user && o->collect.kernel);
	assert_int_equal(o->memory_limit_bytes, 400 << 20);
	assert_int_equal(o->profile_limit_bytes, 100 << 20);
	assert_int_equal(o->cache_limit_bytes, 3 << 20);
	assert_int_equal(b->sampler->selects, 1);
	assert_non_null(b->sampler->selection);
	assert_int_equal(stopped(b), EXIT_DONE);
}

static void the_last_window_is_stored(void **state)
{
	struct bench *b = *state;

	sample(b);
	start(b, b->store_option, NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_int_equal(stored(b), 1);
}

static void windows_end_while_it_runs(void **state)
{
	struct bench *b = *state;
	char byte;

	sample(b);
	start(b, b->store_option, b->http_option, "--profiling-duration=1s", NULL);
	assert_notice(b, "READY=1");
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(b->sealed_fds[0], &byte, 1), 1);
	assert_non_null(strstr(ask(b, "GET /status"), "\"windows\": "));
	assert_null(strstr(b->text, "\"windows\": 0,"));
	assert_non_null(strstr(ask(b, "GET /api/profiles"), "\"name\":\"\",\"time_ms\":"));
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_true(stored(b) >= 3);
}

static void write_config(struct bench *b, const char *text)
{
	assert_int_equal(io_replace_file(AT_FDCWD, b->config_path, text, strlen(text), 0600), 0);
}

static void a_hangup_reads_the_settings_again(void **state)
{
	struct bench *b = *state;

	write_config(b, "cpu-budget: 0\n");
	start(b, b->http_option, b->config_option, NULL);
	assert_notice(b, "READY=1");
	write_config(b, "cpu-budget: 0\nprofiling-cpu-sampling-frequency: 97\n");
	assert_int_equal(kill(b->pid, SIGHUP), 0);
	assert_notice(b, "RELOADING=1");
	assert_notice(b, "READY=1");
	assert_int_equal(b->sampler->hz, 97);
	assert_non_null(strstr(ask(b, "GET /status"), "\"configured\": 97"));
	assert_int_equal(stopped(b), EXIT_DONE);
}

static void the_watchdog_is_fed_twice_a_period(void **state)
{
	struct bench *b = *state;

	assert_int_equal(setenv("WATCHDOG_USEC", "100000", 1), 0);
	start(b, NULL);
	assert_int_equal(unsetenv("WATCHDOG_USEC"), 0);
	assert_notice(b, "READY=1");
	assert_notice(b, "WATCHDOG=1");
	assert_notice(b, "WATCHDOG=1");
	assert_int_equal(kill(b->pid, SIGKILL), 0);
}

static void the_limit_of_open_files_is_raised_to_the_hard_limit(void **state)
{
	struct bench *b = *state;
	struct rlimit before, low, now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){ 64, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	start(b, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_notice(b, "READY=1");
	assert_int_equal(prlimit(b->pid, RLIMIT_NOFILE, NULL, &now), 0);
	assert_int_equal(now.rlim_cur, before.rlim_max);
	assert_int_equal(stopped(b), EXIT_DONE);
}

/* ---- what keeps it from starting ------------------------------------------------------------ */

/* It ends with STATUS and prints TEXT; its sampler, if any, was destroyed. */
static void assert_ends(struct bench *b, int status, const char *text)
{
	assert_int_equal(ended(b), status);
	assert_logged(b, text);
}

static void invalid_settings_are_usage_errors(void **state)
{
	struct bench *b = *state;

	start(b, "--profiling-duration=0s", NULL);
	assert_ends(b, EXIT_USAGE, "fathom agent: --profiling-duration must be 1s to 1h\n");
	assert_int_equal(b->sampler->destroyed, 0);
}

static void a_sampler_that_cannot_be_created_is_explained(void **state)
{
	struct bench *b = *state;

	b->sampler->create_error = -ENOMEM;
	start(b, NULL);
	assert_ends(b, EXIT_FAILED, "the fake");
}

static void a_sampler_that_cannot_start_ends_it(void **state)
{
	struct bench *b = *state;

	b->sampler->start_error = -EMFILE;
	start(b, NULL);
	assert_ends(b, EXIT_FAILED, "cannot start sampling: Too many open files\n");
	assert_int_equal(b->sampler->destroyed, 1);
	assert_int_equal(b->sampler->stopped, 0);
}

static void a_missing_token_ends_it(void **state)
{
	struct bench *b = *state;

	start(b, "--http-token-file=/nonexistent/token", NULL);
	assert_ends(b, EXIT_FAILED,
		"fathom agent: --http-token-file: /nonexistent/token: No such file or directory\n");
}

static void a_store_of_another_user_ends_it(void **state)
{
	struct bench *b = *state;
	const struct store_options options = {
		.directory = b->store, .limit_bytes = 1 << 20, .metrics = &b->sampler->metrics
	};
	struct store *store;

	assert_int_equal(store_create(&options, &store), 0);
	start(b, b->store_option, NULL);
	assert_ends(b, EXIT_FAILED, "/profiles: another agent uses it\n");
	store_destroy(store);
	assert_int_equal(chmod(b->store, 0777), 0);
	start(b, b->store_option, NULL);
	assert_ends(b, EXIT_FAILED, "it must belong to you and be writable by nobody else\n");
	start(b, "--local-store-directory=/proc/nothing", NULL);
	assert_ends(b, EXIT_FAILED, "--local-store-directory /proc/nothing: No such file");
}

static void a_spool_of_another_user_ends_it(void **state)
{
	struct bench *b = *state;
	char spool[96], spool_option[128], address[128];

	path_in(b, spool, sizeof(spool), "spool");
	assert_int_equal(mkdir(spool, 0777) | chmod(spool, 0777), 0);
	snprintf(spool_option, sizeof(spool_option), "--spool-directory=%s", spool);
	snprintf(address, sizeof(address), "--remote-store-address=%s", b->directory);
	start(b, "--remote-store-type=file", address, spool_option, NULL);
	assert_ends(b, EXIT_FAILED, "fathom agent: ");
	assert_logged(b, "spool");
	assert_int_equal(b->sampler->destroyed, 1);
}

static void an_address_in_use_ends_it(void **state)
{
	struct bench *b = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", b->socket);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	start(b, b->http_option, NULL);
	assert_ends(b, EXIT_FAILED, "in use, perhaps by another agent: choose another address\n");
	start(b, "--http-address=unix:/proc/nothing/socket", NULL);
	assert_ends(b, EXIT_FAILED, "--http-address unix:/proc/nothing/socket: No such file");
}

static void a_socket_file_is_made_beside_the_address(void **state)
{
	struct bench *b = *state;
	char option[128], logged[160];

	snprintf(option, sizeof(option), "--http-socket=%s", b->socket);
	start(b, "--log-level=info", option, NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(access(b->socket, F_OK), 0);
	snprintf(logged, sizeof(logged), "address= port=0 socket=%s\n", b->socket);
	assert_logged(b, logged);
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_int_equal(access(b->socket, F_OK), -1);
	start(b, "--http-socket=relative", NULL);
	assert_ends(b, EXIT_FAILED, "--http-socket relative: it must be an absolute path of");
	assert_int_equal(chmod(b->directory, 0777), 0);
	start(b, option, NULL);
	assert_ends(b, EXIT_FAILED, ": its directory must be ours and writable by nobody else\n");
}

/* ---- what it says --------------------------------------------------------------------------- */

static void a_terminal_gets_the_addresses(void **state)
{
	struct bench *b = *state;
	unsigned int port;
	char wanted[128];
	const char *at;

	start(b, "--announce", "--log-level=info", "--http-address=:0", b->store_option, NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_logged(b, "fathom samples this machine 19 times a second on each CPU.\n");
	assert_logged(b, "msg=\"sampling\" hz=19 address=:0 port=");
	at = strstr(read_log(b), " port=");
	assert_int_equal(sscanf(at, " port=%u", &port), 1);
	snprintf(wanted, sizeof(wanted), "@127.0.0.1:%u/\n", port);
	assert_logged(b, "Look at it:      http://fathom:");
	assert_logged(b, wanted);
	snprintf(wanted, sizeof(wanted), "'http://127.0.0.1:%u/debug/pprof/profile?seconds=5'",
		port);
	assert_logged(b, wanted);
	snprintf(wanted, sizeof(wanted), "Profiles are in: %s\n", b->store);
	assert_logged(b, wanted);
	start(b, "--announce", "--http-address=localhost:0", NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_logged(b, "http://localhost:");
	assert_null(strstr(b->text, "Profiles are in"));
	start(b, "--announce", b->http_option, NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_logged(b, "fathom samples this machine");
	assert_null(strstr(b->text, "http://"));
}

/* A token of the administrator's may have characters that mean something in an address. */
static void the_announced_address_has_the_token_escaped(void **state)
{
	struct bench *b = *state;
	char path[96], option[128];
	int fd;

	path_in(b, path, sizeof(path), "token");
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "aZ0-._~@:/?#%[]+&'\n", 19), 19);
	close(fd);
	snprintf(option, sizeof(option), "--http-token-file=%s", path);
	start(b, "--announce", "--http-address=localhost:0", option, NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_logged(b, "http://fathom:aZ0-._~%40%3A%2F%3F%23%25%5B%5D%2B%26%27@localhost:");
}

static void without_a_terminal_nothing_is_announced(void **state)
{
	struct bench *b = *state;

	start(b, "--log-level=info", NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_logged(b, "msg=\"sampling\" hz=19\n");
	assert_null(strstr(b->text, "fathom samples this machine"));
}

static unsigned int count_of(const char *text, const char *wanted)
{
	unsigned int count = 0;

	for (; (text = strstr(text, wanted)) != NULL; text++)
		count++;
	return count;
}

static void wait_for_something(struct bench *b)
{
	struct profile_frame frame = in_program(MAIN, 0, b->sampler->world);
	struct profile_stack stack = { &frame, 1, 0, 0 };

	add_wait(b->sampler->world, b->sampler->world->one, &stack, SECOND);
}

/* Only the first window of five seconds is shown; waits are not CPU samples. */
static void a_terminal_gets_the_hottest_functions_once(void **state)
{
	struct bench *b = *state;
	char byte;

	for (int i = 0; i < 3; i++)
		sample(b);
	wait_for_something(b);
	b->sampler->window.began_ns -= 6 * SECOND;
	start(b, "--announce", "--profiling-duration=1s", NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(read(b->sealed_fds[0], &byte, 1), 1);
	assert_logged(b, "   self  total  function (of 3 samples)\n");
	assert_logged(b, " 100.0% 100.0%  main  ");
	b->sampler->window.began_ns -= 10 * SECOND;
	assert_int_equal(read(b->sealed_fds[0], &byte, 1), 1);
	assert_int_equal(count_of(read_log(b), "self  total"), 1);
	assert_int_equal(stopped(b), EXIT_DONE);
}

static void a_short_window_is_not_shown(void **state)
{
	struct bench *b = *state;
	char byte;

	sample(b);
	start(b, "--announce", "--profiling-duration=1s", NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(read(b->sealed_fds[0], &byte, 1), 1);
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_null(strstr(read_log(b), "self  total"));
}

/* Exit does not wait for a table. */
static void the_last_window_is_not_shown(void **state)
{
	struct bench *b = *state;

	sample(b);
	b->sampler->window.began_ns -= 60 * SECOND;
	start(b, "--announce", "--profiling-duration=1h", NULL);
	assert_notice(b, "READY=1");
	assert_int_equal(stopped(b), EXIT_DONE);
	assert_null(strstr(read_log(b), "self  total"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_samples_until_a_signal_stops_it),
		CASE(the_sampler_gets_the_settings),
		CASE(the_last_window_is_stored),
		CASE(windows_end_while_it_runs),
		CASE(a_hangup_reads_the_settings_again),
		CASE(the_watchdog_is_fed_twice_a_period),
		CASE(the_limit_of_open_files_is_raised_to_the_hard_limit),
		CASE(invalid_settings_are_usage_errors),
		CASE(a_sampler_that_cannot_be_created_is_explained),
		CASE(a_sampler_that_cannot_start_ends_it),
		CASE(a_missing_token_ends_it),
		CASE(a_store_of_another_user_ends_it),
		CASE(a_spool_of_another_user_ends_it),
		CASE(an_address_in_use_ends_it),
		CASE(a_socket_file_is_made_beside_the_address),
		CASE(a_terminal_gets_the_addresses),
		CASE(the_announced_address_has_the_token_escaped),
		CASE(without_a_terminal_nothing_is_announced),
		CASE(a_terminal_gets_the_hottest_functions_once),
		CASE(a_short_window_is_not_shown),
		CASE(the_last_window_is_not_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
