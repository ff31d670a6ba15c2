/* SPDX-License-Identifier: Apache-2.0 */
/* Stored profiles as one: sums, files apart, selection, types that differ, limits. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/server/merge/stored_merge.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"

#define MESSAGE(name) Perftools__Profiles__##name

static const int64_t S = 1000000000;
static char path[] = "/tmp/fathom-test-merge-XXXXXX";

struct test_file {
	const char *types[2]; /* NULL: samples and cpu */
	int64_t begin_s, period;
	const char *comm, *container;
	const char *functions[2]; /* leaf and root; NULL = an address without a name */
	int64_t values[2];
	const char *comment;
	const char *group; /* NULL = none */
	int64_t pid; /* 0: 7 */
};

static uint64_t frame_of(struct pprof *p, const char *function)
{
	const struct pprof_mapping mapping = { 0x1000, 0x9000, 0, "/bin/program", "c0ffee" };
	struct pprof_line line = { function, function, "p.c", 7, 3, 5, false };
	uint64_t id;

	assert_int_equal(pprof_mapping(p, &mapping, &id), 0);
	assert_int_equal(pprof_location(p, id, function ? 0x2000 + (uint64_t)function[0] : 0x5008,
				 &line, function != NULL, &id),
		0);
	return id;
}

static struct pprof_read file_of(const struct test_file *file)
{
	struct pprof_options options = {
		.types = { { file->types[0] ?: "samples", "count" },
			{ file->types[1] ?: "cpu", "nanoseconds" } },
		.type_count = 2,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = file->period,
		.time_ns = file->begin_s * S,
		.duration_ns = 10 * S,
	};
	const struct pprof_label labels[] = { { .key = "comm", .text = file->comm },
		{ .key = "pid", .number = file->pid ?: 7, .unit = "id" },
		{ .key = "container_id", .text = file->container ?: "" },
		{ .key = "fathom_group", .text = file->group ?: "" } };
	struct pprof_read read;
	struct buffer out;
	struct pprof *p;
	uint64_t stack[2];
	const char *why;
	int fd;

	assert_int_equal(pprof_create(&options, &p), 0);
	stack[0] = frame_of(p, file->functions[0]);
	stack[1] = frame_of(p, file->functions[1]);
	assert_int_equal(pprof_sample(p, stack, 2, file->values, labels, ARRAY_SIZE(labels)), 0);
	if (file->comment)
		assert_int_equal(pprof_comment(p, file->comment), 0);
	buffer_init(&out, 1 << 20);
	assert_int_equal(pprof_encode(p, true, &out), 0);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, out.bytes, out.size), 0);
	assert_int_equal(pprof_read_file(path, &read, &why), 0);
	close(fd);
	unlink(path);
	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	buffer_deinit(&out);
	pprof_destroy(p);
	return read;
}

/* Valid until the next call. */
static const struct stored_merge_source *named(const char *name)
{
	static struct stored_merge_source source;

	source = (struct stored_merge_source){ .path = name, .group = "" };
	return &source;
}

/* As the child reads it. */
static int add_profile(struct stored_merge *m, const struct stored_merge_source *source,
	const struct pprof_read *profile)
{
	size_t size = perftools__profiles__profile__get_packed_size(profile->message);
	autofree uint8_t *bytes = malloc(size);
	struct pprof_read encoded;
	const char *why;
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	perftools__profiles__profile__pack(profile->message, bytes);
	assert_int_equal(io_write_all(fd, bytes, size), 0);
	assert_int_equal(pprof_read_at(AT_FDCWD, path, &encoded, &why), 0);
	close(fd);
	unlink(path);
	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	err = stored_merge_add(m, source, &encoded);
	pprof_read_deinit(&encoded);
	return err;
}

static void add_from(struct stored_merge *m, const struct stored_merge_source *source,
	const struct test_file *file)
{
	struct pprof_read read = file_of(file);

	assert_int_equal(add_profile(m, source, &read), 0);
	pprof_read_deinit(&read);
}

