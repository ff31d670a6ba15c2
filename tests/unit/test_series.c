/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are sent as one series, and with which labels. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/daemon/series.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/sample_labels.h"
#include "base/cleanup.h"
#include "tests/unit/fiber_record.h"
#include "tests/unit/report_fixture.h"

struct set {
	struct labels external;
	struct series_options options;
};

static struct set plain(struct fixture *f)
{
	return (struct set){ .options = { .node = "n1", .limit = 1000, .metrics = &f->metrics } };
}

static void sample(struct fixture *f, const struct process *p)
{
	struct profile_frame frame = in_program(MAIN, 0, f);

	add_user(f, p, &frame, 1);
}

static void begin(struct fixture *f, struct set *set, struct series *s)
{
	set->options.external = &set->external;
	assert_int_equal(
		series_init(s, &set->options, &f->options.types, f->profile, describe(f)), 0);
}

static uint32_t series_at(struct series *s, const struct fixture *f, size_t number)
{
	return series_of(s, profile_sample_at(f->profile, number));
}

static const char *label(const struct series *s, uint32_t number, const char *name)
{
	const char *value = labels_get(series_labels(s, number), name);

	return value ? value : "";
}

static void one_program_is_one_series(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	f->one->executable = f->two->executable = f->program;
	snprintf(f->one->comm, sizeof(f->one->comm), "program");
	snprintf(f->two->comm, sizeof(f->two->comm), "program");
	sample(f, f->one);
	sample(f, f->two);
	assert_int_equal(labels_set(&set.external, "zone", "z"), 0);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 1);
	assert_int_equal(series_at(&s, f, 0), 1);
	assert_int_equal(series_at(&s, f, 1), 1);
	assert_string_equal(label(&s, 1, "__name__"), "process_cpu");
	assert_string_equal(label(&s, 1, "service_name"), "program");
	assert_string_equal(label(&s, 1, "comm"), "program");
	assert_string_equal(label(&s, 1, "node"), "n1");
	assert_string_equal(label(&s, 1, "zone"), "z");
	assert_string_equal(label(&s, 1, "tid"), "");
	series_deinit(&s);
	labels_deinit(&set.external);
}

static void the_kernels_threads_are_one_series(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	f->one->kernel_thread = f->two->kernel_thread = true;
	snprintf(f->one->comm, sizeof(f->one->comm), "kworker/1");
	snprintf(f->two->comm, sizeof(f->two->comm), "kworker/2");
	sample(f, f->one);
	sample(f, f->two);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 1);
	assert_string_equal(label(&s, 1, "service_name"), "kernel");
	assert_string_equal(label(&s, 1, "comm"), "");
	series_deinit(&s);
}

static void rules_name_drop_and_see_metadata(void **state)
{
	static const char *const pid[] = { "__meta_process_pid" }, *const comm[] = { "comm" };
	const struct relabel_rule rules[] = {
		{ .action = RELABEL_DROP,
			.source_labels = comm,
			.source_label_count = 1,
			.regex = "gone" },
		{ .source_labels = pid,
			.source_label_count = 1,
			.target_label = "service_name",
			.replacement = "pid-$1" },
	};
	struct fixture *f = *state;
	struct set set = plain(f);
	struct relabel *relabel = NULL;
	char *message = NULL, expected[32];
	struct series s;

	assert_int_equal(relabel_create(rules, 2, &relabel, &message), 0);
	set.options.relabel = relabel;
	snprintf(f->one->comm, sizeof(f->one->comm), "kept");
	snprintf(f->two->comm, sizeof(f->two->comm), "gone");
	sample(f, f->one);
	sample(f, f->two);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 1);
	assert_int_equal(series_at(&s, f, 0), 1);
	assert_int_equal(series_at(&s, f, 1), 0);
	snprintf(expected, sizeof(expected), "pid-%u", f->one->pid);
	assert_string_equal(label(&s, 1, "service_name"), expected);
	for (size_t i = 0; i < series_labels(&s, 1)->count; i++)
		assert_null(strstr(series_labels(&s, 1)->items[i].name, "__meta"));
	series_deinit(&s);
	relabel_destroy(relabel);
}

