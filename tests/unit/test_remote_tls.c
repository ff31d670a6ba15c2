/* SPDX-License-Identifier: Apache-2.0 */
/* TLS: which servers are trusted, and the messages about untrusted ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/certificates.h"
#include "tests/unit/remote_fixture.h"

struct files {
	char directory[32];
	char ca[64], other_ca[64], certificate[64], key[64], client[64], client_key[64];
	struct authority *authority, *other;
};

static void files_init(struct files *f)
{
	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-test-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	snprintf(f->ca, sizeof(f->ca), "%s/ca", f->directory);
	snprintf(f->other_ca, sizeof(f->other_ca), "%s/other", f->directory);
	snprintf(f->certificate, sizeof(f->certificate), "%s/crt", f->directory);
	snprintf(f->key, sizeof(f->key), "%s/key", f->directory);
	snprintf(f->client, sizeof(f->client), "%s/client", f->directory);
	snprintf(f->client_key, sizeof(f->client_key), "%s/client.key", f->directory);
	f->authority = authority_create("ours");
	f->other = authority_create("theirs");
	authority_write(f->authority, f->ca);
	authority_write(f->other, f->other_ca);
	authority_sign(
		f->authority, &(struct leaf){ "client", -60, 3600, f->client, f->client_key });
}

static void files_deinit(struct files *f)
{
	char command[64];

	authority_destroy(f->authority);
	authority_destroy(f->other);
	snprintf(command, sizeof(command), "rm -r %s", f->directory);
	assert_int_equal(system(command), 0);
}

static void sign(const struct files *f, const char *name, long from_s, long to_s)
{
	authority_sign(f->authority, &(struct leaf){ name, from_s, to_s, f->certificate, f->key });
}

static void answer_ok(struct fault_connection *c)
{
	struct fault_request request;

	if (fault_read_request(c, &request))
		fault_text(c, "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n"
			      "Connection: close\r\nContent-Length: 0\r\n\r\n");
	if (c->context)
		snprintf(c->context, sizeof(request.head), "%s", request.head);
	free(request.body);
}

struct expected {
	enum remote_verdict verdict;
	const char *code, *said;
};

static void send_and_expect(const struct fault_tls *tls, char *head, struct remote_options options,
	struct expected expected)
{
	struct remote_fixture f;

	remote_fixture_init(&f, answer_ok, head, tls);
	options.type = REMOTE_PYROSCOPE;
	remote_fixture_open(&f, options);
	remote_fixture_send(&f);
	if (f.result.verdict != expected.verdict || strcmp(f.result.code, expected.code) ||
		!strstr(f.result.message, expected.said))
		fail_msg("verdict %d, code %s: %s", f.result.verdict, f.result.code,
			f.result.message);
	remote_fixture_deinit(&f);
}

static const struct expected sent = { REMOTE_SENT, "200", "" };

static void a_configured_authority_is_trusted(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "localhost", -60, 3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .ca_file = f.ca }, sent);
}

static void another_authority_is_not_trusted(void **state)
{
	autocall(files_deinit) struct files f;
	struct expected denied = { REMOTE_DENIED, "certificate", "issuer" };

	(void)state;
	files_init(&f);
	sign(&f, "localhost", -60, 3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .ca_file = f.other_ca }, denied);
	/* The system's authorities do not trust it either. */
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ 0 }, denied);
}

static void an_expired_certificate_is_named(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "localhost", -7200, -3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .ca_file = f.ca },
		(struct expected){ REMOTE_DENIED, "certificate", "certificate has expired" });
}

static void a_certificate_of_the_future_is_named(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "localhost", 3600, 7200);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .ca_file = f.ca },
		(struct expected){ REMOTE_DENIED, "certificate", "not yet valid" });
}

static void another_name_is_named(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "elsewhere.example", -60, 3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .ca_file = f.ca },
		(struct expected){ REMOTE_DENIED, "certificate", "127.0.0.1" });
}

static void a_server_name_that_is_given_is_what_counts(void **state)
{
	autocall(files_deinit) struct files f;
	char head[sizeof(((struct fault_request *)NULL)->head)] = "";

	(void)state;
	files_init(&f);
	sign(&f, "elsewhere.example", -60, 3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, head,
		(struct remote_options){ .ca_file = f.ca, .server_name = "elsewhere.example" },
		sent);
	assert_non_null(strstr(head, "\r\nHost: 127.0.0.1:"));
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .ca_file = f.ca, .server_name = "another.example" },
		(struct expected){ REMOTE_DENIED, "certificate", "another.example" });
}

static void verification_can_be_disabled(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "elsewhere.example", -7200, -3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .insecure_skip_verify = true }, sent);
}

static void a_client_certificate_is_presented(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "localhost", -60, 3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, f.ca, false }, NULL,
		(struct remote_options){
			.ca_file = f.ca, .client_cert = f.client, .client_key = f.client_key },
		sent);
}

static void a_missing_client_certificate_is_named(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "localhost", -60, 3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, f.ca, false }, NULL,
		(struct remote_options){ .ca_file = f.ca },
		(struct expected){ REMOTE_DENIED, "certificate", "certificate" });
}

