/* SPDX-License-Identifier: Apache-2.0 */
/* agent/daemon while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include "agent/daemon/daemon.h"
#include "agent/daemon/export_settings.h"
#include "agent/daemon/groups.h"
#include "agent/daemon/series.h"
#include "agent/sampler/profile/sample_labels.h"
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
		/* stat: reading the file reports the error. timerfd_settime: called or not, as the
		   clock has it, and fails for invalid values only. The others: a spool starts
		   without its disk. */
		.optional =
			"stat timerfd_settime mkdir mkdirat open openat fdopendir readdir fstat "
			"fstatat flock "
			"pread pwrite write renameat fdatasync fsync unlinkat ftruncate fcntl dup",
		.other_errors = true };

	(void)state;
	torture_run(&t);
}

/* ---- settings ------------------------------------------------------------------------------- */

struct reading {
	struct daemon_fixture agent;
	struct config config;
	struct daemon_settings settings;
	struct export_settings export;
	char *message;
};

static void begin_reading(void *context)
{
	struct reading *r = context;
	char *argv[] = { (char *)"agent", NULL };

	daemon_fixture_make_directory(&r->agent);
	daemon_fixture_write(&r->agent, "include: comm=x\nexclude: pid=7\nseries-labels: tid\n"
					"include-env-var: TEAM, ZONE\n"
					"metadata-external-labels: a=b;c=d\n"
					"remote-stores:\n"
					"  - type: file\n    address: /1\n"
					"  - type: otlp\n    address: http://127.0.0.1:1\n"
					"    otlp-unstable: true\n    headers: x=y\n"
					"relabel_configs:\n"
					"  - source_labels: [comm]\n    regex: (a+)b\n"
					"    target_label: service_name\n");
	assert_int_equal(config_parse(&r->config, IN_AGENT, 1, argv), 0);
	assert_int_equal(config_load(&r->config, r->agent.config_path, &r->message), 0);
	memset(&r->export, 0, sizeof(r->export));
	memset(&r->settings, 0, sizeof(r->settings));
}

static void forget(struct reading *r)
{
	free(take(r->message));
	config_deinit(&r->config);
	remove_tree(r->agent.directory);
}

static int read_export(void *context)
{
	struct reading *r = context;

	return export_settings_read(&r->config, &r->export, &r->message);
}

static void all_stores_or_none(void *context, int result)
{
	struct reading *r = context;

	assert_int_equal(r->export.store_count, result ? 0 : 2);
	assert_int_equal(r->export.external.count, result ? 0 : 2);
	assert_int_equal(r->export.relabel != NULL, !result);
	export_settings_deinit(&r->export);
	forget(r);
}

static void export_settings_are_read_or_not(void **state)
{
	static struct reading r;
	struct torture t = { .begin = begin_reading,
		.operation = read_export,
		.end = all_stores_or_none,
		.context = &r,
		.other_errors = true };

	(void)state;
	torture_run(&t);
}

static int read_daemon(void *context)
{
	struct reading *r = context;

	return daemon_settings_read(&r->config, &r->settings, &r->message);
}

static void all_settings_or_none(void *context, int result)
{
	struct reading *r = context;

	assert_int_equal(r->settings.selection != NULL, !result);
	assert_int_equal(r->settings.frequency_hz, result ? 0 : 19);
	selection_destroy(r->settings.selection);
	forget(r);
}

static void settings_are_read_or_not(void **state)
{
	static struct reading r;
	struct torture t = { .begin = begin_reading,
		.operation = read_daemon,
		.end = all_settings_or_none,
		.context = &r,
		.other_errors = true };

	(void)state;
	torture_run(&t);
}

/* ---- start and end -------------------------------------------------------------------------- */

struct life {
	struct daemon_fixture agent; /* only its directory and its sampler */
	struct config config;
	char token[128], cache[128], http[128], socket[128], store[128];
	char *argv[7];
};