static void thread_of(struct fixture *f, uint32_t tid, const char *comm)
{
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { .frames = &frame, .frame_count = 1 };
	struct profile_sample sample = {
		.process = f->one->number, .pid = f->one->pid, .tid = tid, .count = 1, .weight = 1
	};

	snprintf(sample.comm, sizeof(sample.comm), "%s", comm);
	assert_int_equal(profile_stack(f->profile, &stack, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

static void threads_are_series_only_when_asked_for(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	thread_of(f, 1, "a");
	thread_of(f, 2, "a");
	thread_of(f, 3, "b");
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 1);
	series_deinit(&s);
	set.options.sample_labels = 1 << SAMPLE_LABEL_thread_comm;
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 2);
	assert_string_equal(label(&s, 2, "thread_comm"), "b");
	series_deinit(&s);
	set.options.sample_labels |= 1 << SAMPLE_LABEL_tid;
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 3);
	assert_string_equal(label(&s, 3, "tid"), "3");
	series_deinit(&s);
}

/* The values that a probe's records lack are no labels, even if the user asks for them. */
static void series_have_only_the_labels_of_the_samples_type(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct set set = plain(f);
	struct series s;

	f->options.types = sample_types_of(false, true);
	f->options.types.of[PROBE_off_cpu].labels &= ~(1U << SAMPLE_LABEL_tid);
	set.options.sample_labels = 1 << SAMPLE_LABEL_tid | 1 << SAMPLE_LABEL_thread_comm;
	add_stack(f, f->one, &stack, 1);
	add_wait(f, f->one, &stack, 7000);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 2);
	assert_true(*label(&s, series_at(&s, f, 0), "tid"));
	assert_string_equal(label(&s, series_at(&s, f, 0), "thread_comm"), "thread");
	assert_string_equal(label(&s, series_at(&s, f, 1), "tid"), "");
	assert_string_equal(label(&s, series_at(&s, f, 1), "thread_comm"), "thread");
	series_deinit(&s);
}

/* A sample without any label does not count towards the limit of labelled series. */
static void a_type_without_series_labels_is_not_capped(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct set set = plain(f);
	struct series s;

	f->options.types = sample_types_of(false, true);
	f->options.types.of[PROBE_off_cpu].labels = 0;
	set.options.sample_labels = 1 << SAMPLE_LABEL_tid;
	set.options.limit = 0;
	add_wait(f, f->one, &stack, 7000);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SERIES_CAPPED), 0);
	series_deinit(&s);
}

static void beyond_the_limit_threads_are_together(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	for (uint32_t tid = 1; tid <= 20; tid++)
		thread_of(f, tid, "a");
	set.options.sample_labels |= 1 << SAMPLE_LABEL_tid;
	set.options.limit = 5;
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 6);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(series_at(&s, f, i), i < 5 ? i + 1 : 6);
	assert_string_equal(label(&s, 6, "tid"), "");
	assert_int_equal(metrics_get(&f->metrics, METRIC_SERIES_CAPPED), 15);
	series_deinit(&s);
}

/* COUNT samples of a goroutine: PAIRS are keys and values, then NULL. Numbers of samples grow. */
static void goroutine_of(struct fixture *f, uint64_t id, uint64_t count, const char *const *pairs)
{
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { .frames = &frame, .frame_count = 1 };
	struct profile_sample sample = {
		.process = f->one->number, .fiber_id = id, .count = count, .weight = count
	};
	union fiber_record record;
	uint32_t losses;

	fiber_record_begin(&record, 1, id);
	record.facts.parent_id = id; /* all differ in what is no label */
	for (; *pairs; pairs += 2)
		fiber_record_add(&record, pairs[0], pairs[1]);
	assert_int_equal(profile_fiber(f->profile, &record.facts, &sample.fiber, &losses), 0);
	assert_int_equal(profile_stack(f->profile, &stack, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

#define GOROUTINE(f, id, count, ...) \
	goroutine_of(f, id, count, (const char *const[]){ __VA_ARGS__, NULL })

static void key_of_series(struct set *set, const char *key)
{
	assert_null(fiber_keys_add(&set->options.fiber_keys, key));
}

static void labels_of_goroutines_are_series_only_when_asked_for(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	GOROUTINE(f, 1, 1, "http.route", "/a", "user", "x");
	GOROUTINE(f, 2, 1, "http.route", "/a", "user", "y");
	GOROUTINE(f, 3, 1, "user", "x");
	sample(f, f->one);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 1);
	series_deinit(&s);
	key_of_series(&set, "http.route");
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 2);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(series_at(&s, f, i), i < 2 ? 1 : 2);
	assert_string_equal(label(&s, 1, "http_route"), "/a");
	assert_string_equal(label(&s, 2, "http_route"), "");
	assert_string_equal(label(&s, 1, "user"), "");
	series_deinit(&s);
	key_of_series(&set, "user");
	set.options.sample_labels = 1 << SAMPLE_LABEL_goid;
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 4);
	assert_string_equal(label(&s, 2, "http_route"), "/a");
	assert_string_equal(label(&s, 2, "user"), "y");
	assert_string_equal(label(&s, 2, "goid"), "2");
	assert_string_equal(label(&s, 4, "user"), "");
	series_deinit(&s);
}