static void add(struct stored_merge *m, const char *name, const struct test_file *file)
{
	add_from(m, named(name), file);
}

static struct pprof_read merged(struct stored_merge *m)
{
	struct pprof_read read;
	struct buffer out;
	const char *why;
	int fd = mkstemp(path);

	buffer_init(&out, 1 << 20);
	assert_int_equal(stored_merge_encode(m, &out), 0);
	assert_int_equal(io_write_all(fd, out.bytes, out.size), 0);
	assert_int_equal(pprof_read_file(path, &read, &why), 0);
	close(fd);
	unlink(path);
	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	buffer_deinit(&out);
	stored_merge_destroy(m);
	return read;
}

static struct stored_merge *begin(const struct stored_merge_options *options)
{
	struct stored_merge *m;

	assert_int_equal(stored_merge_create(options, &m), 0);
	return m;
}

static const struct test_file first = { .begin_s = 100,
	.period = 10,
	.comm = "shop",
	.container = "0123456789abcdef",
	.functions = { "leaf", "root" },
	.values = { 2, 20 } };
static const struct test_file second = { .begin_s = 110,
	.period = 10,
	.comm = "shop",
	.container = "0123456789abcdef",
	.functions = { "leaf", "root" },
	.values = { 3, 30 } };
static const struct test_file other = { .begin_s = 110,
	.period = 10,
	.comm = "bank",
	.functions = { NULL, "root" },
	.values = { 1, 10 } };

static const MESSAGE(Label) * label_of(const struct pprof_read *p, size_t sample, const char *key)
{
	const MESSAGE(Sample) *s = p->message->sample[sample];

	for (size_t i = 0; i < s->n_label; i++)
		if (!strcmp(pprof_read_text(p, s->label[i]->key), key))
			return s->label[i];
	return NULL;
}

static void equal_samples_are_summed(void **state)
{
	struct stored_merge *m = begin(&(struct stored_merge_options){ 0 });
	struct pprof_read p;

	(void)state;
	add(m, "a", &first);
	add(m, "b", &second);
	add(m, "c", &other);
	p = merged(m);
	assert_int_equal(p.message->n_sample, 2);
	assert_int_equal(p.message->sample[0]->value[0], 5);
	assert_int_equal(p.message->sample[0]->value[1], 50);
	assert_string_equal(pprof_read_text(&p, label_of(&p, 0, "comm")->str), "shop");
	assert_int_equal(label_of(&p, 0, "pid")->num, 7);
	assert_int_equal(p.message->period, 10);
	assert_int_equal(p.message->time_nanos, 100 * S);
	assert_int_equal(p.message->duration_nanos, 20 * S);
	assert_int_equal(p.message->n_comment, 0);
	pprof_read_deinit(&p);
}

/* Each file has split its mapping for the unnamed location; the merge has it as often as one. */
static void addresses_are_those_of_the_files(void **state)
{
	struct stored_merge *m = begin(&(struct stored_merge_options){ 0 });
	struct test_file again = other;
	struct pprof_read p;

	(void)state;
	again.begin_s = 120;
	add(m, "a", &other);
	add(m, "b", &again);
	p = merged(m);
	assert_int_equal(p.message->n_sample, 1);
	assert_int_equal(p.message->sample[0]->value[0], 2);
	assert_int_equal(p.message->n_mapping, 2);
	assert_int_equal(p.message->n_location, 2);
	assert_int_equal(p.message->location[0]->address, 0x5008);
	assert_int_equal(p.message->location[0]->n_line, 0);
	assert_int_equal(p.message->location[1]->line[0]->line, 7);
	assert_int_equal(p.message->location[1]->line[0]->column, 3);
	pprof_read_deinit(&p);
}

