/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent to a remote store, and which options are rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proto/pyroscope_push.pb-c.h"
#include "tests/unit/remote_fixture.h"

#define PROTO_OK "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n"

/* ---- a server that records its requests ---------------------------------------------------- */
struct notes {
	struct fault_request requests[8];
	int count;
	const char *answers[8]; /* NULL: PROTO_OK */
};

/* Answers until the client closes: connections are kept alive. */
static void note(struct fault_connection *c)
{
	struct notes *notes = c->context;

	while (notes->count < 8) {
		struct fault_request *request = &notes->requests[notes->count];
		const char *answer = notes->answers[notes->count];

		if (!fault_read_request(c, request)) {
			free(request->body);
			return;
		}
		notes->count++;
		fault_text(c, answer ? answer : PROTO_OK);
	}
}

static void notes_deinit(struct notes *notes)
{
	for (int i = 0; i < notes->count; i++)
		free(notes->requests[i].body);
}

static void begin(struct remote_fixture *f, struct notes *notes, struct remote_options options)
{
	remote_fixture_init(f, note, notes, NULL);
	options.type = REMOTE_PYROSCOPE;
	remote_fixture_open(f, options);
}

static void end(struct remote_fixture *f, struct notes *notes)
{
	remote_fixture_deinit(f);
	notes_deinit(notes);
}

static void push_carries_labels_and_profile(void **state)
{
	struct notes notes = { 0 };
	struct remote_fixture f;
	Push__V1__PushRequest *push;

	(void)state;
	begin(&f, &notes, (struct remote_options){ 0 });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	assert_string_equal(f.result.code, "200");
	assert_int_equal(notes.count, 1);
	assert_true(!strncmp(
		notes.requests[0].head, "POST /push.v1.PusherService/Push HTTP/1.1\r\n", 43));
	assert_non_null(strstr(notes.requests[0].head, "\r\nContent-Type: application/proto\r\n"));
	push = push__v1__push_request__unpack(
		NULL, notes.requests[0].body_size, notes.requests[0].body);
	assert_non_null(push);
	assert_int_equal(push->n_series, 1);
	assert_int_equal(push->series[0]->n_labels, 3);
	assert_string_equal(push->series[0]->labels[0]->name, "__name__");
	assert_string_equal(push->series[0]->labels[2]->value, "a,b=\"c\"");
	assert_int_equal(push->series[0]->samples[0]->raw_profile.len, 7);
	assert_memory_equal(push->series[0]->samples[0]->raw_profile.data, "PROFILE", 7);
	push__v1__push_request__free_unpacked(push, NULL);
	assert_int_equal(
		f.result.sent_bytes, strlen(notes.requests[0].head) + notes.requests[0].body_size);
	end(&f, &notes);
}

static void one_connection_serves_many_payloads(void **state)
{
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes, (struct remote_options){ 0 });
	for (int i = 0; i < 5; i++) {
		remote_fixture_send(&f);
		assert_int_equal(f.result.verdict, REMOTE_SENT);
	}
	assert_int_equal(notes.count, 5);
	assert_int_equal(fault_server_connections(f.server), 1);
	end(&f, &notes);
}

static void old_servers_get_ingest(void **state)
{
	struct notes notes = { .answers = {
				       "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope",
				       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
				       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" } };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes, (struct remote_options){ 0 });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	assert_int_equal(notes.count, 2);
	assert_true(!strncmp(notes.requests[1].head,
		"POST /ingest?name=shop%7Bzone%3Da_b__c_%7D&format=pprof&from=1700000000"
		"&until=1700000011 HTTP/1.1\r\n",
		90));
	assert_memory_equal(notes.requests[1].body, "PROFILE", 7);
	/* The older way is remembered. */
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	assert_int_equal(notes.count, 3);
	assert_true(!strncmp(notes.requests[2].head, "POST /ingest?", 13));
	end(&f, &notes);
}

static void a_server_that_knows_neither_way_is_the_wrong_one(void **state)
{
	struct notes notes = { .answers = { "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
				       "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" } };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes, (struct remote_options){ 0 });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_DENIED);
	assert_string_equal(f.result.code, "404");
	assert_int_equal(notes.count, 2);
	/* The next payload tries the newer way first again. */
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	assert_true(!strncmp(notes.requests[2].head, "POST /push", 10));
	end(&f, &notes);
}

