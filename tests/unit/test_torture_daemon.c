/* SPDX-License-Identifier: Apache-2.0 */
/* agent/daemon while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include "tests/unit/daemon_fixture.h"

/* ---- figures -------------------------------------------------------------------------------- */

struct counting {
	unsigned int before, counted;
};

static void begin_counting(void *context)
{
	struct counting *c = context;

	c->before = daemon_open_fds();
	assert_int_not_equal(c->before, 0);
}

static int count_open_fds(void *context)
{
	struct counting *c = context;

	c->counted = daemon_open_fds();
	return 0;
}

static void all_or_none_are_counted(void *context, int result)
{
	const struct counting *c = context;

	(void)result;
	if (!torture_failed() || c->counted != 0)
		assert_int_equal(c->counted, c->before);
}

static void open_fds_are_all_counted_or_not_known(void **state)
{
	struct counting c;
	struct torture t = { .begin = begin_counting,
		.operation = count_open_fds,
		.end = all_or_none_are_counted,
		.context = &c,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

/* ---- reload --------------------------------------------------------------------------------- */

static void write_token(const struct daemon_fixture *f, const char *token)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/token", f->directory);
	assert_int_equal(io_replace_file(AT_FDCWD, path, token, strlen(token), 0600), 0);
}

/* An agent that answers HTTP and sends nothing, whose settings have all changed since its start. */
static void begin_reload(void *context)
{
	struct daemon_fixture *f = context;
	char text[1024], address[128];
	struct serve_options options = { .address = address };
	char *message = NULL;

	daemon_fixture_make(f, "");
	write_token(f, "old");
	snprintf(text, sizeof(text), "http-token-file: %s/token\n", f->directory);
	daemon_fixture_write(f, text);
	assert_int_equal(daemon_reload(&f->daemon, &message), 0);
	snprintf(address, sizeof(address), "unix:%s/socket", f->directory);
	options.loop = f->daemon.loop;
	options.token = f->daemon.token;
	daemon_http_handlers(&f->daemon, &options.handlers);
	assert_int_equal(serve_create(&options, &f->daemon.serve), 0);
	write_token(f, "new");
	snprintf(text, sizeof(text),
		"http-token-file: %s/token\nprofiling-cpu-sampling-frequency: 97\n"
		"profiling-duration: 60s\ninclude: comm=x\nnode: n7\nspool-directory: %s/spool\n"
		"remote-store-type: file\nremote-store-address: %s\nmetadata-external-labels: "
		"a=b\n",
		f->directory, f->directory, f->directory);
	daemon_fixture_write(f, text);
	f->sampler.selects = f->sampler.offers = 0;
}

static int reload(void *context)
{
	struct daemon_fixture *f = context;
	autofree char *message = NULL;

	return daemon_reload(&f->daemon, &message);
}

static void all_or_nothing_is_changed(void *context, int result)
{
	struct daemon_fixture *f = context;
	struct daemon *d = &f->daemon;
	bool changed = !result;

	assert_string_equal(d->token, changed ? "new" : "old");
	assert_int_equal(d->export != NULL, changed);
	assert_int_equal(d->settings.frequency_hz, changed ? 97 : 19);
	assert_int_equal(d->settings.window_ns, UINT64_C(1000000000) * (changed ? 60 : 10));
	assert_int_equal(config_text(&d->config, SETTING_node) != NULL, changed);
	assert_int_equal(d->settings.selection != NULL, changed);
	assert_int_equal(f->sampler.selects, changed);
	assert_int_equal(f->sampler.offers, changed);
	daemon_fixture_unmake(f);
}

static void a_reload_changes_all_or_nothing(void **state)
{
	static struct daemon_fixture f;
	struct torture t = { .begin = begin_reload,
		.operation = reload,
		.end = all_or_nothing_is_changed,
		.context = &f,
		/* stat: reading the file says the rest; others: a spool begins without its disk. */
		.optional =
			"stat mkdir mkdirat open openat fdopendir readdir fstat fstatat flock "
			"pread pwrite write renameat fdatasync fsync unlinkat ftruncate fcntl dup",
		.other_errors = true };

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(open_fds_are_all_counted_or_not_known),
		torture_test(a_reload_changes_all_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