static void begin_life(void *context)
{
	struct life *l = context;
	struct daemon_fixture *f = &l->agent;
	void *world;

	daemon_fixture_make_directory(f);
	f->sampler = (struct sampler){ .stops_at_start = true };
	assert_int_equal(report_setup(&world), 0);
	f->sampler.world = world;
	f->sampler.window = (struct sealed_window){ .number = 1,
		.began_ns = clock_monotonic_ns(),
		.began_real_ns = clock_real_ns(),
		.period = 1,
		.profile = f->sampler.world->profile };
	write_token(f, "t");
	snprintf(l->token, sizeof(l->token), "--http-token-file=%s/token", f->directory);
	snprintf(l->cache, sizeof(l->cache), "--cache-directory=%s/cache", f->directory);
	snprintf(l->http, sizeof(l->http), "--http-address=unix:%s/socket", f->directory);
	snprintf(l->socket, sizeof(l->socket), "--http-socket=%s/run/socket", f->directory);
	snprintf(l->store, sizeof(l->store), "--local-store-directory=%s/profiles", f->directory);
	memcpy(l->argv,
		((char *[]){ (char *)"agent", l->token, l->cache, l->http, l->socket, l->store,
			(char *)"--include=comm=x" }),
		sizeof(l->argv));
	assert_int_equal(config_parse(&l->config, IN_AGENT, (int)ARRAY_SIZE(l->argv), l->argv), 0);
	fake_sampler_next = &f->sampler;
}

static int live(void *context)
{
	struct life *l = context;

	return -daemon_run(&l->config, (int)ARRAY_SIZE(l->argv), l->argv);
}

/* A created sampler is destroyed; a started one is stopped first. */
static void all_is_gone(void *context, int result)
{
	struct life *l = context;
	struct sampler *s = &l->agent.sampler;
	char path[96];
	void *world = s->world;

	assert_int_equal(s->destroyed, s->options.loop != NULL);
	if (!result)
		assert_int_equal(s->stopped, 1);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%ssocket", l->agent.directory, i ? "run/" : "");
		if (!torture_failed() || strcmp(torture_failed(), "unlink") != 0)
			assert_int_equal(access(path, F_OK), -1);
	}
	fake_sampler_next = NULL;
	config_deinit(&l->config);
	report_teardown(&world);
	remove_tree(l->agent.directory);
}

static void an_agent_that_cannot_start_leaves_nothing(void **state)
{
	static struct life l;
	struct torture t = { .begin = begin_life,
		.operation = live,
		.end = all_is_gone,
		.context = &l,
		.optional = "*",
		.other_errors = true };

	(void)state;
	torture_run(&t);
}

/* ---- windows -------------------------------------------------------------------------------- */

struct window {
	struct daemon_fixture agent;
	struct series_options options;
	struct labels external;
	struct series series;
	struct groups groups;
};

static void sample_thread(struct fixture *world, const struct process *p, uint32_t tid)
{
	struct profile_frame frame = in_program(MAIN, 0, world);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct profile_sample sample = { .process = p->number,
		.pid = p->pid,
		.tid = tid,
		.comm = "x",
		.count = 1,
		.weight = 1 };

	assert_int_equal(profile_stack(world->profile, &stack, &sample.stack), 0);
	assert_int_equal(profile_add(world->profile, &sample), 0);
}

/* Two programs with three threads each have been sampled. */
static void begin_window(void *context)
{
	struct window *w = context;
	struct fixture *world;

	daemon_fixture_make(&w->agent, "");
	world = w->agent.sampler.world;
	world->one->executable = world->program;
	for (uint32_t tid = 1; tid <= 3; tid++) {
		sample_thread(world, world->one, tid);
		sample_thread(world, world->two, tid);
	}
	describe(world);
	w->external = (struct labels){ 0 };
	assert_int_equal(labels_set(&w->external, "zone", "z"), 0);
	w->options = (struct series_options){ .node = "n",
		.external = &w->external,
		.sample_labels = 1 << SAMPLE_LABEL_tid,
		.limit = 100,
		.metrics = &world->metrics };
}

static void end_window(struct window *w)
{
	labels_deinit(&w->external);
	daemon_fixture_unmake(&w->agent);
}

static int find_series(void *context)
{
	struct window *w = context;
	struct fixture *world = w->agent.sampler.world;

	return series_init(
		&w->series, &w->options, &world->options.types, world->profile, &world->described);
}

static void all_series_or_none(void *context, int result)
{
	struct window *w = context;

	if (!result) {
		assert_int_equal(series_count(&w->series), 6);
		series_deinit(&w->series);
	}
	assert_int_equal(metrics_get(&w->agent.sampler.world->metrics, METRIC_SERIES_DROPPED), 0);
	end_window(w);
}

static void series_are_found_or_not(void **state)
{
	static struct window w;
	struct torture t = { .begin = begin_window,
		.operation = find_series,
		.end = all_series_or_none,
		.context = &w };

	(void)state;
	torture_run(&t);
}