static void token_tenant_and_headers_are_sent(void **state)
{
	static const char *const headers[] = { "X-One: 1", "X-Two:a, b", "X-Empty:" };
	struct notes notes = { 0 };
	struct remote_fixture f;
	const char *head = notes.requests[0].head;

	(void)state;
	begin(&f, &notes,
		(struct remote_options){ .bearer_token = "geheim",
			.tenant_id = "t7",
			.headers = headers,
			.header_count = 3 });
	remote_fixture_send(&f);
	assert_non_null(strstr(head, "\r\nAuthorization: Bearer geheim\r\n"));
	assert_non_null(strstr(head, "\r\nX-Scope-OrgID: t7\r\n"));
	assert_non_null(strstr(head, "\r\nX-One: 1\r\n"));
	assert_non_null(strstr(head, "\r\nX-Two: a, b\r\n"));
	assert_non_null(strstr(head, "\r\nX-Empty:"));
	assert_non_null(strstr(head, "\r\nUser-Agent: fathom/"));
	assert_null(strstr(head, "Expect:"));
	end(&f, &notes);
}

static void a_proxy_is_asked_for_the_whole_address(void **state)
{
	struct notes notes = { 0 };
	struct remote_fixture f;
	char proxy[64];

	(void)state;
	remote_fixture_init(&f, note, &notes, NULL);
	snprintf(proxy, sizeof(proxy), "http://u:p@127.0.0.1:%d", fault_server_port(f.server));
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PYROSCOPE,
					.address = "http://pyroscope.invalid:4040/x",
					.proxy_url = proxy });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	assert_true(!strncmp(notes.requests[0].head,
		"POST http://pyroscope.invalid:4040/x/push.v1.PusherService/Push HTTP/1.1", 72));
	/* u:p */
	assert_non_null(strstr(notes.requests[0].head, "\r\nProxy-Authorization: Basic dTpw\r\n"));
	end(&f, &notes);
}

static void write_text(const char *path, const char *text)
{
	assert_int_equal(io_replace_file(AT_FDCWD, path, text, strlen(text), 0600), 0);
}

static void a_rotated_token_is_read_again(void **state)
{
	char directory[] = "/tmp/fathom-test-XXXXXX", path[64];
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/token", directory);
	write_text(path, "first\n");
	begin(&f, &notes, (struct remote_options){ .bearer_token_file = path });
	remote_fixture_send(&f);
	write_text(path, "second");
	remote_fixture_send(&f);
	/* While the file is missing, the last token stays in use. */
	unlink(path);
	remote_fixture_send(&f);
	assert_non_null(strstr(notes.requests[0].head, "Authorization: Bearer first\r\n"));
	assert_non_null(strstr(notes.requests[1].head, "Authorization: Bearer second\r\n"));
	assert_non_null(strstr(notes.requests[2].head, "Authorization: Bearer second\r\n"));
	end(&f, &notes);
	rmdir(directory);
}

static void a_missing_token_file_denies_without_a_request(void **state)
{
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes, (struct remote_options){ .bearer_token_file = "/nonexistent/token" });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_DENIED);
	assert_string_equal(f.result.code, "credentials");
	assert_non_null(strstr(f.result.message, "/nonexistent/token: No such file"));
	assert_int_equal(notes.count, 0);
	end(&f, &notes);
}

static void a_token_with_a_line_break_is_invalid(void **state)
{
	char path[] = "/tmp/fathom-test-XXXXXX";
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	close(mkstemp(path));
	write_text(path, "a\r\nX-Evil: 1\n");
	begin(&f, &notes, (struct remote_options){ .bearer_token_file = path });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_DENIED);
	assert_int_equal(notes.count, 0);
	end(&f, &notes);
	unlink(path);
}

static void basic_authentication(void **state)
{
	char path[] = "/tmp/fathom-test-XXXXXX";
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	close(mkstemp(path));
	write_text(path, "pass\n");
	begin(&f, &notes,
		(struct remote_options){
			.basic_auth_user = "user", .basic_auth_password_file = path });
	remote_fixture_send(&f);
	/* user:pass */
	assert_non_null(
		strstr(notes.requests[0].head, "\r\nAuthorization: Basic dXNlcjpwYXNz\r\n"));
	end(&f, &notes);
	unlink(path);
}

