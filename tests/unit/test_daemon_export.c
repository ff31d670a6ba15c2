/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export of a window: the samples of each series are sent completely and once, cut into payloads
 * that servers accept. Remote stores are directories.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/daemon/export.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "proto/profile.pb-c.h"
#include "tests/unit/fiber_record.h"
#include "tests/unit/remove_tree.h"
#include "tests/unit/report_fixture.h"

enum { SERIES_LIMIT = 64, PLAIN_LIMIT = 16 << 20, WAIT_S = 60 };

static const uint64_t GRACE_NS = UINT64_C(60000000000);

struct sent {
	char service[64], node[64];
	int64_t time_ns, duration_ns, period; /* of the last payload */
	size_t comments, labelled; /* comments; samples with labels */
	size_t payloads, entries, largest; /* entries of the largest payload */
	int64_t samples;
};

struct bench {
	struct fixture *world;
	char directory[64], spool[96], store[96];
	struct daemon_export *export;
	struct sent sent[SERIES_LIMIT];
	size_t sent_count;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	void *world;

	assert_int_equal(report_setup(&world), 0);
	b->world = world;
	snprintf(b->directory, sizeof(b->directory), "/tmp/fathom-sent-XXXXXX");
	assert_non_null(mkdtemp(b->directory));
	snprintf(b->spool, sizeof(b->spool), "--spool-directory=%s/spool", b->directory);
	snprintf(b->store, sizeof(b->store), "%s/store", b->directory);
	assert_int_equal(io_make_directories(b->store, 0700), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	void *world = b->world;

	daemon_export_destroy(b->export, 0);
	report_teardown(&world);
	remove_tree(b->directory);
	free(b);
	return 0;
}

/* Also sets OPTION, unless it is NULL. */
static void begin(struct bench *b, const char *option)
{
	char address[128];
	char *argv[] = { (char *)"agent", b->spool, (char *)"--remote-store-type=file", address,
		(char *)option, NULL };
	autofree char *message = NULL;
	struct config config;

	snprintf(address, sizeof(address), "--remote-store-address=%s", b->store);
	assert_int_equal(config_parse(&config, IN_AGENT, option ? 5 : 4, argv), 0);
	assert_int_equal(daemon_export_create(
				 &config, &b->world->metrics, b->directory, &b->export, &message),
		0);
	assert_non_null(b->export);
	config_deinit(&config);
}

/* With a settings file that adds TEXT to a store in B's directory. */
static void begin_with_rules(struct bench *b, const char *text)
{
	char *argv[] = { (char *)"agent", b->spool, NULL };
	autofree char *message = NULL;
	char path[128], all[1024];
	struct config config;

	snprintf(path, sizeof(path), "%s/config.yaml", b->directory);
	snprintf(all, sizeof(all), "remote-store-type: file\nremote-store-address: %s\n%s",
		b->store, text);
	assert_int_equal(io_replace_file(AT_FDCWD, path, all, strlen(all), 0600), 0);
	assert_int_equal(config_parse(&config, IN_AGENT, 2, argv), 0);
	assert_int_equal(config_load(&config, path, &message), 0);
	assert_int_equal(daemon_export_create(
				 &config, &b->world->metrics, b->directory, &b->export, &message),
		0);
	config_deinit(&config);
}

/* Adds an OTLP store, which accepts sample labels; its server is down. */
static void begin_with_otlp(struct bench *b)
{
	char *argv[] = { (char *)"agent", b->spool, NULL };
	autofree char *message = NULL;
	char path[128], text[512];
	struct config config;

	snprintf(path, sizeof(path), "%s/config.yaml", b->directory);
	snprintf(text, sizeof(text),
		"remote-stores:\n"
		"  - type: file\n"
		"    address: %s\n"
		"  - type: otlp\n"
		"    address: http://127.0.0.1:1\n"
		"    otlp-unstable: true\n",
		b->store);
	assert_int_equal(io_replace_file(AT_FDCWD, path, text, strlen(text), 0600), 0);
	assert_int_equal(config_parse(&config, IN_AGENT, 2, argv), 0);
	assert_int_equal(config_load(&config, path, &message), 0);
	assert_int_equal(daemon_export_create(
				 &config, &b->world->metrics, b->directory, &b->export, &message),
		0);
	config_deinit(&config);
}

static struct sent *sent_of(struct bench *b, const char *service)
{
	for (size_t i = 0; i < b->sent_count; i++)
		if (!strcmp(b->sent[i].service, service))
			return &b->sent[i];
	assert_true(b->sent_count < SERIES_LIMIT);
	snprintf(b->sent[b->sent_count].service, sizeof(b->sent[0].service), "%s", service);
	return &b->sent[b->sent_count++];
}

/* A payload of SERVICE, whose samples are of processes called so. */
static void count_payload(struct bench *b, const char *service, const struct buffer *gzip)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	autofree uint8_t *plain = malloc(PLAIN_LIMIT);
	struct sent *sent = sent_of(b, service);
	Perftools__Profiles__Profile *m;
	size_t size;