static void files_stay_apart(void **state)
{
	struct stored_merge *m =
		begin(&(struct stored_merge_options){ .form = STORED_MERGE_BY_FILE });
	struct test_file told = second;
	struct pprof_read p;

	(void)state;
	told.period = 5;
	told.comment = "samples lost since the window before: 9";
	assert_int_equal(stored_merge_unread(m, named("day/broken")), 0);
	add(m, "day/a", &first);
	add(m, "day/b", &told);
	p = merged(m);
	assert_int_equal(p.message->n_sample, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(label_of(&p, i, "fathom_file")->num, i + 1);
		assert_int_equal(p.message->sample[i]->value[0], i + 2);
	}
	assert_int_equal(p.message->n_location, 2);
	assert_int_equal(p.message->n_comment, 4);
	assert_string_equal(pprof_read_text(&p, p.message->comment[0]), "file 10 cpu day/a");
	assert_string_equal(pprof_read_text(&p, p.message->comment[1]), "file 5 cpu day/b");
	assert_string_equal(pprof_read_text(&p, p.message->comment[2]),
		"comment samples lost since the window before: 9");
	assert_string_equal(pprof_read_text(&p, p.message->comment[3]), "unread day/broken");
	pprof_read_deinit(&p);
}

/* Equal samples of two files in a slice are one, also where their process differs. */
static void slices_stay_apart(void **state)
{
	struct stored_merge *m =
		begin(&(struct stored_merge_options){ .form = STORED_MERGE_BY_SLICE });
	struct stored_merge_source source = { .path = "a", .group = "", .slice_ms = 60000 };
	struct test_file noted = first, again = second;
	struct pprof_read p;

	(void)state;
	noted.comment = "samples lost since the window before: 9";
	noted.pid = 8;
	again.comment = "samples lost since the window before: 4";
	add_from(m, &source, &noted);
	source.path = "b";
	add_from(m, &source, &again);
	source.path = "c";
	source.slice_ms = 120000;
	/* Of a file of minutes, too: all that it has. */
	source.minutes = source.all_minutes = 3;
	assert_int_equal(stored_merge_unread(m, &source), 0);
	source.minutes = source.all_minutes = 0;
	source.slice_ms = 180000;
	add_from(m, &source, &first);
	p = merged(m);
	assert_int_equal(p.message->n_sample, 2);
	assert_int_equal(p.message->sample[0]->value[0], 5);
	assert_int_equal(p.message->sample[0]->value[1], 50);
	assert_int_equal(p.message->sample[1]->value[0], 2);
	for (size_t i = 0; i < 2; i++) {
		assert_null(label_of(&p, i, "pid"));
		assert_string_equal(pprof_read_text(&p, label_of(&p, i, "comm")->str), "shop");
		assert_int_equal(label_of(&p, i, "fathom_file")->num, i + 1);
	}
	assert_int_equal(p.message->n_comment, 4);
	assert_string_equal(pprof_read_text(&p, p.message->comment[0]), "file 10 cpu slice/60000");
	assert_string_equal(pprof_read_text(&p, p.message->comment[1]),
		"comment samples lost since the window before: 13");
	assert_string_equal(pprof_read_text(&p, p.message->comment[2]), "file 10 cpu slice/180000");
	assert_string_equal(pprof_read_text(&p, p.message->comment[3]), "unread c");
	pprof_read_deinit(&p);
}

