/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom pgo`: times, the files of a store, what is merged, and what is refused. */
#include "tests/unit/command_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/commands/pgo.h"
#include "base/io.h"
#include "base/moment.h"
#include "pprof/pprof.h"

#define MESSAGE(name) Perftools__Profiles__##name

static const int64_t S = 1000000000;
static const int64_t NOON = INT64_C(1795521600); /* 2026-11-24T12:00:00Z */
static char directory[] = "/tmp/fathom-test-XXXXXX";
static struct command_run run;

static const char *below(const char *name)
{
	static char paths[8][160];
	static unsigned int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* ---- times ------------------------------------------------------------------------------------
 */

static void times_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} cases[] = {
		{ "0", 0 },
		{ "1795521600", 1795521600 },
		{ "9223372000", 9223372000 },
		{ "2026-11-24T12:00:00Z", 1795521600 },
		{ "2026-11-24t12:00:00z", 1795521600 },
		{ "2026-11-24 12:00:00Z", 1795521600 },
		{ "2026-11-24T12:00:00.75Z", 1795521600 },
		{ "2026-11-24T13:30:00+01:30", 1795521600 },
		{ "2026-11-24T00:00:00-12:00", 1795521600 },
		{ "1970-01-01T00:00:00Z", 0 },
		{ "5s", 1795521595 },
		{ "30m", 1795521600 - 1800 },
		{ "2h", 1795521600 - 7200 },
		{ "7d", 1795521600 - 604800 },
	};
	int64_t time_ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(moment_parse(cases[i].text, NOON * S, &time_ns), 0);
		assert_int_equal(time_ns, cases[i].seconds * S);
	}
}

static void other_texts_are_no_times(void **state)
{
	static const char *const cases[] = { "", "x", "-1", "1.5", "2w", "2hh", "h", " 5s", "5 s",
		"9223372001", "99999999999999999999", "9999999999d", "30000d", "2026-11-24",
		"2026-11-24T12:00Z", "2026-11-24T12:00:00", "2026-11-24T12:00:00+1",
		"2026-11-24T12:00:00+01-00", "2026-11-24T12:00:00+0a:00", "2026-11-24T12:00:00Zx",
		"2026-11-24T12:00:00.Z", "2026-02-30T12:00:00Z", "2026-13-01T12:00:00Z",
		"2026-11-24X12:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01",
		"2263-01-01T00:00:00Z", "2026-1-4T12:00:00Z" };
	int64_t time_ns = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (moment_parse(cases[i], NOON * S, &time_ns) != -EINVAL)
			fail_msg("'%s' is a time", cases[i]);
	}
	assert_int_equal(time_ns, 77);
}

/* ---- profiles ---------------------------------------------------------------------------------
 */

enum { MAX_STACK = 4 };

struct test_frame {
	const char *file; /* of the mapping; NULL = none */
	const char *name, *linkage, *source;
	int64_t line, start_line;
};

struct test_sample {
	const char *comm;
	int64_t pid, count, time_ns, off_cpu;
	struct test_frame frames[MAX_STACK]; /* leaf first */
};

#define KERNEL                                                                               \
	{                                                                                    \
		"[kernel.kallsyms]", "clear_page", "clear_page", "arch/x86/lib/page.S", 9, 2 \
	}
#define SORT                                                                              \
	{                                                                                 \
		"/srv/shop", "main.sort[...]", "main.sort[go.shape.int]", "/w/m.go", 7, 5 \
	}
#define MAIN                                                             \
	{                                                                \
		"/srv/shop", "main.main", "main.main", "/w/m.go", 30, 20 \
	}

static const struct test_sample shop_samples[] = {
	{ "shop", 10, 1, 50, 0, { SORT, MAIN } },
	{ "shop", 11, 2, 90, 0, { SORT, MAIN } },
	{ "shop", 11, 1, 40, 0, { KERNEL, KERNEL, SORT, MAIN } },
	{ "shop", 11, 1, 40, 0, { KERNEL } },
	{ "shop", 12, 0, 0, 5000, { MAIN } },
	{ "gcc", 13, 8, 800, 0, { { "/usr/bin/cc1", "main", "main", "cc.c", 3, 1 } } },
};
static const struct test_sample bank_samples[] = {
	{ "bank", 20, 3, 300, 0, { { "/srv/bank", "main.main", "main.main", "/b/b.go", 4, 2 } } },
};
static const struct test_sample old_samples[] = {
	{ "old", 30, 3, 300, 0, { { "/srv/old", "main.main", "main.main", "/o/o.go", 4, 0 } } },
};

static uint64_t add_frame(struct pprof *p, const struct test_frame *frame)
{
	const struct pprof_mapping mapping = { 0x1000, 0x9000, 0, frame->file,
		frame->file[0] == '[' ? "" : "c0ffee" };
	const struct pprof_line line = { frame->name, frame->linkage, frame->source, frame->line, 3,
		frame->start_line };
	static uint64_t address = 0x1000;
	uint64_t id;

	assert_int_equal(pprof_mapping(p, &mapping, &id), 0);
	address = 0x1000 + (address + 16) % 0x8000; /* never the same twice */
	assert_int_equal(pprof_location(p, id, address, &line, 1, &id), 0);
	return id;
}

static void add_sample(struct pprof *p, const struct test_sample *sample)
{
	const struct pprof_label labels[] = { { .key = "comm", .text = sample->comm },
		{ .key = "pid", .number = sample->pid, .unit = "id" } };
	const int64_t values[] = { sample->count, sample->time_ns, sample->off_cpu };
	uint64_t stack[MAX_STACK];
	size_t depth = 0;

	for (; depth < MAX_STACK && sample->frames[depth].file; depth++)
		stack[depth] = add_frame(p, &sample->frames[depth]);
	assert_int_equal(pprof_sample(p, stack, depth, values, labels, 2), 0);
}

/* A profile of ten seconds that began at TIME_S. */
static void write_samples(
	const char *path, int64_t time_s, const struct test_sample *samples, size_t count)
{
	const struct pprof_options options = { .types = { { "samples", "count" },
						       { "cpu", "nanoseconds" },
						       { "off_cpu", "nanoseconds" } },
		.type_count = 3,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = 50,
		.time_ns = time_s * S,
		.duration_ns = 10 * S,
		.limit_bytes = 1 << 20 };
	struct buffer out;
	struct pprof *p;

	assert_int_equal(pprof_create(&options, &p), 0);
	for (size_t i = 0; i < count; i++)
		add_sample(p, &samples[i]);
	buffer_init(&out, 1 << 20);
	assert_int_equal(pprof_encode(p, true, &out), 0);
	assert_int_equal(io_replace_file(AT_FDCWD, path, out.bytes, out.size, 0600), 0);
	buffer_deinit(&out);
	pprof_destroy(p);
}

#define WRITE(name, time_s, samples) \
	write_samples(below(name), time_s, samples, ARRAY_SIZE(samples))

/* ---- the merge --------------------------------------------------------------------------------
 */

static void refuses(int status, const char *message, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void refuses(int status, const char *message, const char *format, ...)
{
	char words[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	command_expect(&run, words, status, message);
	assert_int_equal(access(below("default.pgo"), F_OK), -1);
}

static void pgo(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void pgo(const char *format, ...)
{
	char words[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	command_run(&run, words);
}

static void says(const char *text)
{
	if (!strstr(run.err, text))
		fail_msg("'%s' is not in '%s'", text, run.err);
}

static void read_merge(struct pprof_read *ret_profile)
{
	const char *why = "";
	int err = pprof_read_file(below("default.pgo"), ret_profile, &why);

	if (err)
		fail_msg("%s: %s", strerror(-err), why);
}

static const MESSAGE(Function) *
	function_at(const struct pprof_read *p, const MESSAGE(Sample) * sample, size_t depth)
{
	uint64_t index;

	assert_true(pprof_ids_get(&p->locations, sample->location_id[depth], &index));
	assert_int_equal(p->message->location[index]->address, 0);
	assert_true(pprof_ids_get(
		&p->functions, p->message->location[index]->line[0]->function_id, &index));
	return p->message->function[index];
}

static bool has_comment(const struct pprof_read *p, const char *text)
{
	for (size_t i = 0; i < p->message->n_comment; i++) {
		if (strstr(pprof_read_text(p, p->message->comment[i]), text))
			return true;
	}
	return false;
}

static void samples_of_one_program_are_summed(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	const MESSAGE(Sample) * sample;
	const MESSAGE(Function) * function;

	(void)state;
	WRITE("a.pb.gz", NOON, shop_samples);
	WRITE("b.pb.gz", NOON + 60, shop_samples);
	pgo("pgo -o %s %s %s", below("default.pgo"), below("a.pb.gz"), below("b.pb.gz"));
	assert_int_equal(run.status, EXIT_DONE);
	says("samples:  8 (0.00 s of CPU time) in 2 profiles, from 2026-11-24T12:00:00Z to "
	     "2026-11-24T12:01:10Z\n");
	read_merge(&p);
	assert_string_equal(pprof_read_text(&p, p.message->sample_type[0]->type), "cpu");
	assert_string_equal(pprof_read_text(&p, p.message->sample_type[1]->type), "samples");
	assert_int_equal(p.message->n_sample_type, 2);
	assert_int_equal(p.message->time_nanos, NOON * S);
	assert_int_equal(p.message->duration_nanos, 20 * S);
	assert_int_equal(p.message->period, 2 * (50 + 90 + 40) / 8);
	assert_int_equal(p.message->n_sample, 1);
	sample = p.message->sample[0];
	assert_int_equal(sample->value[0], 2 * (50 + 90 + 40));
	assert_int_equal(sample->value[1], 8);
	assert_int_equal(sample->n_label, 0);
	assert_int_equal(sample->n_location_id, 2);
	function = function_at(&p, sample, 0);
	assert_string_equal(pprof_read_text(&p, function->name), "main.sort[go.shape.int]");
	assert_string_equal(pprof_read_text(&p, function->system_name), "main.sort[go.shape.int]");
	assert_string_equal(pprof_read_text(&p, function->filename), "/w/m.go");
	assert_int_equal(function->start_line, 5);
	assert_int_equal(p.message->location[0]->line[0]->line, 7);
	assert_string_equal(pprof_read_text(&p, function_at(&p, sample, 1)->name), "main.main");
	assert_int_equal(p.message->n_location, 2);
	assert_true(has_comment(&p, ": 2 profiles of files, from 2026-11-24T12:00:00Z"));
	assert_true(has_comment(&p, "only samples of executable=/srv/shop"));
	assert_true(has_comment(&p, "CPU time of /srv/shop (build ID c0ffee)"));
}

static void two_files_of_a_window_cover_it_once(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };

	(void)state;
	WRITE("a.pb.gz", NOON, shop_samples);
	WRITE("b.pb.gz", NOON, shop_samples);
	pgo("pgo -x shop -o %s %s %s", below("default.pgo"), below("a.pb.gz"), below("b.pb.gz"));
	assert_int_equal(run.status, EXIT_DONE);
	read_merge(&p);
	assert_int_equal(p.message->duration_nanos, 10 * S);
	assert_int_equal(p.message->sample[0]->value[1], 8);
}

/* Stacks of the kernel alone have no frame of a program; -x does not see them as its own. */
static void by_comm_stacks_of_the_kernel_are_left_out(void **state)
{
	(void)state;
	WRITE("a.pb.gz", NOON, shop_samples);
	pgo("pgo --comm shop -o %s %s", below("default.pgo"), below("a.pb.gz"));
	assert_int_equal(run.status, EXIT_DONE);
	says("samples:  4 (");
	says("left out: 1 stacks that are only in the kernel\n");
}

static void of_several_programs_one_must_be_chosen(void **state)
{
	static const char *const bank[] = { "-x /srv/bank", "-x bank", "-x b?nk", "-x */bank",
		"--comm bank", "-x bank --comm bank" };
	static const char *const none[] = { "-x srv", "-x /bank", "-x ban", "--comm ban",
		"-x bank --comm shop", "-x [" };

	(void)state;
	WRITE("a.pb.gz", NOON, shop_samples);
	WRITE("b.pb.gz", NOON, bank_samples);
	refuses(EXIT_USAGE, "which program? Say -x and one of these", "pgo -o %s %s %s",
		below("default.pgo"), below("a.pb.gz"), below("b.pb.gz"));
	says(" s  /srv/bank\n");
	says(" s  /srv/shop\n");
	assert_null(strstr(run.err, "cc1")); /* not of Go */
	assert_true(strstr(run.err, "/srv/bank") < strstr(run.err, "/srv/shop"));
	assert_int_equal(access(below("default.pgo"), F_OK), -1);
	for (size_t i = 0; i < ARRAY_SIZE(bank); i++) {
		pgo("pgo %s -o %s %s %s", bank[i], below("default.pgo"), below("a.pb.gz"),
			below("b.pb.gz"));
		assert_int_equal(run.status, EXIT_DONE);
		says("samples:  3 (");
	}
	unlink(below("default.pgo"));
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		pgo("pgo %s -o %s %s %s", none[i], below("default.pgo"), below("a.pb.gz"),
			below("b.pb.gz"));
		assert_int_equal(run.status, EXIT_FAILED);
		says(": no profile has samples of such a program\n");
	}
	assert_int_equal(access(below("default.pgo"), F_OK), -1);
}

static void programs_that_go_build_cannot_use_are_refused(void **state)
{
	(void)state;
	WRITE("a.pb.gz", NOON, old_samples);
	refuses(EXIT_FAILED, "/srv/old: its functions have no start lines, which go build needs",
		"pgo -o %s %s", below("default.pgo"), below("a.pb.gz"));
	WRITE("a.pb.gz", NOON, shop_samples);
	refuses(EXIT_FAILED, "/dev/null: it is neither pprof nor gzip-compressed pprof\n",
		"pgo -o %s %s", below("default.pgo"), "/dev/null");
}

/* ---- a store ----------------------------------------------------------------------------------
 */

static void make_store(void)
{
	assert_int_equal(mkdir(below("store"), 0700), 0);
	assert_int_equal(mkdir(below("store/2026-11-23"), 0700), 0);
	assert_int_equal(mkdir(below("store/2026-11-24"), 0700), 0);
	assert_int_equal(mkdir(below("store/other"), 0700), 0);
	WRITE("store/2026-11-24/20261124T120000Z-10s-shop.pb.gz", NOON, shop_samples);
	WRITE("store/2026-11-23/20261123T120000Z-10s-shop.pb.gz", NOON - 86400, shop_samples);
	WRITE("store/2026-11-24/20261124T120010Z-10s-shop.pb.gz", NOON + 10, shop_samples);
	WRITE("store/2026-11-24/.20261124T120020Z-10s-shop.pb.gz", NOON + 20, shop_samples);
	WRITE("store/other/20261124T120000Z-10s-shop.pb.gz", NOON, shop_samples);
	assert_int_equal(
		mkfifo(below("store/2026-11-24/20261124T120000Z-10s-pipe.pb.gz"), 0600), 0);
	assert_int_equal(
		symlink("/dev/zero", below("store/2026-11-24/20261124T120000Z-10s-link.pb.gz")), 0);
	assert_int_equal(symlink("2026-11-24", below("store/2026-11-25")), 0);
}

static void stored_windows_are_chosen_by_time(void **state)
{
	static const struct {
		const char *options;
		int profiles;
	} cases[] = {
		{ "", 3 },
		{ "--from 2026-11-24T00:00:00Z", 2 },
		{ "--from 2026-11-24T12:00:09Z", 2 },
		{ "--from 2026-11-24T12:00:10Z", 1 },
		{ "--to 2026-11-24T12:00:10Z", 2 },
		{ "--to 2026-11-24T12:00:11Z", 3 },
		{ "--from 2026-11-23T12:00:10Z --to 2026-11-24T12:00:01Z", 1 },
	};
	char expected[64];

	(void)state;
	make_store();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		pgo("pgo -o %s --local-store-directory %s %s", below("default.pgo"), below("store"),
			cases[i].options);
		assert_int_equal(run.status, EXIT_DONE);
		snprintf(expected, sizeof(expected), " in %d profiles, ", cases[i].profiles);
		says(expected);
	}
	unlink(below("default.pgo"));
	refuses(EXIT_FAILED, "no profiles are stored there",
		"pgo -o %s --local-store-directory %s --from 2027-01-01T00:00:00Z",
		below("default.pgo"), below("store"));
}

/* A damaged file costs no more than its own samples, and the profile says so. */
static void damaged_files_of_a_store_are_counted(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };

	(void)state;
	make_store();
	assert_int_equal(
		truncate(below("store/2026-11-24/20261124T120010Z-10s-shop.pb.gz"), 60), 0);
	pgo("pgo -o %s --local-store-directory %s", below("default.pgo"), below("store"));
	assert_int_equal(run.status, EXIT_DONE);
	says("left out: ");
	says("20261124T120010Z-10s-shop.pb.gz: it is neither pprof");
	says(" in 2 profiles, ");
	says("left out: 1 damaged profiles, 0 that were removed meanwhile\n");
	read_merge(&p);
	assert_true(has_comment(&p, "left out: 1 damaged profiles"));
}

static void options_are_checked(void **state)
{
	(void)state;
	WRITE("a.pb.gz", NOON, shop_samples);
	refuses(EXIT_USAGE, "--from 2w: must be a time such as ", "pgo --from 2w -o %s",
		below("default.pgo"));
	refuses(EXIT_USAGE, "are for the store, and files were given", "pgo --to 2h -o %s %s",
		below("default.pgo"), below("a.pb.gz"));
	pgo("pgo -o %s --local-store-directory=", below("default.pgo"));
	assert_int_equal(run.status, EXIT_USAGE);
	refuses(EXIT_FAILED, "/no/such: No such file or directory\n",
		"pgo -o %s --local-store-directory=/no/such", below("default.pgo"));
	pgo("pgo -o /no/such/default.pgo %s", below("a.pb.gz"));
	assert_int_equal(run.status, EXIT_FAILED);
}

/* ---- files of minutes --------------------------------------------------------------------------
 */

static bool is_wanted(
	const struct pprof_read *p, const struct pgo_selection *selection, size_t number)
{
	struct pgo_samples samples;
	const char *why;
	bool wanted;

	assert_int_equal(pgo_samples_init(&samples, p, selection, &why), 0);
	wanted = pgo_samples_wanted(&samples, number);
	pgo_samples_deinit(&samples);
	return wanted;
}

/* The first two samples are of the minutes 10 and 11; the numbers are those of their processes. */
static void minutes_are_of_the_time_asked_for(void **state)
{
	static const int64_t nine = (NOON + 540) * S, ten = (NOON + 600) * S;
	const struct pgo_selection tenth = { .from_ns = nine, .to_ns = ten },
				   later = { .from_ns = ten, .to_ns = INT64_MAX }, all = { 0 };
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	char **keys;
	const char *why;

	(void)state;
	WRITE("a.pb.gz", NOON + 13, shop_samples);
	assert_int_equal(pprof_read_file(below("a.pb.gz"), &p, &why), 0);
	keys = p.message->string_table;
	for (size_t i = 0; i < p.message->n_string_table; i++) {
		if (strcmp(keys[i], "pid") != 0)
			continue;
		free(keys[i]);
		keys[i] = strdup("fathom_minute");
	}
	assert_true(is_wanted(&p, &tenth, 0));
	assert_false(is_wanted(&p, &tenth, 1));
	assert_false(is_wanted(&p, &later, 0));
	assert_true(is_wanted(&p, &later, 1));
	assert_true(is_wanted(&p, &all, 0));
	assert_true(is_wanted(&p, &all, 1));
}

/* ---- foreign profiles -------------------------------------------------------------------------
 */

/* Reads a.pb.gz, lets CHANGE spoil it, and writes it back. */
static void spoil(void (*change)(MESSAGE(Profile) * p))
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	autofree uint8_t *bytes = NULL;
	const char *why;
	size_t size;

	WRITE("a.pb.gz", NOON, shop_samples);
	assert_int_equal(pprof_read_file(below("a.pb.gz"), &p, &why), 0);
	change(p.message);
	size = perftools__profiles__profile__get_packed_size(p.message);
	bytes = malloc(size);
	assert_non_null(bytes);
	perftools__profiles__profile__pack(p.message, bytes);
	assert_int_equal(io_replace_file(AT_FDCWD, below("a.pb.gz"), bytes, size, 0600), 0);
}

static void make_negative(MESSAGE(Profile) * p)
{
	p->sample[5]->value[1] = -1;
}

static void take_types(MESSAGE(Profile) * p)
{
	p->sample_type[0]->type = p->sample_type[2]->type;
	p->sample_type[1]->type = p->sample_type[2]->type;
}

static void take_time(MESSAGE(Profile) * p)
{
	p->sample_type[1]->type = p->sample_type[2]->type;
}

static void make_huge(MESSAGE(Profile) * p)
{
	p->time_nanos = INT64_MAX;
	p->sample[0]->value[1] = INT64_MAX;
	p->sample[1]->value[1] = INT64_MAX;
}

static void make_deep(MESSAGE(Profile) * p)
{
	MESSAGE(Sample) *sample = p->sample[0];
	uint64_t leaf = sample->location_id[0];
	enum { DEEP = 3000 };

	free(sample->location_id);
	sample->location_id = calloc(DEEP, sizeof(*sample->location_id));
	for (size_t i = 0; i < DEEP; i++)
		sample->location_id[i] = leaf;
	sample->n_location_id = DEEP;
}

static void profiles_that_are_no_cpu_profiles_are_refused(void **state)
{
	(void)state;
	spoil(make_negative);
	refuses(EXIT_FAILED, "it has negative values, as the difference of two profiles has\n",
		"pgo -x shop -o %s %s", below("default.pgo"), below("a.pb.gz"));
	spoil(take_types);
	refuses(EXIT_FAILED, "it is no CPU profile", "pgo -x shop -o %s %s", below("default.pgo"),
		below("a.pb.gz"));
	spoil(take_time);
	WRITE("b.pb.gz", NOON, shop_samples);
	refuses(EXIT_FAILED, "b.pb.gz: its sample types are not those of the profiles before it\n",
		"pgo -x shop -o %s %s %s", below("default.pgo"), below("a.pb.gz"),
		below("b.pb.gz"));
	pgo("pgo -x shop -o %s %s", below("default.pgo"), below("a.pb.gz"));
	assert_int_equal(run.status, EXIT_DONE); /* samples/count alone will do */
	says("samples:  4 (");
}

static void absurd_profiles_are_merged_within_bounds(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };

	(void)state;
	spoil(make_huge);
	pgo("pgo -x shop -o %s %s", below("default.pgo"), below("a.pb.gz"));
	assert_int_equal(run.status, EXIT_DONE);
	read_merge(&p);
	assert_true(p.message->sample[0]->value[0] == INT64_MAX); /* the sum has no room */
	pprof_read_deinit(&p);
	spoil(make_deep);
	pgo("pgo -x shop -o %s %s", below("default.pgo"), below("a.pb.gz"));
	assert_int_equal(run.status, EXIT_DONE);
	says("cut:      1 stacks, at their outer ends\n");
	read_merge(&p);
	assert_int_equal(p.message->sample[0]->n_location_id, PPROF_MAX_FRAMES);
}

/* ---- programs ---------------------------------------------------------------------------------
 */

static void programs_are_ordered_by_weight(void **state)
{
	autocall(pgo_programs_deinit) struct pgo_programs p;
	uint32_t numbers[3];
	char name[32];

	(void)state;
	assert_int_equal(pgo_programs_init(&p), 0);
	assert_int_equal(pgo_programs_heaviest(&p, numbers, 3), 0);
	for (int i = 0; i < 9000; i++) {
		snprintf(name, sizeof(name), "/p/%d", i);
		assert_int_equal(pgo_programs_add(&p, name, (uint64_t)i % 4001), 0);
	}
	assert_int_equal(pgo_programs_add(&p, "/p/7", 10000), 0);
	assert_true(p.unlisted > 0); /* beyond the limit of names */
	assert_int_equal(pgo_programs_heaviest(&p, numbers, 3), 3);
	assert_string_equal(intern_text(&p.names, numbers[0]), "/p/7");
	assert_string_equal(intern_text(&p.names, numbers[1]), "/p/4000");
	assert_string_equal(intern_text(&p.names, numbers[2]), "/p/3999");
}

static int setup(void **state)
{
	(void)state;
	memset(directory + strlen(directory) - 6, 'X', 6);
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(minutes_are_of_the_time_asked_for),
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(other_texts_are_no_times),
		CASE(samples_of_one_program_are_summed),
		CASE(two_files_of_a_window_cover_it_once),
		CASE(by_comm_stacks_of_the_kernel_are_left_out),
		CASE(of_several_programs_one_must_be_chosen),
		CASE(programs_that_go_build_cannot_use_are_refused),
		CASE(stored_windows_are_chosen_by_time),
		CASE(damaged_files_of_a_store_are_counted),
		CASE(options_are_checked),
		CASE(profiles_that_are_no_cpu_profiles_are_refused),
		CASE(absurd_profiles_are_merged_within_bounds),
		cmocka_unit_test(programs_are_ordered_by_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