	assert_int_equal(
		libdeflate_gzip_decompress(d, gzip->bytes, gzip->size, plain, PLAIN_LIMIT, &size),
		0);
	libdeflate_free_decompressor(d);
	m = perftools__profiles__profile__unpack(NULL, size, plain);
	assert_non_null(m);
	assert_true(m->n_sample > 0);
	sent->payloads++;
	sent->entries += m->n_sample;
	sent->largest = MAX(sent->largest, m->n_sample);
	for (size_t i = 0; i < m->n_sample; i++) {
		sent->samples += m->sample[i]->value[0];
		sent->labelled += m->sample[i]->n_label > 0;
	}
	sent->comments += m->n_comment;
	sent->time_ns = m->time_nanos;
	sent->duration_ns = m->duration_nanos;
	sent->period = m->period;
	perftools__profiles__profile__free_unpacked(m, NULL);
}

static struct bench *reading; /* nftw() has no context */

static int read_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	autocall(buffer_deinit) struct buffer labels;
	autocall(buffer_deinit) struct buffer gzip;
	char labels_path[512], service[64] = "";
	const char *suffix = strstr(path, ".pb.gz");
	const char *at;

	(void)st;
	(void)ftw;
	buffer_init(&labels, 1 << 16);
	buffer_init(&gzip, PLAIN_LIMIT);
	if (flag != FTW_F || !suffix)
		return 0;
	snprintf(labels_path, sizeof(labels_path), "%.*s.labels", (int)(suffix - path), path);
	assert_int_equal(io_read_file(AT_FDCWD, labels_path, &labels), 0);
	assert_int_equal(buffer_append(&labels, "", 1), 0);
	at = strstr((const char *)labels.bytes, "service_name=\"");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "service_name=\"%63[^\"]", service), 1);
	assert_int_equal(io_read_file(AT_FDCWD, path, &gzip), 0);
	count_payload(reading, service, &gzip);
	at = strstr((const char *)labels.bytes, "node=\"");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "node=\"%63[^\"]", sent_of(reading, service)->node), 1);
	return 0;
}

/* Sends the world's profile as a window and reads what has arrived. */
static void send_window(struct bench *b)
{
	const struct report_options options = {
		.types = sample_types_of(false, false),
		.period = 10101010,
		.time_ns = (int64_t)clock_real_ns(),
		.duration_ns = 1000000000,
	};

	daemon_export_window(b->export, sealed_sources(b->world), &options, true);
	daemon_export_destroy(take(b->export), GRACE_NS);
	reading = b;
	assert_int_equal(nftw(b->store, read_one, 16, FTW_PHYS), 0);
}

static void sample_stack(struct bench *b, const struct process *p, uint64_t address)
{
	struct profile_frame frame = { address, b->world->library->number, 0 };

	add_user(b->world, p, &frame, 1);
}

/* COUNT samples of P, each with a stack of its own. */
static void sample_stacks(struct bench *b, const struct process *p, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		sample_stack(b, p, i);
}