static void samples_are_selected(void **state)
{
	static const struct {
		const char *comm, *container;
		size_t samples;
	} cases[] = {
		{ "", "", 2 },
		{ "shop", NULL, 1 },
		{ "bank", NULL, 1 },
		{ "ban", NULL, 0 },
		{ NULL, "0123456789abcdef", 1 },
		{ NULL, "0123456789ab", 1 },
		{ NULL, "0123456789a", 0 },
		{ NULL, "1123456789ab", 0 },
		{ "bank", "0123456789ab", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stored_merge *m = begin(&(struct stored_merge_options){
			.comm = cases[i].comm, .container = cases[i].container });
		struct pprof_read p;

		add(m, "a", &first);
		add(m, "b", &other);
		p = merged(m);
		assert_int_equal(p.message->n_sample, cases[i].samples);
		pprof_read_deinit(&p);
	}
}

static void groups_are_those_of_samples_or_files(void **state)
{
	static const struct {
		const char *group;
		size_t samples;
	} cases[] = { { "", 2 }, { "shop", 1 }, { "bank", 1 }, { "ban", 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stored_merge *m =
			begin(&(struct stored_merge_options){ .group = cases[i].group });
		struct test_file grouped = first;
		struct pprof_read p;

		grouped.group = "shop";
		add(m, "a", &grouped);
		add_from(m, &(struct stored_merge_source){ .path = "b", .group = "bank" }, &other);
		assert_int_equal(stored_merge_samples(m), cases[i].samples);
		p = merged(m);
		assert_int_equal(p.message->n_sample, cases[i].samples);
		if (cases[i].samples)
			assert_null(label_of(&p, 0, "fathom_group"));
		pprof_read_deinit(&p);
	}
}

/* ---- what replaces files -------------------------------------------------------------------- */

static int64_t sum_of(const struct pprof_read *p, size_t type)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->message->n_sample; i++)
		sum += p->message->sample[i]->value[type];
	return sum;
}

/* Three windows of two minutes: what differs in the process's ID only is one. */
static struct pprof_read minutes_of_windows(void)
{
	struct stored_merge *m =
		begin(&(struct stored_merge_options){ .form = STORED_MERGE_MINUTES });
	struct test_file grouped = first, late = second, old = other;

	grouped.group = late.group = "shop";
	grouped.comment = "samples lost since the window before: 9";
	late.comment = "samples lost since the window before: 3";
	late.pid = 8;
	add_from(m, &(struct stored_merge_source){ .path = "a", .group = "" }, &grouped);
	grouped.comment = "a note";
	grouped.pid = 9;
	add_from(m, &(struct stored_merge_source){ .path = "b", .group = "" }, &grouped);
	add_from(m, &(struct stored_merge_source){ .path = "c", .group = "", .minute = 9 }, &late);
	add_from(m, &(struct stored_merge_source){ .path = "d", .group = "bank", .minute = 9 },
		&old);
	return merged(m);
}

static void minutes_let_ids_go_and_keep_sums(void **state)
{
	struct pprof_read p = minutes_of_windows();

	(void)state;
	assert_int_equal(sum_of(&p, 0), 2 + 2 + 3 + 1);
	assert_int_equal(sum_of(&p, 1), 20 + 20 + 30 + 10);
	assert_int_equal(p.message->n_sample, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_null(label_of(&p, i, "pid"));
		assert_int_equal(label_of(&p, i, "fathom_minute")->num, i ? 10 : 1);
		assert_string_equal(pprof_read_text(&p, label_of(&p, i, "fathom_group")->str),
			i < 2 ? "shop" : "bank");
	}
	assert_int_equal(p.message->sample[0]->value[0], 4);
	assert_int_equal(p.message->n_comment, 2);
	assert_string_equal(pprof_read_text(&p, p.message->comment[0]), "a note");
	assert_string_equal(pprof_read_text(&p, p.message->comment[1]),
		"samples lost since the window before: 12");
	pprof_read_deinit(&p);
}

static const struct stored_merge_source ten_minutes = {
	.path = "t", .group = "", .minutes = 0x201, .all_minutes = 0x201
};

