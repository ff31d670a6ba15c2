/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/config_lists.h"
#include "agent/daemon/export.h"
#include "agent/settings/remote_settings.h"
#include "base/cleanup.h"

struct parsed {
	struct config config;
	struct remote_settings settings;
	char *message;
	int err;
};

static void parse(struct parsed *p, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	*p = (struct parsed){ 0 };
	assert_int_equal(config_parse(&p->config, IN_UPLOAD, argc, argv), 0);
	p->err = remote_options_from_config(&p->config, &p->settings, &p->message);
}

static void parsed_deinit(struct parsed *p)
{
	remote_settings_deinit(&p->settings);
	config_deinit(&p->config);
	free(p->message);
}

#define PARSE(p, ...) parse(p, (char *[]){ (char *)"upload", __VA_ARGS__, NULL })

static void all_options_arrive(void **state)
{
	autocall(parsed_deinit) struct parsed p;
	const struct remote_options *o = &p.settings.options;

	(void)state;
	PARSE(&p, "--remote-store-type=pyroscope", "--remote-store-address=https://p:4040/x",
		"--remote-store-bearer-token=t", "--remote-store-ca-file=/ca",
		"--remote-store-client-cert=/crt", "--remote-store-client-key=/key",
		"--remote-store-server-name=n", "--remote-store-tenant-id=7",
		"--remote-store-insecure-skip-verify", "--remote-store-proxy-url=http://px");
	assert_int_equal(p.err, 0);
	assert_int_equal(o->type, REMOTE_PYROSCOPE);
	assert_string_equal(o->name, "pyroscope");
	assert_string_equal(o->address, "https://p:4040/x");
	assert_string_equal(o->bearer_token, "t");
	assert_string_equal(o->ca_file, "/ca");
	assert_string_equal(o->client_cert, "/crt");
	assert_string_equal(o->client_key, "/key");
	assert_string_equal(o->server_name, "n");
	assert_string_equal(o->tenant_id, "7");
	assert_string_equal(o->proxy_url, "http://px");
	assert_true(o->insecure_skip_verify);
	assert_false(o->insecure);
	assert_null(o->bearer_token_file);
	assert_null(o->basic_auth_user);
}

static void headers_with_colon_equals_and_commas(void **state)
{
	autocall(parsed_deinit) struct parsed p;

	(void)state;
	PARSE(&p, "--remote-store-type=parca", "--remote-store-address=h:1",
		"--remote-store-headers=X-One=1,X-Two: a\\,b=c", "--remote-store-headers= X-3 = ");
	assert_int_equal(p.err, 0);
	assert_int_equal(p.settings.options.header_count, 3);
	assert_string_equal(p.settings.options.headers[0], "X-One: 1");
	assert_string_equal(p.settings.options.headers[1], "X-Two: a,b=c");
	assert_string_equal(p.settings.options.headers[2], "X-3: ");
}

static void external_labels_in_both_spellings(void **state)
{
	autocall(parsed_deinit) struct parsed p;

	(void)state;
	PARSE(&p, "--metadata-external-labels=zone=a;env= prod,x=1=2");
	assert_int_equal(p.err, -ENOENT);
	assert_int_equal(p.settings.external.count, 3);
	assert_string_equal(labels_get(&p.settings.external, "env"), "prod");
	assert_string_equal(labels_get(&p.settings.external, "zone"), "a");
	assert_string_equal(labels_get(&p.settings.external, "x"), "1=2");
}

static void nothing_configured_is_no_error(void **state)
{
	autocall(parsed_deinit) struct parsed p;

	(void)state;
	PARSE(&p, "--log-level=info");
	assert_int_equal(p.err, -ENOENT);
	assert_null(p.message);
}