static void a_programs_samples_are_in_its_series(void **state)
{
	struct bench *b = *state;

	sample_stacks(b, b->world->one, 3);
	sample_stacks(b, b->world->two, 5);
	begin(b, NULL);
	send_window(b);
	assert_int_equal(b->sent_count, 2);
	assert_int_equal(sent_of(b, "one")->samples, 3);
	assert_int_equal(sent_of(b, "two")->samples, 5);
	assert_int_equal(sent_of(b, "two")->entries, 5);
	assert_int_equal(sent_of(b, "two")->payloads, 1);
	assert_int_equal(metrics_get(&b->world->metrics, METRIC_EXPORT_TOO_LARGE), 0);
}

static void a_window_without_samples_sends_nothing(void **state)
{
	struct bench *b = *state;

	begin(b, NULL);
	send_window(b);
	assert_int_equal(b->sent_count, 0);
	assert_int_equal(metrics_get(&b->world->metrics, METRIC_EXPORT_WINDOW_FAILED), 0);
}

/* Servers take 16,000 entries at a time: each is in exactly one part. */
static void a_large_series_is_split(void **state)
{
	struct bench *b = *state;

	sample_stacks(b, b->world->one, 40000);
	sample_stacks(b, b->world->two, 16000);
	begin(b, NULL);
	send_window(b);
	assert_int_equal(sent_of(b, "one")->samples, 40000);
	assert_int_equal(sent_of(b, "one")->entries, 40000);
	assert_true(sent_of(b, "one")->payloads >= 3);
	assert_true(sent_of(b, "one")->largest <= 16000);
	assert_int_equal(sent_of(b, "two")->samples, 16000);
	assert_int_equal(metrics_get(&b->world->metrics, METRIC_EXPORT_TOO_LARGE), 0);
}

/* Every third stack of a series cut into three: all are in one part, which is cut again. */
static void a_part_that_is_too_large_is_split_again(void **state)
{
	struct bench *b = *state;

	for (uint64_t i = 0; i < 60000; i++)
		sample_stack(b, i % 3 ? b->world->two : b->world->one, i);
	begin(b, NULL);
	send_window(b);
	assert_int_equal(sent_of(b, "one")->samples, 20000);
	assert_int_equal(sent_of(b, "one")->entries, 20000);
	assert_true(sent_of(b, "one")->largest <= 16000);
	assert_int_equal(sent_of(b, "two")->samples, 40000);
	assert_int_equal(sent_of(b, "two")->entries, 40000);
	assert_int_equal(metrics_get(&b->world->metrics, METRIC_EXPORT_TOO_LARGE), 0);
}

/* Without sample labels a stack is one entry, whichever threads had it. */
static void a_stack_is_one_entry_of_one_payload(void **state)
{
	struct bench *b = *state;
	struct profile_frame frame = in_program(MAIN, 0, b->world);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct profile_sample sample = { .process = b->world->one->number,
		.pid = 100,
		.comm = "thread",
		.count = 1,
		.weight = 1 };

	sample_stacks(b, b->world->one, 20000);
	assert_int_equal(profile_stack(b->world->profile, &stack, &sample.stack), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		sample.tid = 100 + i;
		sample.cpu = i % 8;
		sample.fiber_id = i / 3;
		assert_int_equal(profile_add(b->world->profile, &sample), 0);
	}
	begin(b, NULL);
	send_window(b);
	assert_int_equal(sent_of(b, "one")->samples, 21000);
	assert_int_equal(sent_of(b, "one")->entries, 20001);
	assert_true(sent_of(b, "one")->payloads > 1);
}

