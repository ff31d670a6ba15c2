/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's answers over HTTP: /metrics, stored profiles, profiles on demand. */
#include "tests/unit/daemon_fixture.h"

#include <errno.h>
#include <dirent.h>
#include <libdeflate.h>
#include <pthread.h>

#include "base/version.h"
#include "proto/profile.pb-c.h"
#include "tests/unit/serve_fixture.h"

enum { PLAIN_LIMIT = 1 << 20 };

static const uint64_t SECOND = 1000000000;
static const uint64_t DAY_NS = UINT64_C(86400000000000);

struct bench {
	struct daemon_fixture agent;
	struct serve_fixture client;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct serve_options options = { .address = "127.0.0.1:0" };

	daemon_fixture_make(&b->agent, "");
	options.loop = b->agent.daemon.loop;
	daemon_http_handlers(&b->agent.daemon, &options.handlers);
	assert_int_equal(serve_create(&options, &b->agent.daemon.serve), 0);
	b->agent.daemon.ready = true;
	b->client.loop = b->agent.daemon.loop;
	b->client.serve = b->agent.daemon.serve;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	daemon_fixture_unmake(&b->agent);
	free(b);
	return 0;
}

/* ---- /metrics ------------------------------------------------------------------------------- */

static double metric(struct bench *b, const char *name_and_labels)
{
	char line[160];
	const char *at;

	assert_int_equal(serve_ask(&b->client, "GET /metrics"), 200);
	snprintf(line, sizeof(line), "\n%s ", name_and_labels);
	at = strstr(serve_body(&b->client), line);
	if (!at)
		print_error("no %s\n", name_and_labels);
	assert_non_null(at);
	return strtod(at + strlen(line), NULL);
}

static void figures_come_from_the_sampler(void **state)
{
	struct bench *b = *state;

	b->agent.sampler.sizes = (struct sampler_sizes){ 1001, 1002, 1003, 1004, 1005, 1006 };
	assert_true(metric(b, "fathom_cache_bytes{cache=\"index\"}") == 1001);
	assert_true(metric(b, "fathom_cache_bytes{cache=\"kallsyms\"}") == 1002);
	assert_true(metric(b, "fathom_cache_bytes{cache=\"profile\"}") == 1003);
	assert_true(metric(b, "fathom_bpf_map_memory_bytes") == 1004);
	assert_true(metric(b, "fathom_processes") == 1005);
	assert_true(metric(b, "fathom_modules") == 1006);
	assert_true(metric(b, "fathom_index_build_seconds_total") == 2.5);
	assert_true(metric(b, "fathom_overhead_cpu_seconds_total{part=\"bpf\"}") == 1.5);
}

static void figures_come_from_the_agent(void **state)
{
	struct bench *b = *state;
	struct daemon *d = &b->agent.daemon;

	d->windows = 42;
	d->budget.current_hz = 7;
	assert_true(metric(b, "fathom_windows_total") == 42);
	assert_true(metric(b, "fathom_configured_frequency_hertz") == 19);
	assert_true(metric(b, "fathom_effective_frequency_hertz") == 7);
	assert_true(metric(b, "fathom_memory_limit_bytes") == 256 << 20);
	assert_true(metric(b, "fathom_build_info{version=\"" FATHOM_VERSION "\"}") == 1);
	assert_true(metric(b, "fathom_local_store_bytes") == 0);
}

static void figures_come_from_the_process(void **state)
{
	struct bench *b = *state;
	uint64_t cpu = clock_cpu_ns();
	double started = (double)b->agent.daemon.started_real_ns / 1e9, resident, fds;

	assert_true(metric(b, "process_cpu_seconds_total") * 1e9 >= (double)cpu);
	assert_true(metric(b, "process_cpu_seconds_total") * 1e9 <= (double)clock_cpu_ns());
	assert_true(
		metric(b, "fathom_overhead_cpu_seconds_total{part=\"user\"}") * 1e9 >= (double)cpu);
	assert_true(metric(b, "fathom_overhead_cpu_seconds_total{part=\"index_builds\"}") == 2.5);
	assert_true(metric(b, "fathom_overhead_cpu_seconds_total{part=\"file_helper\"}") == 0.125);
	assert_true(metric(b, "process_start_time_seconds") > started - 0.01);
	assert_true(metric(b, "process_start_time_seconds") < started + 0.01);
	resident = metric(b, "process_resident_memory_bytes");
	assert_true(resident > 500000 && resident < 1e9);
	fds = metric(b, "process_open_fds");
	assert_true(fds >= 6 && fds < 60);
}