/* What one value ends with is not what the next begins with. */
static void values_of_two_labels_are_kept_apart(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	GOROUTINE(f, 1, 1, "a", "12", "b", "3");
	GOROUTINE(f, 2, 1, "a", "1", "b", "23");
	key_of_series(&set, "a");
	key_of_series(&set, "b");
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 2);
	series_deinit(&s);
}

/* Those that have a series by then stay in it, whatever else differs. */
static void beyond_the_limit_goroutines_are_together(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;
	char value[16];

	for (uint64_t i = 0; i < 20; i++) {
		snprintf(value, sizeof(value), "%d", (int)(i % 10));
		GOROUTINE(f, i + 1, 3, "work", value);
	}
	key_of_series(&set, "work");
	set.options.limit = 4;
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 5);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(series_at(&s, f, i), i % 10 < 4 ? i % 10 + 1 : 5);
	assert_string_equal(label(&s, 5, "work"), "");
	assert_int_equal(metrics_get(&f->metrics, METRIC_SERIES_CAPPED), 12 * 3);
	series_deinit(&s);
}

/* The user names the series: a program that does not set the label has none. */
static void a_goroutines_label_replaces_an_external_one(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	assert_int_equal(labels_set(&set.external, "zone", "z"), 0);
	GOROUTINE(f, 1, 1, "zone", "y");
	sample(f, f->one);
	key_of_series(&set, "zone");
	begin(f, &set, &s);
	assert_string_equal(label(&s, series_at(&s, f, 0), "zone"), "y");
	assert_string_equal(label(&s, series_at(&s, f, 1), "zone"), "");
	series_deinit(&s);
	labels_deinit(&set.external);
}

static void each_sample_is_listed_once(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;
	size_t seen = 0;

	for (uint32_t i = 0; i < 30; i++)
		thread_of(f, 1 + i * 7 % 5, "a");
	for (uint32_t tid = 1; tid <= 5; tid++)
		thread_of(f, tid, "b");
	set.options.sample_labels = 1 << SAMPLE_LABEL_tid;
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 5);
	for (uint32_t n = 1; n <= 5; n++) {
		size_t count;
		const uint32_t *samples = series_samples(&s, n, &count);

		for (size_t i = 0; i < count; i++) {
			assert_int_equal(series_at(&s, f, samples[i]), n);
			assert_true(!i || samples[i] > samples[i - 1]);
		}
		seen += count;
	}
	assert_int_equal(seen, profile_sample_count(f->profile));
	series_deinit(&s);
}

static void a_series_has_thirty_labels_at_most(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;
	char name[16];

	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "zz%02d", i);
		assert_int_equal(labels_set(&set.external, name, "x"), 0);
	}
	sample(f, f->one);
	begin(f, &set, &s);
	assert_int_equal(series_labels(&s, 1)->count, SERIES_LABELS_LIMIT);
	assert_string_equal(label(&s, 1, "__name__"), "process_cpu");
	assert_true(*label(&s, 1, "service_name"));
	assert_true(metrics_get(&f->metrics, METRIC_SERIES_LABELS_CUT) > 30);
	series_deinit(&s);
	labels_deinit(&set.external);
}

static void names_that_differ_in_one_letter_are_two_series(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	snprintf(f->one->comm, sizeof(f->one->comm), "worker1");
	snprintf(f->two->comm, sizeof(f->two->comm), "worker2");
	sample(f, f->one);
	sample(f, f->two);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 2);
	assert_string_equal(label(&s, 1, "comm"), "worker1");
	assert_string_equal(label(&s, 2, "comm"), "worker2");
	series_deinit(&s);
}