static void a_ca_file_without_certificates_is_named(void **state)
{
	autocall(files_deinit) struct files f;

	(void)state;
	files_init(&f);
	sign(&f, "localhost", -60, 3600);
	send_and_expect(&(struct fault_tls){ f.certificate, f.key, NULL, false }, NULL,
		(struct remote_options){ .ca_file = f.key },
		(struct expected){ REMOTE_DENIED, "certificate", f.key });
}

/* ---- files that are replaced ----------------------------------------------------------------- */

static void send_again(struct remote_fixture *f, struct expected expected)
{
	remote_fixture_send(f);
	if (f->result.verdict != expected.verdict || strcmp(f->result.code, expected.code) ||
		!strstr(f->result.message, expected.said))
		fail_msg("verdict %d, code %s: %s", f->result.verdict, f->result.code,
			f->result.message);
}

static void a_ca_file_is_read_again(void **state)
{
	const struct expected denied = { REMOTE_DENIED, "certificate", "issuer" };
	autocall(files_deinit) struct files files;
	struct remote_fixture f;

	(void)state;
	files_init(&files);
	sign(&files, "localhost", -60, 3600);
	remote_fixture_init(&f, answer_ok, NULL,
		&(struct fault_tls){ files.certificate, files.key, NULL, false });
	remote_fixture_open(
		&f, (struct remote_options){ .type = REMOTE_PYROSCOPE, .ca_file = files.other_ca });
	send_again(&f, denied);
	authority_write(files.authority, files.other_ca);
	send_again(&f, sent);
	/* An authority that is removed from the file is no longer trusted. */
	authority_write(files.other, files.other_ca);
	send_again(&f, denied);
	remote_fixture_deinit(&f);
}

static void a_client_certificate_is_read_again(void **state)
{
	autocall(files_deinit) struct files files;
	struct remote_fixture f;

	(void)state;
	files_init(&files);
	sign(&files, "localhost", -60, 3600);
	authority_sign(
		files.other, &(struct leaf){ "client", -60, 3600, files.client, files.client_key });
	remote_fixture_init(&f, answer_ok, NULL,
		&(struct fault_tls){ files.certificate, files.key, files.ca, false });
	remote_fixture_open(&f, (struct remote_options){ .type = REMOTE_PYROSCOPE,
					.ca_file = files.ca,
					.client_cert = files.client,
					.client_key = files.client_key });
	send_again(&f, (struct expected){ REMOTE_DENIED, "certificate", "" });
	authority_sign(files.authority,
		&(struct leaf){ "client", -60, 3600, files.client, files.client_key });
	send_again(&f, sent);
	remote_fixture_deinit(&f);
}

/* While the file is replaced it may be missing or incomplete. */
static void a_ca_file_that_is_being_replaced(void **state)
{
	autocall(files_deinit) struct files files;
	struct remote_fixture f;

	(void)state;
	files_init(&files);
	sign(&files, "localhost", -60, 3600);
	remote_fixture_init(&f, answer_ok, NULL,
		&(struct fault_tls){ files.certificate, files.key, NULL, false });
	remote_fixture_open(
		&f, (struct remote_options){ .type = REMOTE_PYROSCOPE, .ca_file = files.ca });
	send_again(&f, sent);
	assert_int_equal(unlink(files.ca), 0);
	send_again(&f, sent);
	assert_int_equal(rename(files.key, files.ca), 0);
	send_again(&f, (struct expected){ REMOTE_DENIED, "certificate", files.ca });
	authority_write(files.authority, files.ca);
	send_again(&f, sent);
	remote_fixture_deinit(&f);
}

static void tls_to_a_server_of_plain_text(void **state)
{
	struct remote_fixture f;
	char address[64];

	(void)state;
	remote_fixture_init(&f, answer_ok, NULL, NULL);
	/* Without a scheme and without `insecure`, TLS is used. */
	snprintf(address, sizeof(address), "127.0.0.1:%d", fault_server_port(f.server));
	remote_fixture_open(&f,
		(struct remote_options){
			.type = REMOTE_PYROSCOPE, .address = address, .timeout_ns = 2000000000 });
	remote_fixture_send(&f);
	assert_int_not_equal(f.result.verdict, REMOTE_SENT);
	assert_int_not_equal(f.result.verdict, REMOTE_AMBIGUOUS);
	remote_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configured_authority_is_trusted),
		cmocka_unit_test(another_authority_is_not_trusted),
		cmocka_unit_test(an_expired_certificate_is_named),
		cmocka_unit_test(a_certificate_of_the_future_is_named),
		cmocka_unit_test(another_name_is_named),
		cmocka_unit_test(a_server_name_that_is_given_is_what_counts),
		cmocka_unit_test(verification_can_be_disabled),
		cmocka_unit_test(a_client_certificate_is_presented),
		cmocka_unit_test(a_missing_client_certificate_is_named),
		cmocka_unit_test(a_ca_file_without_certificates_is_named),
		cmocka_unit_test(a_ca_file_is_read_again),
		cmocka_unit_test(a_client_certificate_is_read_again),
		cmocka_unit_test(a_ca_file_that_is_being_replaced),
		cmocka_unit_test(tls_to_a_server_of_plain_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