static void secrets_repeated_by_a_server_are_hidden(void **state)
{
	static const char *const headers[] = { "X-Key: kkkey" };
	struct notes notes = { .answers = {
				       "HTTP/1.1 401 Unauthorized\r\nContent-Length: 32\r\n\r\n"
				       "bad token geheim and bad kkkey.." } };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes,
		(struct remote_options){
			.bearer_token = "geheim", .headers = headers, .header_count = 1 });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_DENIED);
	assert_string_equal(f.result.message, "bad token ****** and bad *****..");
	end(&f, &notes);
}

/* ---- payloads that are refused here ---------------------------------------------------------- */
static void limits_of_pyroscope_are_checked_here(void **state)
{
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes, (struct remote_options){ 0 });
	f.payload.raw_bytes = (4 << 20) + 1;
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_REFUSED);
	assert_string_equal(f.result.code, "too_large");
	f.payload.raw_bytes = 4 << 20;
	f.payload.samples = 16001;
	remote_fixture_send(&f);
	assert_string_equal(f.result.code, "too_large");
	f.payload.samples = 16000;
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	for (int i = 3; i <= SERIES_LABELS_LIMIT; i++) {
		char name[16];

		snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(labels_set(&f.payload.labels, name, "x"), 0);
	}
	remote_fixture_send(&f);
	assert_string_equal(f.result.code, "labels");
	assert_int_equal(notes.count, 1);
	end(&f, &notes);
}

static void payloads_that_servers_would_lose_are_refused(void **state)
{
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes, (struct remote_options){ 0 });
	assert_int_equal(labels_set(&f.payload.labels, "service_name", ""), 0);
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_REFUSED);
	assert_non_null(strstr(f.result.message, "service_name"));
	assert_int_equal(labels_set(&f.payload.labels, "service_name", "x"), 0);
	f.payload.time_ns = 0;
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_REFUSED);
	f.payload.time_ns = 1;
	assert_int_equal(labels_set(&f.payload.labels, "__name__", ""), 0);
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_REFUSED);
	f.payload.pprof.size = 0;
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_REFUSED);
	assert_int_equal(notes.count, 0);
	end(&f, &notes);
}

static void one_payload_at_a_time(void **state)
{
	struct notes notes = { 0 };
	struct remote_fixture f;

	(void)state;
	begin(&f, &notes, (struct remote_options){ 0 });
	remote_fixture_begin(&f);
	assert_int_equal(remote_send(f.remote, &f.payload, NULL, NULL), -EBUSY);
	remote_fixture_wait(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	assert_int_equal(f.verdicts, 1);
	end(&f, &notes);
}

static void an_empty_run_returns(void **state)
{
	struct remotes *remotes;

	(void)state;
	assert_int_equal(remotes_create(&remotes), 0);
	assert_int_equal(remotes_run(remotes, 0), 0);
	remotes_wakeup(remotes);
	/* Without the wakeup this would take an hour. */
	assert_int_equal(remotes_run(remotes, 3600 * 1000), 0);
	remotes_destroy(remotes);
}

/* ---- options -------------------------------------------------------------------------------- */
static void invalid_options_are_refused(void **state)
{
	static const char *const folded[] = { "X: a\r\nY: b" }, *const host[] = { "Host: x" },
				 *const nameless[] = { "geheim" };
	static const struct {
		struct remote_options options;
		const char *said;
	} cases[] = {
		{ { .address = "" }, "address" },
		{ { .address = "ftp://h" }, "http://" },
		{ { .address = "https://u:geheim@h" }, "basic" },
		{ { .address = "https://h/?token=geheim" }, "?" },
		{ { .address = "https://" }, "HOST" },
		{ { .address = "h:99999" }, "HOST" },
		{ { .address = "h", .bearer_token = "a", .bearer_token_file = "b" }, "token" },
		{ { .address = "h", .bearer_token = "a", .basic_auth_user = "b" }, "token" },
		{ { .address = "h", .bearer_token = "gehe\nim" }, "token" },
		{ { .address = "h", .basic_auth_user = "b" }, "password" },
		{ { .address = "http://h", .ca_file = "/dev/null" }, "without TLS" },
		{ { .address = "h", .insecure = true, .client_cert = "/dev/null" }, "without TLS" },
		{ { .address = "h", .client_key = "/dev/null" }, "certificate" },
		{ { .address = "h", .ca_file = "/nonexistent" }, "/nonexistent: No such file" },
		{ { .address = "h", .server_name = "a:b" }, "host name" },
		{ { .address = "h", .headers = folded, .header_count = 1 }, "headers" },
		{ { .address = "h", .headers = host, .header_count = 1 }, "Host" },
		{ { .address = "h", .headers = nameless, .header_count = 1 }, "NAME: VALUE" },
	};
	struct remotes *remotes;

	(void)state;
	assert_int_equal(remotes_create(&remotes), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autofree char *message = NULL;
		struct remote *remote;

		assert_int_equal(
			remote_create(remotes, &cases[i].options, &remote, &message), -EINVAL);
		assert_non_null(message);
		if (!strstr(message, cases[i].said))
			fail_msg("case %zu says: %s", i, message);
		assert_null(strstr(message, "geheim"));
	}
	remotes_destroy(remotes);
}

static void addresses_in_all_their_forms(void **state)
{
	static const struct remote_options good[] = {
		{ .address = "h" },
		{ .address = "h:4040" },
		{ .address = "[::1]:4040", .insecure = true },
		{ .address = "https://h:1/a/b/" },
		{ .address = "http://h", .bearer_token = "t" },
		{ .address = "https://h", .server_name = "other.example" },
		{ .address = "https://[::1]/p", .server_name = "other.example" },
	};
	struct remotes *remotes;

	(void)state;
	assert_int_equal(remotes_create(&remotes), 0);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		autofree char *message = NULL;
		struct remote *remote;

		assert_int_equal(remote_create(remotes, &good[i], &remote, &message), 0);
		remote_destroy(remote);
	}
	remotes_destroy(remotes);
}