/* Samples with different labels are separate entries, so one stack can be cut. */
static void samples_of_one_stack_are_split_by_their_labels(void **state)
{
	struct bench *b = *state;
	struct profile_frame frame = in_program(MAIN, 0, b->world);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct profile_sample sample = { .process = b->world->one->number,
		.pid = 100,
		.tid = 101,
		.comm = "thread",
		.count = 1,
		.weight = 1 };

	assert_int_equal(profile_stack(b->world->profile, &stack, &sample.stack), 0);
	for (sample.fiber_id = 1; sample.fiber_id <= 40000; sample.fiber_id++)
		assert_int_equal(profile_add(b->world->profile, &sample), 0);
	begin_with_otlp(b);
	send_window(b);
	assert_int_equal(metrics_get(&b->world->metrics, METRIC_EXPORT_TOO_LARGE), 0);
	assert_int_equal(sent_of(b, "one")->samples, 40000);
	assert_int_equal(sent_of(b, "one")->entries, 40000);
	assert_true(sent_of(b, "one")->payloads >= 3);
	assert_true(sent_of(b, "one")->largest <= 16000);
}

/* The time, duration and period of the window; the node is the host unless it is set. */
static void a_payload_has_the_times_of_its_window(void **state)
{
	struct bench *b = *state;
	int64_t before = (int64_t)clock_real_ns();
	char host[256] = "";

	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	sample_stacks(b, b->world->one, 1);
	begin(b, NULL);
	send_window(b);
	assert_in_range(sent_of(b, "one")->time_ns, before, clock_real_ns());
	assert_int_equal(sent_of(b, "one")->duration_ns, 1000000000);
	assert_int_equal(sent_of(b, "one")->period, 10101010);
	assert_string_equal(sent_of(b, "one")->node, host);
	assert_int_equal(sent_of(b, "one")->labelled, 0);
	assert_int_equal(sent_of(b, "one")->comments, 0);
}

static void a_configured_node_overrides_the_host_name(void **state)
{
	struct bench *b = *state;

	sample_stacks(b, b->world->one, 1);
	begin(b, "--node=n7");
	send_window(b);
	assert_string_equal(sent_of(b, "one")->node, "n7");
}

/* Stores that accept sample labels and file hashes get them. */
static void an_otlp_receiver_gets_more(void **state)
{
	struct bench *b = *state;
	struct profile_frame frame = in_program(MAIN, 0, b->world);

	add_user(b->world, b->world->one, &frame, 1);
	begin_with_otlp(b);
	send_window(b);
	assert_int_equal(sent_of(b, "one")->labelled, 1);
	assert_int_equal(sent_of(b, "one")->comments, 1);
}

/* All stores get the same payload: one that cannot take labels keeps them from the others. */
static void one_store_without_labels_removes_them_for_all(void **state)
{
	struct bench *b = *state;
	struct profile_frame frame = in_program(MAIN, 0, b->world);

	add_user(b->world, b->world->one, &frame, 1);
	begin_with_rules(b, "remote-stores:\n"
			    "  - type: otlp\n    address: http://127.0.0.1:1\n"
			    "    otlp-unstable: true\n"
			    "  - type: parca\n    address: http://127.0.0.1:1\n");
	send_window(b);
	assert_int_equal(sent_of(b, "one")->labelled, 0);
	assert_int_equal(sent_of(b, "one")->comments, 1);
}

/* A sample whose goroutine has a span and another label. */
static void sample_span(struct bench *b, uint64_t span)
{
	struct profile_frame frame = in_program(MAIN, 0, b->world);
	struct profile_stack stack = { .frames = &frame, .frame_count = 1 };
	struct profile_sample sample = { .process = b->world->one->number, .count = 1 };
	union fiber_record record;
	char text[32];
	uint32_t losses;

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)span);
	fiber_record_begin(&record, 1, span);
	fiber_record_add(&record, "span_id", text);
	fiber_record_add(&record, "user", "x");
	assert_int_equal(
		profile_fiber(b->world->profile, &record.facts, &sample.fiber, &losses), 0);
	assert_int_equal(profile_stack(b->world->profile, &stack, &sample.stack), 0);
	assert_int_equal(profile_add(b->world->profile, &sample), 0);
}