static void invalid_settings_are_named(void **state)
{
	static const struct {
		const char *options[2];
		const char *said;
	} cases[] = {
		{ { "--remote-store-type=parka", "--remote-store-address=h:1" },
			"--remote-store-type: parka" },
		{ { "--remote-store-address=h:1" }, "--remote-store-type: must be" },
		{ { "--remote-store-type=parca" }, "--remote-store-address: is missing" },
		{ { "--remote-store-type=otlp", "--remote-store-address=h:1" },
			"--remote-store-otlp-unstable" },
		{ { "--metadata-external-labels=abc" }, "abc: must be NAME=VALUE" },
		{ { "--metadata-external-labels=a b=c" }, "a b: not a label's name" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autocall(parsed_deinit) struct parsed p;

		PARSE(&p, (char *)cases[i].options[0], (char *)cases[i].options[1]);
		assert_int_equal(p.err, -EINVAL);
		assert_non_null(strstr(p.message, cases[i].said));
	}
}

static void otlp_wants_to_be_allowed_and_has_two_ways(void **state)
{
	static const struct {
		const char *option;
		enum remote_way way;
	} cases[] = {
		{ "--remote-store-otlp-protocol=", REMOTE_WAY_ANY },
		{ "--remote-store-otlp-protocol=grpc", REMOTE_WAY_GRPC },
		{ "--remote-store-otlp-protocol=http", REMOTE_WAY_HTTP },
	};
	autocall(parsed_deinit) struct parsed bad;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		autocall(parsed_deinit) struct parsed p;

		PARSE(&p, "--remote-store-type=otlp", "--remote-store-address=h:1",
			"--remote-store-otlp-unstable", (char *)cases[i].option);
		assert_int_equal(p.err, 0);
		assert_int_equal(p.settings.options.type, REMOTE_OTLP);
		assert_int_equal(p.settings.options.way, cases[i].way);
	}
	PARSE(&bad, "--remote-store-type=otlp", "--remote-store-address=h:1",
		"--remote-store-otlp-unstable", "--remote-store-otlp-protocol=json");
	assert_int_equal(bad.err, -EINVAL);
	assert_non_null(strstr(bad.message, "json: must be grpc or http"));
}

static void a_bad_header_is_not_shown(void **state)
{
	autocall(parsed_deinit) struct parsed p;

	(void)state;
	PARSE(&p, "--remote-store-type=parca", "--remote-store-address=h:1",
		"--remote-store-headers=geheim");
	assert_int_equal(p.err, -EINVAL);
	assert_non_null(strstr(p.message, "--remote-store-headers"));
	assert_null(strstr(p.message, "geheim"));
}

/* Checks that TEXT is refused with the message SAID after the file's name. */
static void refused_in_file(const char *text, const char *said)
{
	char path[] = "/tmp/test-remote-settings-XXXXXX", whole[256];
	char *argv[] = { (char *)"agent", NULL };
	autocall(config_deinit) struct config config;
	autofree char *message = NULL;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(config_parse(&config, IN_AGENT, 1, argv), 0);
	assert_int_equal(config_load(&config, path, &message), 0);
	unlink(path);
	assert_int_equal(daemon_export_check(&config, &message), -EINVAL);
	snprintf(whole, sizeof(whole), "%s:%s", path, said);
	assert_string_equal(message, whole);
}

static void what_a_file_says_is_refused_with_its_line(void **state)
{
	(void)state;
	refused_in_file("node: x\nremote-stores:\n- address: h:1\n  type: parka\n",
		"4: remote-stores: type: parka: must be pyroscope, parca, otlp or file");
	refused_in_file("remote-stores:\n- type: parca\n  address: h:1\n- type: parca\n",
		"4: remote-stores: address: is missing");
	refused_in_file("remote-stores:\n- {}\n", "2: remote-stores: address: is missing");
	refused_in_file("remote-stores:\n- type: otlp\n  address: h:1\n",
		"2: remote-stores: type: otlp: the format of profiles in OTLP is not stable yet; "
		"otlp-unstable: true accepts that");
	refused_in_file("remote-stores:\n- {type: parca, address: 'h:1', bearer-token: x,\n"
			"   bearer-token-file: /x}\n",
		"2: remote-stores: a bearer token and a bearer token file exclude each other");
	refused_in_file("\nremote-store-type: parka\n",
		"2: remote-store-type: parka: must be pyroscope, parca, otlp or file");
	refused_in_file("\nmetadata-external-labels: [a=b, c]\n",
		"2: metadata-external-labels: c: must be NAME=VALUE");
	refused_in_file("series-labels: cpu\n", "1: series-labels must be thread_comm, tid, goid "
						"or a pprof label of Go programs: cpu: "
						"this is a label of fathom's own");
	refused_in_file("node: x\ndebuginfo-upload: true\n",
		"2: debuginfo-upload: only Parca supports it, and no remote store is of that type");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_options_arrive),
		cmocka_unit_test(headers_with_colon_equals_and_commas),
		cmocka_unit_test(external_labels_in_both_spellings),
		cmocka_unit_test(nothing_configured_is_no_error),
		cmocka_unit_test(invalid_settings_are_named),
		cmocka_unit_test(otlp_wants_to_be_allowed_and_has_two_ways),
		cmocka_unit_test(a_bad_header_is_not_shown),
		cmocka_unit_test(what_a_file_says_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