/* ---- a directory ---------------------------------------------------------------------------- */
static int files_in(const char *directory, const char *suffix)
{
	autoclosedir DIR *dir = opendir(directory);
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(dir)) != NULL) {
		size_t length = strlen(entry->d_name);

		count += length > strlen(suffix) &&
			 !strcmp(entry->d_name + length - strlen(suffix), suffix);
	}
	return count;
}

static void a_directory_gets_profile_and_labels_once(void **state)
{
	char directory[] = "/tmp/fathom-test-XXXXXX", command[128];
	struct remote_fixture f;

	(void)state;
	assert_non_null(mkdtemp(directory));
	remote_fixture_init(&f, NULL, NULL, NULL);
	remote_fixture_open(
		&f, (struct remote_options){ .type = REMOTE_FILE, .address = directory });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_SENT);
	remote_fixture_send(&f);
	assert_int_equal(files_in(directory, ".pb.gz"), 1);
	assert_int_equal(files_in(directory, ".labels"), 1);
	assert_int_equal(labels_set(&f.payload.labels, "zone", "other"), 0);
	remote_fixture_send(&f);
	assert_int_equal(files_in(directory, ".pb.gz"), 2);
	remote_fixture_deinit(&f);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

static void a_missing_directory_denies(void **state)
{
	struct remote_fixture f;

	(void)state;
	remote_fixture_init(&f, NULL, NULL, NULL);
	remote_fixture_open(
		&f, (struct remote_options){ .type = REMOTE_FILE, .address = "/nonexistent/d" });
	remote_fixture_send(&f);
	assert_int_equal(f.result.verdict, REMOTE_DENIED);
	assert_non_null(strstr(f.result.message, "/nonexistent/d: No such file"));
	remote_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_carries_labels_and_profile),
		cmocka_unit_test(one_connection_serves_many_payloads),
		cmocka_unit_test(old_servers_get_ingest),
		cmocka_unit_test(a_server_that_knows_neither_way_is_the_wrong_one),
		cmocka_unit_test(token_tenant_and_headers_are_sent),
		cmocka_unit_test(a_proxy_is_asked_for_the_whole_address),
		cmocka_unit_test(a_rotated_token_is_read_again),
		cmocka_unit_test(a_missing_token_file_denies_without_a_request),
		cmocka_unit_test(a_token_with_a_line_break_is_invalid),
		cmocka_unit_test(basic_authentication),
		cmocka_unit_test(secrets_repeated_by_a_server_are_hidden),
		cmocka_unit_test(limits_of_pyroscope_are_checked_here),
		cmocka_unit_test(payloads_that_servers_would_lose_are_refused),
		cmocka_unit_test(one_payload_at_a_time),
		cmocka_unit_test(an_empty_run_returns),
		cmocka_unit_test(invalid_options_are_refused),
		cmocka_unit_test(addresses_in_all_their_forms),
		cmocka_unit_test(a_directory_gets_profile_and_labels_once),
		cmocka_unit_test(a_missing_directory_denies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