static int find_groups(void *context)
{
	struct window *w = context;
	struct fixture *world = w->agent.sampler.world;

	return groups_init(&w->groups, world->profile, &world->described);
}

static void all_groups_or_none(void *context, int result)
{
	struct window *w = context;

	if (!result) {
		assert_int_equal(groups_count(&w->groups), 2);
		groups_deinit(&w->groups);
	}
	end_window(w);
}

static void groups_are_found_or_not(void **state)
{
	static struct window w;
	struct torture t = { .begin = begin_window,
		.operation = find_groups,
		.end = all_groups_or_none,
		.context = &w };

	(void)state;
	torture_run(&t);
}

static void begin_storing(void *context)
{
	struct window *w = context;
	struct store_options options = { .limit_bytes = 1 << 20 };
	char directory[96];

	begin_window(w);
	snprintf(directory, sizeof(directory), "%s/profiles", w->agent.directory);
	options.directory = directory;
	options.metrics = &w->agent.sampler.metrics;
	assert_int_equal(store_create(&options, &w->agent.daemon.store), 0);
}

static int store_window(void *context)
{
	struct window *w = context;

	daemon_seal_last(&w->agent.daemon);
	return 0;
}

/* Each profile that is not stored is counted. */
static void each_profile_is_stored_or_counted(void *context, int result)
{
	struct window *w = context;
	const struct metrics *m = &w->agent.sampler.metrics;
	uint64_t dropped = metrics_get(m, METRIC_STORE_DROPPED_DISK_FULL);
	uint64_t failed = metrics_get(m, METRIC_STORE_FAILED);
	uint64_t lost = metrics_get(m, METRIC_LOST_MEMORY_LIMIT);

	(void)result;
	if (!torture_failed())
		assert_int_equal(failed + lost + dropped, 0);
	assert_true(lost <= 6);
	if (dropped)
		assert_true(w->agent.daemon.disk_full);
	else if (!lost)
		assert_int_equal(store_count(w->agent.daemon.store) + failed, 1);
	if (!dropped)
		assert_int_equal(w->agent.daemon.store_error != 0, failed != 0);
	assert_int_equal(w->agent.daemon.windows, 1);
	end_window(w);
}

static void profiles_that_are_not_stored_are_counted(void **state)
{
	static struct window w;
	struct torture t = { .begin = begin_storing,
		.operation = store_window,
		.end = each_profile_is_stored_or_counted,
		.context = &w,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

/* ---- answers -------------------------------------------------------------------------------- */

struct answer {
	struct daemon_fixture agent;
	struct buffer out;
	int (*write)(void *context, struct buffer *out);
};

static void begin_answer(void *context)
{
	struct answer *a = context;

	daemon_fixture_make(&a->agent, "");
	buffer_init(&a->out, 1 << 20);
}

static int write_answer(void *context)
{
	struct answer *a = context;

	return a->write(&a->agent.daemon, &a->out);
}

static void end_answer(void *context, int result)
{
	struct answer *a = context;

	if (!result)
		assert_int_equal(a->out.bytes[a->out.size - 1], '\n');
	buffer_deinit(&a->out);
	daemon_fixture_unmake(&a->agent);
}

static int write_profiles(void *context, struct buffer *out)
{
	struct serve_handlers handlers;

	daemon_http_handlers(context, &handlers);
	return handlers.profiles(handlers.context, 0, INT64_MAX, 0, out);
}

static int write_metrics(void *context, struct buffer *out)
{
	struct serve_handlers handlers;

	daemon_http_handlers(context, &handlers);
	return handlers.metrics(handlers.context, out);
}

/* Values the kernel does not report are 0 in the answer. */
static void an_answer_is_whole_or_an_error(void **state)
{
	int (*const answers[])(void *context, struct buffer *out) = { daemon_write_status,
		write_metrics, write_profiles };
	static struct answer a;
	struct torture t = { .begin = begin_answer,
		.operation = write_answer,
		.end = end_answer,
		.context = &a,
		.optional = "open openat opendir readdir read pread stat fstat" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		a.write = answers[i];
		torture_run(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(open_fds_are_all_counted_or_not_known),
		torture_test(a_reload_changes_all_or_nothing),
		torture_test(export_settings_are_read_or_not),
		torture_test(settings_are_read_or_not),
		torture_test(an_agent_that_cannot_start_leaves_nothing),
		torture_test(series_are_found_or_not),
		torture_test(groups_are_found_or_not),
		torture_test(profiles_that_are_not_stored_are_counted),
		torture_test(an_answer_is_whole_or_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