/* Pyroscope finds spans by a label of samples; more than it takes at once are split. */
static void pyroscope_gets_the_spans(void **state)
{
	struct bench *b = *state;

	for (uint64_t span = 1; span <= 20000; span++)
		sample_span(b, span);
	begin_with_rules(b, "remote-stores:\n"
			    "  - type: pyroscope\n    address: http://127.0.0.1:1\n");
	send_window(b);
	assert_int_equal(sent_of(b, "one")->samples, 20000);
	assert_int_equal(sent_of(b, "one")->labelled, 20000);
	assert_true(sent_of(b, "one")->payloads > 1);
	assert_true(sent_of(b, "one")->largest <= 16000);
}

/* Parca drops the labels of samples: they would only make the payloads larger. */
static void others_get_no_spans(void **state)
{
	struct bench *b = *state;

	sample_span(b, 1);
	sample_span(b, 2);
	begin_with_rules(b, "remote-stores:\n"
			    "  - type: parca\n    address: http://127.0.0.1:1\n");
	send_window(b);
	assert_int_equal(sent_of(b, "one")->samples, 2);
	assert_int_equal(sent_of(b, "one")->entries, 1);
	assert_int_equal(sent_of(b, "one")->labelled, 0);
}

static void rules_see_how_a_program_was_built(void **state)
{
	struct bench *b = *state;

	b->world->one->executable = b->world->program;
	sample_stacks(b, b->world->one, 2);
	sample_stacks(b, b->world->two, 3);
	begin_with_rules(b, "relabel_configs:\n"
			    "  - source_labels: [__meta_process_executable_file_id]\n"
			    "    regex: (.+)\n    target_label: service_name\n");
	send_window(b);
	assert_int_equal(b->sent_count, 2);
	assert_int_equal(sent_of(b, PROGRAM_HASH)->samples, 2);
	assert_int_equal(sent_of(b, "two")->samples, 3);
}

/* If the window is also stored locally, its frames are counted there. */
static void stacks_are_counted_once(void **state)
{
	struct bench *b = *state;
	const struct report_options options = {
		.types = sample_types_of(false, false),
		.period = 10101010,
		.time_ns = (int64_t)clock_real_ns(),
		.duration_ns = 1000000000,
	};
	uint64_t counted;

	sample_stacks(b, b->world->one, 3);
	begin(b, NULL);
	daemon_export_window(b->export, &b->world->sources, &options, false);
	counted = metrics_get(&b->world->metrics, METRIC_FRAMES_NAMED) +
		  metrics_get(&b->world->metrics, METRIC_FRAMES_NO_INDEX);
	assert_int_equal(counted, 0);
	daemon_export_window(b->export, &b->world->sources, &options, true);
	counted = metrics_get(&b->world->metrics, METRIC_FRAMES_NAMED) +
		  metrics_get(&b->world->metrics, METRIC_FRAMES_NO_INDEX);
	assert_int_equal(counted, 3);
}

static void series_of_threads_have_all_samples_once(void **state)
{
	struct bench *b = *state;

	sample_stacks(b, b->world->one, 3);
	sample_stacks(b, b->world->two, 5);
	begin(b, "--series-labels=tid");
	send_window(b);
	assert_int_equal(sent_of(b, "one")->samples + sent_of(b, "two")->samples, 8);
}

/* ---- figures -------------------------------------------------------------------------------- */

/* Waits until SENT payloads have been sent and PENDING are queued. */
static void wait_for_figures(struct bench *b, uint64_t sent, uint64_t pending)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct exporter_figures f = { 0 };

	for (int i = 0; i < WAIT_S * 200; i++) {
		const struct queue_figures *q = &f.targets[0].queue;

		daemon_export_figures(b->export, &f);
		/* A failure is known only after an attempt. */
		if (f.target_count == 1 && q->sent_payloads == sent && q->pending == pending &&
			(!pending || q->failing))
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("%llu sent, %llu wait: %s", (unsigned long long)f.targets[0].queue.sent_payloads,
		(unsigned long long)f.targets[0].queue.pending, f.targets[0].queue.trouble);
}

static void submit_window(struct bench *b)
{
	const struct report_options options = {
		.types = sample_types_of(false, false),
		.period = 10101010,
		.time_ns = (int64_t)clock_real_ns(),
		.duration_ns = 1000000000,
	};

	daemon_export_window(b->export, sealed_sources(b->world), &options, true);
}