static void open_descriptors_are_counted(void **state)
{
	unsigned int count = 0;

	(void)state;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	assert_int_equal(daemon_open_fds(), count);
}

static void counters_and_stores_are_in_the_same_text(void **state)
{
	struct bench *b = *state;
	autofree char *message = NULL;
	char text[256];

	metrics_add(&b->agent.sampler.metrics, METRIC_LOST_RING_FULL, 9);
	assert_true(metric(b, "fathom_samples_lost_total{reason=\"ring_full\"}") == 9);
	assert_null(strstr(serve_body(&b->client), "fathom_spool_bytes"));
	snprintf(text, sizeof(text),
		"spool-directory: %s/spool\nremote-store-type: file\nremote-store-address: %s\n",
		b->agent.directory, b->agent.directory);
	daemon_fixture_write(&b->agent, text);
	assert_int_equal(daemon_reload(&b->agent.daemon, &message), 0);
	assert_true(metric(b, "fathom_spool_bytes") == 0);
	assert_non_null(strstr(serve_body(&b->client), "# TYPE fathom_remote_write_pending gauge"));
	assert_non_null(strstr(serve_body(&b->client), "# EOF\n"));
}

/* ---- stored profiles ------------------------------------------------------------------------ */

static void open_store(struct bench *b)
{
	char directory[96];
	const struct store_options options = {
		.directory = directory, .limit_bytes = 1 << 20, .metrics = &b->agent.sampler.metrics
	};

	snprintf(directory, sizeof(directory), "%s/profiles", b->agent.directory);
	assert_int_equal(store_create(&options, &b->agent.daemon.store), 0);
}

static void put(struct bench *b, const char *name, uint64_t day)
{
	assert_int_equal(store_put(b->agent.daemon.store, name, (int64_t)(day * DAY_NS),
				 (int64_t)(5 * SECOND), "0123456789", 10),
		0);
}

static void stored_profiles_are_listed_and_read(void **state)
{
	struct bench *b = *state;
	char request[256], path[128];
	const char *at;

	open_store(b);
	put(b, "one", 1);
	put(b, "two", 2);
	assert_int_equal(serve_ask(&b->client, "GET /api/profiles"), 200);
	at = strstr(serve_body(&b->client), "{\"path\":\"");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "{\"path\":\"%127[^\"]", path), 1);
	assert_non_null(strstr(at, ",\"name\":\"one\",\"time_ms\":86400000,\"duration_ms\":5000,"
				   "\"bytes\":10}"));
	assert_non_null(strstr(at, ",\"name\":\"two\",\"time_ms\":172800000,"));
	snprintf(request, sizeof(request), "GET /api/profiles/%s", path);
	assert_int_equal(serve_ask(&b->client, request), 200);
	assert_string_equal(serve_body(&b->client), "0123456789");
	assert_int_equal(serve_ask(&b->client, "GET /api/profiles/nothing.pb.gz"), 404);
	assert_true(metric(b, "fathom_local_store_bytes") == 8192);
}

static void a_list_is_limited_to_its_range(void **state)
{
	struct bench *b = *state;

	open_store(b);
	put(b, "one", 1);
	put(b, "two", 2);
	assert_int_equal(serve_ask(&b->client, "GET /api/profiles?from=100000000"), 200);
	assert_false(serve_says(&b->client, "\"one\""));
	assert_true(serve_says(&b->client, "\"two\""));
	assert_int_equal(serve_ask(&b->client, "GET /api/profiles?to=100000000"), 200);
	assert_true(serve_says(&b->client, "\"one\""));
	assert_false(serve_says(&b->client, "\"two\""));
}