static void ten_minutes_have_the_sums_of_their_minutes(void **state)
{
	struct stored_merge *m =
		begin(&(struct stored_merge_options){ .form = STORED_MERGE_REPLACE });
	struct pprof_read minutes = minutes_of_windows(), p;

	(void)state;
	assert_int_equal(add_profile(m, &ten_minutes, &minutes), 0);
	p = merged(m);
	assert_int_equal(sum_of(&p, 0), sum_of(&minutes, 0));
	assert_int_equal(sum_of(&p, 1), sum_of(&minutes, 1));
	assert_int_equal(p.message->n_sample, 2);
	assert_null(label_of(&p, 0, "fathom_minute"));
	assert_non_null(label_of(&p, 0, "fathom_group"));
	assert_int_equal(p.message->n_comment, 2);
	assert_int_equal(p.message->time_nanos, minutes.message->time_nanos);
	assert_int_equal(p.message->duration_nanos, minutes.message->duration_nanos);
	pprof_read_deinit(&minutes);
	pprof_read_deinit(&p);
}

static void minutes_are_chosen_and_stay_apart(void **state)
{
	struct stored_merge_source one = ten_minutes;
	struct stored_merge *m =
		begin(&(struct stored_merge_options){ .form = STORED_MERGE_BY_FILE });
	struct pprof_read minutes = minutes_of_windows(), p;

	(void)state;
	add(m, "before", &first);
	assert_int_equal(add_profile(m, &ten_minutes, &minutes), 0);
	p = merged(m);
	assert_string_equal(pprof_read_text(&p, p.message->comment[1]), "file 10 cpu t#1");
	assert_string_equal(pprof_read_text(&p, p.message->comment[4]), "file 10 cpu t#10");
	assert_int_equal(p.message->n_sample, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(label_of(&p, i, "fathom_file")->num, i < 2 ? i + 1 : 3);
		assert_null(label_of(&p, i, "fathom_minute"));
	}
	pprof_read_deinit(&p);
	m = begin(&(struct stored_merge_options){ 0 });
	one.minutes = 0x200;
	assert_int_equal(add_profile(m, &one, &minutes), 0);
	p = merged(m);
	assert_int_equal(sum_of(&p, 0), 4);
	assert_int_equal(p.message->duration_nanos, minutes.message->duration_nanos / 2);
	pprof_read_deinit(&minutes);
	pprof_read_deinit(&p);
}

/* Its samples must not get lost. */
static void what_does_not_fit_is_not_replaced(void **state)
{
	struct stored_merge *m =
		begin(&(struct stored_merge_options){ .form = STORED_MERGE_MINUTES });
	struct pprof_read read = file_of(&first);
	MESSAGE(Sample) *sample = read.message->sample[0];
	uint64_t deep[PPROF_MAX_FRAMES + 1], *own = sample->location_id;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(deep); i++)
		deep[i] = own[0];
	sample->location_id = deep;
	sample->n_location_id = ARRAY_SIZE(deep);
	assert_int_equal(add_profile(m, named("deep"), &read), -E2BIG);
	sample->location_id = own;
	sample->n_location_id = 2;
	pprof_read_deinit(&read);
	stored_merge_destroy(m);
}

static void types_may_differ(void **state)
{
	struct stored_merge *m = begin(&(struct stored_merge_options){ 0 });
	struct test_file waits = other;
	struct pprof_read p;

	(void)state;
	waits.types[0] = "waits";
	waits.types[1] = "off_cpu";
	add(m, "a", &first);
	add(m, "b", &waits);
	p = merged(m);
	assert_int_equal(p.message->n_sample_type, 4);
	assert_string_equal(pprof_read_text(&p, p.message->sample_type[2]->type), "waits");
	assert_int_equal(p.message->sample[0]->value[1], 20);
	assert_int_equal(p.message->sample[0]->value[3], 0);
	assert_int_equal(p.message->sample[1]->value[1], 0);
	assert_int_equal(p.message->sample[1]->value[3], 10);
	pprof_read_deinit(&p);
}