/* The exporter's part of /metrics, then of /status. Valid for the life of OUT. */
static const char *figures_text(struct bench *b, struct buffer *out)
{
	struct json j;

	buffer_init(out, 1 << 20);
	daemon_export_write_metrics(b->export, out);
	json_init(&j, out, JSON_COMPACT);
	json_object(&j, NULL);
	daemon_export_write_status(b->export, &j, "export");
	json_close(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_int_equal(buffer_append(out, "", 1), 0);
	return (const char *)out->bytes;
}

static void assert_figure(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("no %s in %s", wanted, text);
}

static void figures_of_a_working_store(void **state)
{
	static const char *const reasons[] = { "spool_full", "too_old", "corrupt", "removed",
		"refused", "always_fails" };
	struct bench *b = *state;
	autocall(buffer_deinit) struct buffer out;
	const char *text;
	char line[128];

	sample_stacks(b, b->world->one, 3);
	sample_stacks(b, b->world->two, 5);
	begin(b, NULL);
	submit_window(b);
	wait_for_figures(b, 2, 0);
	text = figures_text(b, &out);
	assert_figure(
		text, "fathom_remote_write_requests_total{target=\"file\",code=\"written\"} 2\n");
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		snprintf(line, sizeof(line),
			"fathom_remote_write_dropped_total{target=\"file\",reason=\"%s\"} 0\n",
			reasons[i]);
		assert_figure(text, line);
	}
	assert_figure(text, "fathom_remote_write_possibly_repeated_total{target=\"file\"} 0\n");
	assert_figure(text, "fathom_remote_write_pending{target=\"file\"} 0\n");
	assert_null(strstr(text, "fathom_remote_write_sent_bytes_total{target=\"file\"} 0\n"));
	assert_figure(text, "fathom_remote_write_sent_bytes_total{target=\"file\"} ");
	assert_figure(text, "\nfathom_spool_bytes 0\n");
	assert_figure(text, "\nfathom_spool_oldest_seconds 0\n");
	assert_figure(text, "\"targets\":[{\"name\":\"file\",\"ok\":true,\"sent\":2,"
			    "\"pending\":0,\"error\":\"\"}]");
}

static void figures_of_an_unreachable_store(void **state)
{
	struct bench *b = *state;
	autocall(buffer_deinit) struct buffer out;
	const char *text;

	sample_stacks(b, b->world->one, 3);
	assert_int_equal(rmdir(b->store), 0);
	begin(b, NULL);
	submit_window(b);
	wait_for_figures(b, 0, 1);
	text = figures_text(b, &out);
	assert_figure(text, "fathom_remote_write_pending{target=\"file\"} 1\n");
	assert_figure(text, "fathom_remote_write_sent_bytes_total{target=\"file\"} 0\n");
	assert_null(strstr(text, "\nfathom_spool_bytes 0\n"));
	assert_figure(text, "\"ok\":false,\"sent\":0,\"pending\":1,\"error\":\"");
	assert_null(strstr(text, "\"error\":\"\""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_programs_samples_are_in_its_series),
		CASE(a_window_without_samples_sends_nothing),
		CASE(a_large_series_is_split),
		CASE(a_part_that_is_too_large_is_split_again),
		CASE(a_stack_is_one_entry_of_one_payload),
		CASE(samples_of_one_stack_are_split_by_their_labels),
		CASE(a_payload_has_the_times_of_its_window),
		CASE(a_configured_node_overrides_the_host_name),
		CASE(an_otlp_receiver_gets_more),
		CASE(one_store_without_labels_removes_them_for_all),
		CASE(pyroscope_gets_the_spans),
		CASE(others_get_no_spans),
		CASE(rules_see_how_a_program_was_built),
		CASE(stacks_are_counted_once),
		CASE(figures_of_a_working_store),
		CASE(figures_of_an_unreachable_store),
		CASE(series_of_threads_have_all_samples_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
