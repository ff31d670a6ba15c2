/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/pprof.h"
#include "tests/unit/remote_fixture.h"

void remote_fixture_init(
	struct remote_fixture *f, fault_script *script, void *context, const struct fault_tls *tls)
{
	static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
		"all_proxy", "ALL_PROXY" };

	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
		unsetenv(proxies[i]);
	*f = (struct remote_fixture){ 0 };
	if (script)
		f->server = fault_server_start(script, context, tls);
	snprintf(f->address, sizeof(f->address), "http%s://127.0.0.1:%d", tls ? "s" : "",
		script ? fault_server_port(f->server) : fault_free_port());
	assert_int_equal(remotes_create(&f->remotes), 0);
	assert_int_equal(labels_set(&f->payload.labels, "__name__", "process_cpu"), 0);
	assert_int_equal(labels_set(&f->payload.labels, "service_name", "shop"), 0);
	assert_int_equal(labels_set(&f->payload.labels, "zone", "a,b=\"c\""), 0);
	buffer_init(&f->payload.pprof, 1 << 20);
	assert_int_equal(buffer_string(&f->payload.pprof, "PROFILE"), 0);
	f->payload.raw_bytes = 7;
	f->payload.samples = 1;
	f->payload.time_ns = 1700000000500000000;
	f->payload.duration_ns = 10000000000;
}

void remote_fixture_put_profile(struct remote_fixture *f)
{
	const struct pprof_options options = { .types = { { "cpu", "nanoseconds" } },
		.type_count = 1,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1 };
	const struct pprof_line line = { "main", "main", "a.c", 1, 0, 1 };
	struct pprof *pprof;
	uint64_t location;

	assert_int_equal(pprof_create(&options, &pprof), 0);
	assert_int_equal(pprof_location(pprof, 0, 0, &line, 1, &location), 0);
	assert_int_equal(pprof_sample(pprof, &location, 1, (int64_t[]){ 42 }, NULL, 0), 0);
	f->payload.pprof.size = 0;
	assert_int_equal(pprof_encode(pprof, true, &f->payload.pprof), 0);
	pprof_destroy(pprof);
}

void remote_fixture_deinit(struct remote_fixture *f)
{
	remote_destroy(f->remote);
	remotes_destroy(f->remotes);
	fault_server_stop(f->server);
	payload_deinit(&f->payload);
}

void remote_fixture_open(struct remote_fixture *f, struct remote_options options)
{
	char *message = NULL;

	if (!options.address)
		options.address = f->address;
	if (!options.timeout_ns)
		options.timeout_ns = UINT64_C(10000000000);
	if (remote_create(f->remotes, &options, &f->remote, &message))
		fail_msg("%s", message ? message : "?");
}

static void on_done(void *context, const struct remote_result *result)
{
	struct remote_fixture *f = context;

	f->result = *result;
	f->verdicts++;
}

void remote_fixture_begin(struct remote_fixture *f)
{
	assert_int_equal(remote_send(f->remote, &f->payload, on_done, f), 0);
}

void remote_fixture_wait(struct remote_fixture *f)
{
	int before = f->verdicts;

	while (f->verdicts == before)
		assert_int_equal(remotes_run(f->remotes, 1000), 0);
}

void remote_fixture_send(struct remote_fixture *f)
{
	remote_fixture_begin(f);
	remote_fixture_wait(f);
}