static void the_period_is_the_mean_where_it_varies(void **state)
{
	struct stored_merge *m = begin(&(struct stored_merge_options){ 0 });
	struct test_file slow = second;
	struct pprof_read p;

	(void)state;
	slow.period = 20;
	slow.values[0] = 2;
	slow.values[1] = 40;
	add(m, "a", &first);
	add(m, "b", &slow);
	p = merged(m);
	assert_int_equal(p.message->period, 15);
	assert_int_equal(p.message->n_comment, 1);
	pprof_read_deinit(&p);
}

static void comments_are_told_once_and_unread_files_counted(void **state)
{
	struct stored_merge *m = begin(&(struct stored_merge_options){ 0 });
	struct test_file told = first;
	struct pprof_read p;

	(void)state;
	told.comment = "a note";
	add(m, "a", &told);
	add(m, "b", &told);
	assert_int_equal(stored_merge_unread(m, named("x")), 0);
	p = merged(m);
	assert_int_equal(p.message->n_comment, 2);
	assert_string_equal(pprof_read_text(&p, p.message->comment[0]), "a note");
	assert_string_equal(
		pprof_read_text(&p, p.message->comment[1]), "1 stored profiles could not be read");
	pprof_read_deinit(&p);
}

/* What is too deep is told, not cut. */
static void deeper_stacks_than_ours_are_unread(void **state)
{
	struct stored_merge *m =
		begin(&(struct stored_merge_options){ .form = STORED_MERGE_BY_FILE });
	struct pprof_read read = file_of(&first), p;
	MESSAGE(Sample) *sample = read.message->sample[0];
	uint64_t deep[PPROF_MAX_FRAMES + 1], *own = sample->location_id;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(deep); i++)
		deep[i] = own[0];
	sample->location_id = deep;
	sample->n_location_id = ARRAY_SIZE(deep);
	assert_int_equal(add_profile(m, named("day/deep"), &read), 0);
	sample->n_location_id = PPROF_MAX_FRAMES;
	assert_int_equal(add_profile(m, named("day/a"), &read), 0);
	sample->location_id = own;
	sample->n_location_id = 2;
	pprof_read_deinit(&read);
	p = merged(m);
	assert_int_equal(p.message->n_sample, 1);
	assert_int_equal(p.message->sample[0]->n_location_id, PPROF_MAX_FRAMES);
	assert_string_equal(pprof_read_text(&p, p.message->comment[1]), "unread day/deep");
	pprof_read_deinit(&p);
}

static void a_merge_has_a_limit(void **state)
{
	struct stored_merge *m = begin(&(struct stored_merge_options){ .limit_bytes = 1 << 19 });
	int err = 0;

	(void)state;
	for (int i = 0; i < 10000 && !err; i++) {
		struct test_file file = first;
		char comm[16];
		struct pprof_read read;

		snprintf(comm, sizeof(comm), "c%d", i);
		file.comm = comm;
		read = file_of(&file);
		err = add_profile(m, named("a"), &read);
		pprof_read_deinit(&read);
	}
	assert_int_equal(err, -E2BIG);
	stored_merge_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_samples_are_summed),
		cmocka_unit_test(addresses_are_those_of_the_files),
		cmocka_unit_test(files_stay_apart),
		cmocka_unit_test(slices_stay_apart),
		cmocka_unit_test(samples_are_selected),
		cmocka_unit_test(groups_are_those_of_samples_or_files),
		cmocka_unit_test(minutes_let_ids_go_and_keep_sums),
		cmocka_unit_test(ten_minutes_have_the_sums_of_their_minutes),
		cmocka_unit_test(minutes_are_chosen_and_stay_apart),
		cmocka_unit_test(what_does_not_fit_is_not_replaced),
		cmocka_unit_test(types_may_differ),
		cmocka_unit_test(the_period_is_the_mean_where_it_varies),
		cmocka_unit_test(comments_are_told_once_and_unread_files_counted),
		cmocka_unit_test(deeper_stacks_than_ours_are_unread),
		cmocka_unit_test(a_merge_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