static void without_a_store_nothing_is_listed(void **state)
{
	struct bench *b = *state;

	assert_int_equal(serve_ask(&b->client, "GET /api/profiles"), 200);
	assert_int_equal(*serve_body(&b->client), '[');
	assert_false(serve_says(&b->client, "path"));
	assert_int_equal(serve_ask(&b->client, "GET /api/profiles/x.pb.gz"), 404);
}

/* ---- profiles on demand --------------------------------------------------------------------- */

/* Samples of the answer's profile. */
static int64_t samples_of(const struct serve_fixture *client)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	autofree uint8_t *plain = malloc(PLAIN_LIMIT);
	const char *body = serve_body(client);
	Perftools__Profiles__Profile *m;
	int64_t samples = 0;
	size_t size;

	assert_int_equal(libdeflate_gzip_decompress(d, body,
				 client->answer_size - (size_t)(body - client->answer), plain,
				 PLAIN_LIMIT, &size),
		0);
	libdeflate_free_decompressor(d);
	m = perftools__profiles__profile__unpack(NULL, size, plain);
	assert_non_null(m);
	for (size_t i = 0; i < m->n_sample; i++)
		samples += m->sample[i]->value[0];
	perftools__profiles__profile__free_unpacked(m, NULL);
	return samples;
}

static void a_profile_is_answered_after_its_duration(void **state)
{
	struct bench *b = *state;
	struct profile_frame frame = in_program(MAIN, 0, b->agent.sampler.world);
	uint64_t before = clock_monotonic_ns();
	char request[64];

	add_user(b->agent.sampler.world, b->agent.sampler.world->one, &frame, 1);
	snprintf(request, sizeof(request), "GET /debug/pprof/profile?seconds=1&pid=%d", getpid());
	assert_int_equal(serve_ask(&b->client, request), 200);
	assert_true(clock_monotonic_ns() - before >= SECOND);
	assert_true(serve_says(&b->client, "application/octet-stream"));
	assert_int_equal(samples_of(&b->client), 1);
	assert_int_equal(b->agent.sampler.tapped_pid, getpid());
	assert_int_equal(b->agent.sampler.taps_open, 0);
}

/* The handlers, without a server: to them REPLY is an opaque token. */
static int begin(struct bench *b, uintptr_t reply, uint32_t pid, struct buffer *why)
{
	const struct serve_profile_wish wish = { .seconds = 300, .pid = pid };
	struct serve_handlers handlers;

	daemon_http_handlers(&b->agent.daemon, &handlers);
	return handlers.profile_begin(handlers.context, (struct serve_reply *)reply, &wish, why);
}

static void begin_at(struct bench *b, uintptr_t reply, unsigned int hz)
{
	const struct serve_profile_wish wish = { .seconds = 300, .hz = hz };
	struct serve_handlers handlers;

	daemon_http_handlers(&b->agent.daemon, &handlers);
	assert_int_equal(
		handlers.profile_begin(handlers.context, (struct serve_reply *)reply, &wish, NULL),
		0);
}

static void cancel(struct bench *b, uintptr_t reply)
{
	struct serve_handlers handlers;

	daemon_http_handlers(&b->agent.daemon, &handlers);
	handlers.profile_cancel(handlers.context, (struct serve_reply *)reply);
}

/* The highest wish counts for as long as its profile lasts; what is sampled anyway is enough. */
static void a_profile_may_want_a_higher_frequency(void **state)
{
	struct bench *b = *state;
	struct daemon *d = &b->agent.daemon;

	d->budget.current_hz = 19;
	begin_at(b, 1, 5);
	assert_int_equal(daemon_frequency(d), 19);
	assert_false(daemon_is_hurried(d));
	begin_at(b, 2, 499);
	assert_int_equal(b->agent.sampler.hz, 499);
	assert_true(daemon_is_hurried(d));
	begin_at(b, 3, 997);
	assert_int_equal(b->agent.sampler.hz, 997);
	cancel(b, 3);
	assert_int_equal(b->agent.sampler.hz, 499);
	cancel(b, 2);
	assert_int_equal(b->agent.sampler.hz, 19);
	assert_false(daemon_is_hurried(d));
	daemon_on_demand_deinit(d);
}

