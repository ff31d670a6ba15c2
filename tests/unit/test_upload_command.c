/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom upload` to a fake server, on a clock that the test advances. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/server/export/remote/remote.h"
#include "base/cleanup.h"
#include "base/host.h"
#include "base/io.h"
#include "pprof/pprof.h"

/* ---- the server -------------------------------------------------------------------------------
 */

enum { MAX_ANSWERS = 8 };

/* Replaces agent/server/export/remote/remote.c. */
static struct {
	struct remote_result answers[MAX_ANSWERS]; /* the last one is repeated */
	size_t sent;
	uint64_t sent_ns[2 * MAX_ANSWERS];
	char service[64]; /* of the last payload */
	int64_t time_ns;
	remote_done_fn *done;
	void *context;
	bool waiting; /* a payload has no answer yet */
	int create_error, send_error;
	unsigned int made, destroyed;
	uint64_t now_ns;
} server;

int remotes_create(struct remotes **ret_remotes)
{
	if (server.create_error == -ENOENT)
		return -ENOENT;
	server.made++;
	*ret_remotes = NULL;
	return 0;
}

void remotes_destroy(struct remotes *r)
{
	(void)r;
	server.destroyed++;
}

int remote_create(struct remotes *r, const struct remote_options *options,
	struct remote **ret_remote, char **ret_message)
{
	(void)r;
	assert_string_equal(options->address, "https://example.test");
	if (server.create_error == -EINVAL)
		*ret_message = strdup("the address is odd");
	*ret_remote = NULL;
	server.made += !server.create_error;
	return server.create_error;
}

void remote_destroy(struct remote *remote)
{
	(void)remote;
	server.destroyed++;
}

int remote_send(
	struct remote *remote, const struct payload *payload, remote_done_fn *done, void *context)
{
	(void)remote;
	assert_false(server.waiting);
	if (server.send_error)
		return server.send_error;
	snprintf(server.service, sizeof(server.service), "%s",
		labels_get(&payload->labels, "service_name"));
	server.time_ns = payload->time_ns;
	server.sent_ns[server.sent % (2 * MAX_ANSWERS)] = server.now_ns;
	server.done = done;
	server.context = context;
	server.waiting = true;
	return 0;
}

/* The second call answers. */
int remotes_run(struct remotes *r, int timeout_ms)
{
	size_t last = 0;

	(void)r;
	assert_true(timeout_ms > 0);
	if (!server.waiting) {
		server.now_ns += (uint64_t)timeout_ms * 1000000;
		return 0;
	}
	server.waiting = false;
	while (last + 1 < MAX_ANSWERS && server.answers[last + 1].code[0])
		last++;
	server.done(server.context, &server.answers[MIN(server.sent, last)]);
	server.sent++;
	return 0;
}

static uint64_t server_clock_ns(void *context, clockid_t clock)
{
	(void)context;
	return clock == CLOCK_REALTIME ? UINT64_C(1700000000000000000) : server.now_ns;
}

static int plain_openat(void *context, int dir_fd, const char *path, int flags)
{
	(void)context;
	return openat(dir_fd, path, flags);
}

static int plain_fstat(void *context, int fd, struct stat *ret_stat)
{
	(void)context;
	return fstat(fd, ret_stat);
}

static ssize_t plain_pread(void *context, int fd, void *bytes, size_t size, off_t off)
{
	(void)context;
	return pread(fd, bytes, size, off);
}

static const struct host host = { .clock_ns = server_clock_ns,
	.openat = plain_openat,
	.fstat = plain_fstat,
	.pread = plain_pread };

/* ---- a run ------------------------------------------------------------------------------------
 */

static const struct remote_result sent = {
	.verdict = REMOTE_SENT, .code = "200", .sent_bytes = 100
};
static char output[1 << 14], directory[] = "/tmp/fathom-test-XXXXXX";

static const char *below(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* Writes a profile of one sample, without a time of its own. */
static void write_profile(const char *path)
{
	const struct pprof_options options = { .types = { { "samples", "count" } },
		.type_count = 1,
		.default_type = "samples",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1,
		.limit_bytes = 1 << 20 };
	const struct timespec times[2] = { { 1600000000, 5 }, { 1600000000, 5 } };
	const struct pprof_line line = { .name = "f", .system_name = "f", .file = "" };
	uint64_t location;
	const int64_t value = 5;
	struct buffer out;
	struct pprof *p;

	assert_int_equal(pprof_create(&options, &p), 0);
	assert_int_equal(pprof_location(p, 0, 1, &line, 1, &location), 0);
	assert_int_equal(pprof_sample(p, &location, 1, &value, NULL, 0), 0);
	buffer_init(&out, 1 << 20);
	assert_int_equal(pprof_encode(p, true, &out), 0);
	assert_int_equal(io_replace_file(AT_FDCWD, path, out.bytes, out.size, 0600), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	buffer_deinit(&out);
	pprof_destroy(p);
}

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	server.answers[0] = sent;
	write_profile(below("app.pb.gz"));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(below("app.pb.gz"));
	return 0;
}

/* Runs the command; standard error goes to `output`. */
static int run_words(int argc, char **argv)
{
	struct invocation call = { .argc = argc, .argv = argv };
	int before = dup(STDERR_FILENO), status;
	FILE *file = tmpfile();
	size_t size;

	fflush(NULL);
	dup2(fileno(file), STDERR_FILENO);
	host_current = &host;
	status = config_parse(&call.config, IN_UPLOAD, argc, argv) ? -1 : command_upload(&call);
	host_current = NULL;
	config_deinit(&call.config);
	fflush(NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	size = fread(output, 1, sizeof(output) - 1, file);
	output[size] = 0;
	fclose(file);
	assert_int_equal(server.made, server.destroyed);
	return status;
}

#define WORDS(...)                                                            \
	(int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *)), (char *[]) \
	{                                                                     \
		__VA_ARGS__, NULL                                             \
	}
#define UPLOAD(...)                                                            \
	run_words(WORDS((char *)"upload", (char *)"--remote-store-type=parca", \
		(char *)"--remote-store-address=https://example.test", __VA_ARGS__))

static int upload(const char *path)
{
	return UPLOAD((char *)path);
}

static void says(const char *text)
{
	if (!strstr(output, text))
		fail_msg("'%s' is not in '%s'", text, output);
}

static void usage_is_checked(void **state)
{
	(void)state;
	assert_int_equal(run_words(WORDS((char *)"upload")), EXIT_USAGE);
	says("fathom upload: no file given; see fathom upload --help\n");
	assert_int_equal(run_words(WORDS((char *)"upload", (char *)"f")), EXIT_USAGE);
	says("fathom upload: say where to: --remote-store-type and --remote-store-address; see");
	assert_int_equal(run_words(WORDS((char *)"upload", (char *)"--remote-store-type=tape",
				 (char *)"--remote-store-address=x", (char *)"f")),
		EXIT_USAGE);
	says("--remote-store-type");
	server.create_error = -EINVAL;
	assert_int_equal(upload(below("app.pb.gz")), EXIT_USAGE);
	says("fathom upload: the address is odd; see fathom upload --help\n");
	server.create_error = -ENOMEM;
	assert_int_equal(upload(below("app.pb.gz")), EXIT_USAGE);
	says("fathom upload: Cannot allocate memory; see");
	server.create_error = -ENOENT;
	assert_int_equal(upload(below("app.pb.gz")), EXIT_FAILED);
	says("fathom upload: libcurl (libcurl.so.4) cannot be loaded\n");
	assert_int_equal(server.sent, 0);
}

static void a_file_is_sent(void **state)
{
	char expected[256];

	(void)state;
	assert_int_equal(upload(below("app.pb.gz")), EXIT_DONE);
	snprintf(expected, sizeof(expected), "%s: 1 profiles, 1 samples, 100 bytes sent\n",
		below("app.pb.gz"));
	assert_string_equal(output, expected);
	assert_string_equal(server.service, "app");
	assert_true(server.time_ns == INT64_C(1600000000000000005)); /* mtime of the file */
	assert_int_equal(UPLOAD((char *)below("app.pb.gz"), (char *)below("app.pb.gz")), EXIT_DONE);
	assert_int_equal(server.sent, 3);
}

static void files_give_services_their_names(void **state)
{
	static const struct {
		const char *file, *service;
	} cases[] = { { "a.pprof", "a" }, { "a.prof", "a" }, { "a.pb", "a" }, { "a.gz", "a" },
		{ "a.b", "a.b" }, { ".pb", ".pb" }, { "a.pb.gz.gz", "a.pb.gz" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_profile(below(cases[i].file));
		assert_int_equal(upload(below(cases[i].file)), EXIT_DONE);
		assert_string_equal(server.service, cases[i].service);
		unlink(below(cases[i].file));
	}
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(upload("app.pb.gz"), EXIT_DONE);
	assert_string_equal(server.service, "app");
}

static void unreadable_files_are_reported(void **state)
{
	(void)state;
	assert_int_equal(UPLOAD((char *)"/no/such", (char *)below("app.pb.gz")), EXIT_FAILED);
	says("fathom upload: /no/such: No such file or directory\n");
	says("app.pb.gz: 1 profiles, 1 samples"); /* the other files are sent */
	assert_int_equal(io_replace_file(AT_FDCWD, below("x"), "text", 4, 0600), 0);
	assert_int_equal(upload(below("x")), EXIT_FAILED);
	says("x: it is neither pprof nor gzip-compressed pprof\n");
	assert_int_equal(truncate(below("x"), (64 << 20) + 1), 0);
	assert_int_equal(upload(below("x")), EXIT_FAILED);
	says("x: is too large\n");
	unlink(below("x"));
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static void a_server_that_is_busy_is_asked_again(void **state)
{
	static const uint64_t waits_ms[] = { 500, 1000, 2000, 4000, 8000 };

	(void)state;
	server.answers[0] = (struct remote_result){
		.verdict = REMOTE_RETRY, .code = "503", .message = "busy", .sent_bytes = 10
	};
	assert_int_equal(upload(below("app.pb.gz")), EXIT_FAILED);
	says("app.pb.gz: busy (503); trying again in 0.5 s\n");
	says("app.pb.gz: busy (503); trying again in 8.0 s\n");
	says("app.pb.gz: busy (503)\n");
	says("app.pb.gz: 0 profiles, 0 samples, 60 bytes sent\n");
	assert_null(strstr(output, "it may arrive twice"));
	assert_int_equal(server.sent, 6);
	for (size_t i = 0; i < ARRAY_SIZE(waits_ms); i++)
		assert_in_range(server.sent_ns[i + 1] - server.sent_ns[i], waits_ms[i] * 1000000,
			(waits_ms[i] + 1) * 1000000);
}

static void it_is_eventually_sent(void **state)
{
	(void)state;
	server.answers[0] =
		(struct remote_result){ .verdict = REMOTE_AMBIGUOUS, .code = "timeout" };
	server.answers[1] = sent;
	assert_int_equal(upload(below("app.pb.gz")), EXIT_DONE);
	says("app.pb.gz: no answer (timeout); trying again in 0.5 s; it may arrive twice\n");
	says("1 profiles, 1 samples, 100 bytes sent\n");
	assert_int_equal(server.sent, 2);
}

static void the_server_says_how_long_to_wait(void **state)
{
	(void)state;
	server.answers[0] = (struct remote_result){
		.verdict = REMOTE_RETRY, .code = "429", .retry_after_ns = UINT64_C(7000000000)
	};
	server.answers[1] = (struct remote_result){
		.verdict = REMOTE_RETRY, .code = "429", .retry_after_ns = UINT64_C(3600000000000)
	};
	server.answers[2] = sent;
	assert_int_equal(upload(below("app.pb.gz")), EXIT_DONE);
	says("trying again in 7.0 s");
	says("trying again in 60.0 s"); /* the longest pause */
	assert_in_range(server.sent_ns[1] - server.sent_ns[0], 7000000000, 7001000000);
	assert_in_range(server.sent_ns[2] - server.sent_ns[1], 60000000000, 60001000000);
}

static void possibly_bad_payloads_are_retried_less_often(void **state)
{
	(void)state;
	server.answers[0] =
		(struct remote_result){ .verdict = REMOTE_RETRY, .code = "500", .blurred = true };
	assert_int_equal(upload(below("app.pb.gz")), EXIT_FAILED);
	assert_int_equal(server.sent, 3);
}

static void refused_payloads_are_not_sent_again(void **state)
{
	(void)state;
	server.answers[0] = (struct remote_result){ .verdict = REMOTE_REFUSED, .code = "400" };
	assert_int_equal(
		UPLOAD((char *)below("app.pb.gz"), (char *)below("app.pb.gz")), EXIT_FAILED);
	says("app.pb.gz: rejected (400)\n");
	assert_int_equal(server.sent, 2); /* the next file is another payload */
	server.sent = 0;
	server.answers[0] = (struct remote_result){
		.verdict = REMOTE_DENIED, .code = "401", .message = "who are you"
	};
	assert_int_equal(
		UPLOAD((char *)below("app.pb.gz"), (char *)below("app.pb.gz")), EXIT_FAILED);
	says("app.pb.gz: who are you (401)\n");
	assert_int_equal(server.sent, 1); /* the next file would be denied, too */
}

static void payloads_that_cannot_be_sent_are_reported(void **state)
{
	(void)state;
	server.send_error = -ENOMEM;
	assert_int_equal(upload(below("app.pb.gz")), EXIT_FAILED);
	says("app.pb.gz: Cannot allocate memory\n");
	says("app.pb.gz: 0 profiles, 0 samples, 0 bytes sent\n");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(usage_is_checked),
		CASE(a_file_is_sent),
		CASE(files_give_services_their_names),
		CASE(unreadable_files_are_reported),
		CASE(a_server_that_is_busy_is_asked_again),
		CASE(it_is_eventually_sent),
		CASE(the_server_says_how_long_to_wait),
		CASE(possibly_bad_payloads_are_retried_less_often),
		CASE(refused_payloads_are_not_sent_again),
		CASE(payloads_that_cannot_be_sent_are_reported),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