/* The sample has too many labels to add those of the process. */
static void a_series_that_cannot_be_labelled_is_not_sent(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;
	char name[16];
	int err = 0;

	for (int i = 0; !err; i++) {
		snprintf(name, sizeof(name), "z%d", i);
		err = labels_set(&set.external, name, "x");
	}
	assert_int_equal(err, -E2BIG);
	sample(f, f->one);
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 0);
	assert_int_equal(series_at(&s, f, 0), 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SERIES_DROPPED), 1);
	series_deinit(&s);
	labels_deinit(&set.external);
}

static void capped_samples_are_counted_by_their_number(void **state)
{
	struct fixture *f = *state;
	struct set set = plain(f);
	struct series s;

	for (int i = 0; i < 7; i++)
		thread_of(f, 1, "a");
	set.options.sample_labels = 1 << SAMPLE_LABEL_tid;
	set.options.limit = 0;
	begin(f, &set, &s);
	assert_int_equal(series_count(&s), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SERIES_CAPPED), 7);
	series_deinit(&s);
}

#define ID "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define POD "1111111111111111111111111111111111111111111111111111111111111111"

/* Tells that ID is container web of POD_NAME. */
static struct containers *told(const char *pod_name)
{
	struct containers *c;

	assert_int_equal(containers_create("containerd", &c), 0);
	assert_int_equal(containers_add_pod(c, &(struct containers_pod){ .id = POD,
						       .name = pod_name,
						       .namespace = "prod",
						       .uid = pod_name }),
		0);
	assert_int_equal(containers_add(c,
				 &(struct containers_container){
					 .id = ID, .pod_id = POD, .name = "web", .image = "" }),
		0);
	assert_int_equal(containers_finish(c, NULL, 1, 0), 0);
	return c;
}

struct container_case {
	const char *container_id, *pod;
	bool missed;
};

static void assert_pod(struct fixture *f, struct set *set, const struct container_case *c)
{
	struct series s;

	snprintf(f->one->container_id, sizeof(f->one->container_id), "%s", c->container_id);
	begin(f, set, &s);
	assert_string_equal(label(&s, 1, "container_id"), c->container_id);
	assert_string_equal(label(&s, 1, "pod"), c->pod);
	assert_string_equal(label(&s, 1, "namespace"), *c->pod ? "prod" : "");
	assert_string_equal(label(&s, 1, "service_name"), *c->pod ? "web" : "program");
	assert_int_equal(s.missed_container, c->missed);
	series_deinit(&s);
}

static void a_process_is_in_the_pod_of_its_container(void **state)
{
	static const struct container_case cases[] = {
		{ ID, "shop", false },
		{ ID "/" OTHER, "shop", false }, /* nested: the outermost is the runtime's */
		{ OTHER "/" ID, "", true },
		{ OTHER, "", true },
		{ "user-1000/" ID, "", false }, /* a user chose it */
		{ "", "", false },
	};
	struct fixture *f = *state;
	struct set set = plain(f);
	struct metadata_view none = { .count = 0 },
			     view = { .tables = { told("shop") }, .count = 1 };

	f->one->executable = f->program;
	sample(f, f->one);
	set.options.containers = &none;
	assert_pod(f, &set, &(struct container_case){ ID, "", false });
	set.options.containers = &view;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_pod(f, &set, &cases[i]);
	assert_int_equal(metrics_get(&f->metrics, METRIC_METADATA_UNKNOWN), 2);
	/* Two runtimes that say the same, and something else */
	view.tables[view.count++] = told("shop");
	assert_pod(f, &set, &cases[0]);
	view.tables[view.count++] = told("victim");
	assert_pod(f, &set, &(struct container_case){ ID, "", true });
	metadata_view_deinit(&view);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_program_is_one_series),
		CASE(the_kernels_threads_are_one_series),
		CASE(rules_name_drop_and_see_metadata),
		CASE(threads_are_series_only_when_asked_for),
		CASE(series_have_only_the_labels_of_the_samples_type),
		CASE(a_type_without_series_labels_is_not_capped),
		CASE(beyond_the_limit_threads_are_together),
		CASE(labels_of_goroutines_are_series_only_when_asked_for),
		CASE(values_of_two_labels_are_kept_apart),
		CASE(beyond_the_limit_goroutines_are_together),
		CASE(a_goroutines_label_replaces_an_external_one),
		CASE(each_sample_is_listed_once),
		CASE(a_process_is_in_the_pod_of_its_container),
		CASE(a_series_has_thirty_labels_at_most),
		CASE(names_that_differ_in_one_letter_are_two_series),
		CASE(a_series_that_cannot_be_labelled_is_not_sent),
		CASE(capped_samples_are_counted_by_their_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