static void at_most_eight_profiles_run_at_a_time(void **state)
{
	struct bench *b = *state;

	for (uintptr_t reply = 1; reply <= 8; reply++)
		assert_int_equal(begin(b, reply, 0, NULL), 0);
	assert_int_equal(b->agent.sampler.taps_open, 8);
	assert_int_equal(begin(b, 9, 0, NULL), -EAGAIN);
	/* A client that disconnects frees only its own place. */
	cancel(b, 3);
	cancel(b, 77);
	assert_int_equal(b->agent.sampler.taps_open, 7);
	assert_int_equal(begin(b, 9, 0, NULL), 0);
	assert_int_equal(begin(b, 10, 0, NULL), -EAGAIN);
	daemon_on_demand_deinit(&b->agent.daemon);
	assert_int_equal(b->agent.sampler.taps_open, 0);
}

static void a_profile_that_cannot_start_occupies_no_slot(void **state)
{
	struct bench *b = *state;

	b->agent.sampler.tap_error = -ENOMEM;
	for (uintptr_t reply = 1; reply <= 9; reply++)
		assert_int_equal(begin(b, reply, 0, NULL), -ENOMEM);
	b->agent.sampler.tap_error = 0;
	for (uintptr_t reply = 1; reply <= 8; reply++)
		assert_int_equal(begin(b, reply, 0, NULL), 0);
}

static void no_profile_starts_during_shutdown(void **state)
{
	struct bench *b = *state;

	b->agent.daemon.stopping = true;
	assert_int_equal(begin(b, 1, 0, NULL), -EAGAIN);
	assert_int_equal(b->agent.sampler.taps_open, 0);
}

static void a_process_that_does_not_exist_is_refused(void **state)
{
	struct bench *b = *state;

	assert_int_equal(
		serve_ask(&b->client, "GET /debug/pprof/profile?seconds=1&pid=4194304"), 404);
	assert_string_equal(serve_body(&b->client), "there is no process 4194304\n");
	assert_int_equal(b->agent.sampler.taps_open, 0);
}

static void *wait_for_end(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

/* A thread of this process other than its main thread. */
static uint32_t other_thread(void)
{
	autoclosedir DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0 && tid != getpid())
			return (uint32_t)tid;
	}
	fail_msg("there is one thread only");
	return 0;
}

static void a_thread_is_refused_and_its_process_named(void **state)
{
	struct bench *b = *state;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	autocall(buffer_deinit) struct buffer why;
	char wanted[128];
	pthread_t thread;
	uint32_t tid;

	buffer_init(&why, 4096);
	pthread_mutex_lock(&mutex);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &mutex), 0);
	tid = other_thread();
	assert_int_equal(begin(b, 1, tid, &why), -ESRCH);
	assert_int_equal(buffer_append(&why, "", 1), 0);
	snprintf(wanted, sizeof(wanted), "%u is a thread of process %d: use pid=%d\n", tid,
		getpid(), getpid());
	assert_string_equal((const char *)why.bytes, wanted);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(figures_come_from_the_sampler),
		CASE(figures_come_from_the_agent),
		CASE(figures_come_from_the_process),
		CASE(open_descriptors_are_counted),
		CASE(counters_and_stores_are_in_the_same_text),
		CASE(stored_profiles_are_listed_and_read),
		CASE(a_list_is_limited_to_its_range),
		CASE(without_a_store_nothing_is_listed),
		CASE(a_profile_is_answered_after_its_duration),
		CASE(a_profile_may_want_a_higher_frequency),
		CASE(at_most_eight_profiles_run_at_a_time),
		CASE(a_profile_that_cannot_start_occupies_no_slot),
		CASE(no_profile_starts_during_shutdown),
		CASE(a_process_that_does_not_exist_is_refused),
		CASE(a_thread_is_refused_and_its_process_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
