/* SPDX-License-Identifier: Apache-2.0 */
/* agent/latency as text, JSON and OpenMetrics; the last one read by Prometheus' own parser. */
#include "tests/unit/latency_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/latency/latency_candidates.h"
#include "agent/latency/latency_json.h"
#include "agent/latency/latency_openmetrics.h"
#include "agent/latency/latency_text.h"

enum { OUTPUT_BYTES = 64 << 20 };

#define ODD_NAME "a\"b\\c\nd\x01\x7f\xff\xc3\xa9"

/* ---- helpers --------------------------------------------------------------------------------- */

static char *taken(struct buffer *out)
{
	assert_int_equal(buffer_append(out, "", 1), 0);
	return (char *)out->bytes;
}

static char *text_of(const struct latency_report *report)
{
	struct buffer out;

	buffer_init(&out, OUTPUT_BYTES);
	assert_int_equal(latency_text(report, &out), 0);
	return taken(&out);
}

static char *json_of(const struct latency_report *report, bool is_interval)
{
	struct buffer out;

	buffer_init(&out, OUTPUT_BYTES);
	assert_int_equal(latency_json(report, is_interval, &out), 0);
	return taken(&out);
}

static char *openmetrics_of(const struct latency_report *report)
{
	struct buffer out;

	buffer_init(&out, OUTPUT_BYTES);
	assert_int_equal(latency_openmetrics(report, &out), 0);
	return taken(&out);
}

static void expect_part(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%.4000s", part, text);
}

static void expect_no_part(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' in:\n%.4000s", part, text);
}

/* Not by strstr(), which AddressSanitizer has read all of the text at each call. */
static size_t count_of(const char *text, const char *part)
{
	size_t count = 0, size = strlen(part);

	for (; (text = strchr(text, *part)) != NULL; text++)
		count += !strncmp(text, part, size);
	return count;
}

/* What Prometheus' parser makes of TEXT: a line of JSON for each sample. */
static char *parsed(const char *text)
{
	char path[] = "/tmp/openmetrics-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	struct buffer out;
	FILE *reader;
	size_t got;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(setenv("OPENMETRICS_FILE", path, 1), 0);
	/* The module is Debian's, and `python3` need not be. */
	reader = popen("for p in /usr/bin/python3 python3; do "
		       "$p -c 'import prometheus_client' 2>/dev/null && "
		       "exec $p tests/openmetrics_read.py <$OPENMETRICS_FILE 2>&1; done; "
		       "echo python3-prometheus-client is missing; exit 1",
		"r");
	assert_non_null(reader);
	buffer_init(&out, OUTPUT_BYTES);
	do {
		void *room = buffer_room(&out, 65536);

		assert_non_null(room);
		got = fread(room, 1, 65536, reader);
		out.size += got;
	} while (got);
	unlink(path);
	if (pclose(reader) != 0)
		fail_msg("%s\n%.4000s", taken(&out), text);
	return taken(&out);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void test_text_of_one_function(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "main.handle");
	autofree char *text = NULL;

	took(report, f, 8, 1500);
	took(report, f, 1, 5000);
	took(report, f, 1, 40000);
	report->duration_ns = UINT64_C(10000000000);
	report->hits = 20;
	report->trap_ns = 12000;
	text = text_of(report);
	assert_string_equal(text,
		"10.0s: 10 calls of 1 function\n\n"
		"main.handle  /usr/bin/app\n"
		"  count 10  mean 5.70us  p50 1.53us  p90 5.12us  p99 40.0us  max 40.0us  "
		"total 57.0us\n"
		"  [1.02us, 2.05us)            8 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"
		"  [2.05us, 4.10us)            0 |                                        |\n"
		"  [4.10us, 8.19us)            1 |@@@@@                                   |\n"
		"  [8.19us, 16.4us)            0 |                                        |\n"
		"  [16.4us, 32.8us)            0 |                                        |\n"
		"  [32.8us, 65.5us)            1 |@@@@@                                   |\n"
		"\n"
		"cost: 20 hits of probes, about 12.0us each: 240us of CPU time in the measured "
		"programs, 0.0% of one CPU\n");
}

static void test_text_without_calls(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL;

	function_named(report, "b");
	function_named(report, "a");
	report->duration_ns = 1500000000;
	text = text_of(report);
	assert_string_equal(text, "1.50s: 0 calls of 2 functions\n\nnot called: a, b\n");
}

static void test_text_of_an_empty_report(void **state)
{
	autofree char *text = text_of(*state);

	assert_string_equal(text, "0ns: 0 calls of 0 functions\n\n");
}

static void test_text_of_one_call_among_millions(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	autofree char *text = NULL;

	took(report, f, 10000000, 0);
	took(report, f, 1, 2);
	report->hits = 7;
	text = text_of(report);
	expect_part(text, "\ncost: 7 hits of probes, each about 12us of the program's time on a "
			  "virtual machine, less on hardware\n");
	expect_part(text, "  [0ns, 2ns)           10000000 |@@@@@@@@@@");
	expect_part(text, "  [2ns, 4ns)                  1 |@       ");
}

static void test_text_above_an_hour(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	autofree char *text = NULL;

	took(report, f, 1, UINT64_C(3600000000000));
	took(report, f, 1, UINT64_C(8000000000000));
	text = text_of(report);
	expect_part(text, "[2199s, 3848s)              1 |@");
	expect_part(text, "[3848s, ...)                1 |@");
	expect_part(text, "max 8000s");
}

static void test_text_names_are_harmless(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL;

	took(report, function_at(report, ODD_NAME, "/bin/\033[31mred", 1), 1, 5);
	function_named(report, "un\ncalled");
	text = text_of(report);
	expect_part(text, "a\"b\\c?d???\xc3\xa9  /bin/?[31mred\n");
	expect_part(text, "not called: un?called\n");
}

static void test_text_tells_clones_apart(void **state)
{
	struct latency_report *report = *state;
	struct latency_identity identity = { .name = "app::run()",
		.linkage = "_ZN3app3runEv",
		.binary = "/bin/app",
		.build_id = "" };
	autofree char *text = NULL;
	uint32_t number;

	assert_int_equal(latency_report_function(report, &identity, &number), 0);
	took(report, number, 1, 5);
	identity.name = "run";
	identity.linkage = "run@@V2";
	assert_int_equal(latency_report_function(report, &identity, &number), 0);
	took(report, number, 1, 5);
	text = text_of(report);
	expect_part(text, "app::run()  /bin/app\n");
	expect_part(text, "run (run@@V2)  /bin/app\n");
}

static void test_text_by_goroutine(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	autofree char *text = NULL;

	for (uint64_t goid = 1; goid <= 23; goid++)
		took_by(report, f, goid, 1, goid * 100);
	text = text_of(report);
	assert_int_equal(count_of(text, "    goid "), 20);
	expect_part(text, "f  /usr/bin/app\n  count 23  ");
	expect_part(text, "    goid 23\n      count 1  mean 2.30us ");
	expect_part(text, "      [2.05us, 4.10us)            1 |@");
	expect_part(text, "    goid 4\n");
	expect_no_part(text, "    goid 3\n");
	expect_part(text, "    and 3 more of these; --json has them all\n");
}

static void test_text_by_process_has_names(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL;

	took_by(report, function_named(report, "f"), 77, 1, 100);
	assert_int_equal(latency_report_name_key(report, 77, "wor\nker"), 0);
	text = text_of(report);
	expect_part(text, "    pid 77 wor?ker\n");
	expect_no_part(text, "more of these");
}

static void test_text_says_what_is_missing(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	autofree char *text = NULL;

	took(report, f, 1, 5);
	latency_report_factor(report, f, 8);
	report->estimated = 700;
	for (enum latency_loss loss = 0; loss < LATENCY_LOSSES; loss++)
		report->lost[loss] = (uint64_t)loss + 1;
	text = text_of(report);
	expect_part(text, "  at most one call in 8 was measured; the others are estimated\n");
	expect_part(text, "estimated: 700 calls were not measured, to limit the cost");
	expect_part(text, "not counted: 1 call did not return: panic, ");
	expect_part(text, "not counted: 2 calls began before the probes ");
	assert_int_equal(count_of(text, "not counted: "), LATENCY_LOSSES);
}

static void test_text_of_uncalled_functions_is_short(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL;

	for (int i = 0; i < 10000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%04d", i);
		function_named(report, name);
	}
	text = text_of(report);
	expect_part(text, "not called: f0000, f0001, ");
	expect_part(text, ", f0009 and 9990 more\n");
	assert_true(strlen(text) < 1000);
}

static void test_text_that_does_not_fit(void **state)
{
	struct latency_report *report = *state;
	autocall(buffer_deinit) struct buffer out;

	took(report, function_named(report, "f"), 1, 5);
	buffer_init(&out, 30);
	assert_int_equal(latency_text(report, &out), -E2BIG);
}

static void test_text_of_kernel_functions(void **state)
{
	struct latency_report *report = *state;
	const struct latency_identity identity = {
		.name = "vfs_read", .linkage = "vfs_read", .binary = "[ext4]", .build_id = ""
	};
	autofree char *text = NULL, *json = NULL;
	uint32_t f;

	assert_int_equal(latency_report_function(report, &identity, &f), 0);
	took(report, f, 3, 12);
	report->hits = 6;
	report->lost[LATENCY_LOSS_missed] = 2;
	report->kernel_way = "fentry/fexit";
	text = text_of(report);
	expect_part(text, "vfs_read  [ext4]\n");
	expect_part(text, "not counted: 2 calls of kernel functions were missed: ");
	expect_part(text, "cost: 6 hits of probes; those of kernel functions by fentry/fexit\n");
	/* What a user function's trap costs says nothing of these. */
	expect_no_part(text, "12us");
	json = json_of(report, false);
	expect_part(json, "\"missed\":2},\"hits\":6,\"trap_ns\":0,"
			  "\"kernel_functions_by\":\"fentry/fexit\",\"functions\":[");
	/* Their addresses would tell where the kernel is loaded. */
	expect_no_part(json, "address");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void test_json_of_one_function(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "main.handle");
	autofree char *text = NULL;

	took(report, f, 3, 12);
	took(report, f, 1, 1500);
	report->duration_ns = 2000;
	report->hits = 8;
	text = json_of(report, false);
	assert_string_equal(text,
		"{\"interval\":false,\"duration_ns\":2000,\"by\":null,\"calls\":4,"
		"\"estimated\":0,\"not_counted\":{\"not_returned\":0,\"no_entry\":0,"
		"\"open_calls_full\":0,\"evicted\":0,\"histograms_full\":0,"
		"\"goroutine_unreadable\":0,\"missed\":0},\"hits\":8,\"trap_ns\":0,\"functions\":["
		"{\"name\":\"main.handle\",\"linkage_name\":\"main.handle\","
		"\"binary\":\"/usr/bin/app\",\"build_id\":\"0badc0de\",\"address\":\"0x1000\","
		"\"measured_one_in\":1,\"calls\":4,\"total_ns\":1536,\"mean_ns\":384.0,"
		"\"p50_ns\":12,\"p90_ns\":1500,\"p99_ns\":1500,\"max_ns\":1500,\"buckets\":["
		"{\"from_ns\":12,\"to_ns\":13,\"calls\":3},"
		"{\"from_ns\":1408,\"to_ns\":1536,\"calls\":1}]}]}\n");
}

static void test_json_by_goroutine_has_all_keys(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	autofree char *text = NULL;

	for (uint64_t goid = 1; goid <= 30; goid++)
		took_by(report, f, goid, 1, 100);
	assert_int_equal(latency_report_name_key(report, 30, "last"), 0);
	text = json_of(report, true);
	expect_part(text, "{\"interval\":true,");
	expect_part(text, "\"by\":\"goid\"");
	assert_int_equal(count_of(text, "{\"goid\":"), 30);
	expect_part(text, "{\"goid\":30,\"name\":\"last\",\"calls\":1,");
	assert_int_equal(count_of(text, "\n"), 1);
}

static void test_json_of_odd_names_and_the_last_bucket(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL;

	took(report, function_named(report, ODD_NAME), 1, UINT64_MAX / 2);
	text = json_of(report, false);
	expect_part(text, "\"name\":\"a\\\"b\\\\c\\u000ad\\u0001");
	expect_part(text, "\"to_ns\":null,\"calls\":1}");
}

static void test_json_without_functions(void **state)
{
	autofree char *text = json_of(*state, false);

	expect_part(text, "\"functions\":[]}\n");
}

/* ---- OpenMetrics ----------------------------------------------------------------------------- */

static void test_openmetrics_of_one_function(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "main.handle");
	autofree char *text = NULL, *samples = NULL;

	took(report, f, 3, 12);
	took(report, f, 4, 64);
	took(report, f, 5, 1023);
	took(report, f, 6, 1024);
	took(report, f, 7, UINT64_C(8000000000000));
	report->lost[LATENCY_LOSS_evicted] = 9;
	report->estimated = 10;
	text = openmetrics_of(report);
	samples = parsed(text);
	expect_part(samples,
		"[\"fathom_function_latency_seconds_bucket\", {\"binary\": \"/usr/bin/app\", "
		"\"function\": \"main.handle\", \"le\": \"6.3e-08\"}, 3]");
	expect_part(samples, "\"le\": \"1.27e-07\"}, 7]");
	/* 1023 ns are below this bound, 1024 ns are not. */
	expect_part(samples, "\"le\": \"1.023e-06\"}, 12]");
	expect_part(samples, "\"le\": \"2.047e-06\"}, 18]");
	expect_part(samples, "\"le\": \"2199.023255551\"}, 18]");
	expect_part(samples, "\"le\": \"+Inf\"}, 25]");
	expect_part(samples,
		"[\"fathom_function_latency_seconds_count\", {\"binary\": \"/usr/bin/app\", "
		"\"function\": \"main.handle\"}, 25]");
	expect_part(text, "_sum{function=\"main.handle\",binary=\"/usr/bin/app\"} "
			  "56000.000011551\n");
	expect_part(samples, "[\"fathom_function_calls_not_counted_total\", {\"reason\": "
			     "\"evicted\"}, 9]");
	expect_part(samples, "[\"fathom_function_calls_estimated_total\", {}, 10]");
	assert_int_equal(count_of(samples, "_bucket\""), 37);
}

static void test_openmetrics_without_calls(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL, *samples = NULL;

	function_named(report, "never");
	text = openmetrics_of(report);
	samples = parsed(text);
	expect_no_part(samples, "latency_seconds");
	expect_part(samples, "fathom_function_calls_estimated_total");
}

static void test_openmetrics_of_odd_names(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL, *samples = NULL;

	took(report, function_named(report, ODD_NAME), 1, 5);
	took(report, function_named(report, "ends in \\"), 1, 5);
	took(report, function_named(report, "x\",function=\"y"), 1, 5);
	took(report, function_named(report, ""), 1, 5);
	text = openmetrics_of(report);
	samples = parsed(text);
	expect_part(samples, "\"function\": \"a\\\"b\\\\c\\nd\\u0001\\u007f?\\u00e9\"");
	expect_part(samples, "\"function\": \"ends in \\\\\"");
	expect_part(samples, "\"function\": \"x\\\",function=\\\"y\"");
	assert_int_equal(count_of(samples, "_count\""), 4);
}

static void test_openmetrics_series_are_distinct(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL, *samples = NULL;

	took(report, function_at(report, "init", "/bin/app", 0x10), 1, 5);
	took(report, function_at(report, "init", "/bin/app", 0x20), 2, 5);
	took(report, function_at(report, "init", "/bin/other", 0x20), 3, 5);
	function_at(report, "init", "/bin/app", 0x30); /* without calls it has no series */
	/* Different names that are equal once they are valid UTF-8. */
	took(report, function_at(report, "odd\xfe", "/bin/app", 0x40), 4, 5);
	took(report, function_at(report, "odd\xff", "/bin/app", 0x40), 5, 5);
	text = openmetrics_of(report);
	samples = parsed(text);
	expect_part(samples, "_count\", {\"address\": \"0x10\", \"binary\": \"/bin/app\", "
			     "\"build_id\": \"0badc0de\", \"function\": \"init\"}, 1]");
	expect_part(samples, "_count\", {\"address\": \"0x20\", \"binary\": \"/bin/app\", "
			     "\"build_id\": \"0badc0de\", \"function\": \"init\"}, 2]");
	expect_part(samples, "_count\", {\"binary\": \"/bin/other\", \"function\": \"init\"}, 3]");
	assert_int_equal(count_of(samples, "\"number\": "), 39);
	assert_int_equal(count_of(samples, "_count\""), 5);
}

static void test_openmetrics_by_process(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	autofree char *text = NULL, *samples = NULL;

	took_by(report, f, 77, 2, 0);
	took_by(report, f, 78, 3, 5);
	assert_int_equal(latency_report_name_key(report, 77, "wor\"ker"), 0);
	text = openmetrics_of(report);
	samples = parsed(text);
	expect_part(samples, "_count\", {\"binary\": \"/usr/bin/app\", \"comm\": \"wor\\\"ker\", "
			     "\"function\": \"f\", \"pid\": \"77\"}, 2]");
	expect_part(samples, "_count\", {\"binary\": \"/usr/bin/app\", "
			     "\"function\": \"f\", \"pid\": \"78\"}, 3]");
	assert_int_equal(count_of(samples, "_count\""), 2);
}

static void test_openmetrics_of_many_functions(void **state)
{
	struct latency_report *report = *state;
	autofree char *text = NULL;

	for (uint32_t i = 0; i < 10000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", i);
		took(report, function_named(report, name), 1, i);
	}
	text = openmetrics_of(report);
	assert_int_equal(count_of(text, "_count{"), 10000);
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

/* ---- what would be probed -------------------------------------------------------------------- */

static const struct latency_candidate candidates[] = {
	{ .name = "main.handle",
		.linkage = "main.handle",
		.binary = "/usr/bin/app",
		.address = 0x48f2a0,
		.return_count = 2,
		.note = "" },
	{ .name = "mal\nloc",
		.linkage = "malloc",
		.binary = "/lib/libc.so.6",
		.address = 0x99000,
		.return_count = 1,
		.aliases = 2,
		.note = "calls that end in a jump to another function are not counted" },
	{ .name = "main.die",
		.linkage = "main.die",
		.binary = "/usr/bin/app",
		.address = 0x48f300,
		.note = "",
		.refusal = "it has no RET: it does not return",
		.caller = "",
		.file = "" },
	{ .name = "main.add",
		.linkage = "main.add",
		.binary = "/usr/bin/app",
		.note = "",
		.refusal = "it exists only inlined",
		.caller = "main.main",
		.file = "/src/main.go",
		.line = 17,
		.calls = 3 },
};

static void test_candidates_as_text(void **state)
{
	autocall(buffer_deinit) struct buffer out;
	struct latency_candidates list = {
		.items = candidates, .count = ARRAY_SIZE(candidates), .excluded = 1
	};

	(void)state;
	buffer_init(&out, OUTPUT_BYTES);
	assert_int_equal(latency_candidates_text(&list, &out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_string_equal((char *)out.bytes,
		"to be probed: 2 functions, with 5 probes\n"
		"             ENTRY  RETURNS  FUNCTION\n"
		"          0x48f2a0        2  main.handle  /usr/bin/app\n"
		"           0x99000        1  mal?loc  /lib/libc.so.6  (2 more names of the same "
		"code): calls that end in a jump to another function are not counted\n"
		"cannot be probed: 2 functions\n"
		"  main.die  /usr/bin/app: it has no RET: it does not return\n"
		"  main.add  /usr/bin/app: it exists only inlined in main.main at "
		"/src/main.go:17 and 2 other places\n"
		"excluded: 1 function\n");
}

static void test_candidates_as_json(void **state)
{
	autocall(buffer_deinit) struct buffer out;
	struct latency_candidates list = {
		.items = candidates, .count = ARRAY_SIZE(candidates), .excluded = 1
	};
	const char *text;

	(void)state;
	buffer_init(&out, OUTPUT_BYTES);
	assert_int_equal(latency_candidates_json(&list, &out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	text = (const char *)out.bytes;
	expect_part(text, "{\"functions\":2,\"probes\":5,\"excluded\":1,\"candidates\":["
			  "{\"name\":\"main.handle\",\"linkage_name\":\"main.handle\","
			  "\"binary\":\"/usr/bin/app\",\"probed\":true,\"address\":\"0x48f2a0\","
			  "\"returns\":2,\"aliases\":0},");
	expect_part(text, "\"probed\":false,\"reason\":\"it exists only inlined\","
			  "\"inlined_in\":\"main.main\",\"file\":\"/src/main.go\","
			  "\"line\":17}]}\n");
}

static void test_no_candidates(void **state)
{
	autocall(buffer_deinit) struct buffer out;
	struct latency_candidates none = { 0 };

	(void)state;
	buffer_init(&out, OUTPUT_BYTES);
	assert_int_equal(latency_candidates_text(&none, &out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_string_equal((char *)out.bytes, "to be probed: 0 functions, with 0 probes\n");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, report_by_function, free_report)
#define GOID_CASE(test) cmocka_unit_test_setup_teardown(test, report_by_goid, free_report)
#define PID_CASE(test) cmocka_unit_test_setup_teardown(test, report_by_pid, free_report)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_text_of_one_function),
		CASE(test_text_without_calls),
		CASE(test_text_of_an_empty_report),
		CASE(test_text_of_one_call_among_millions),
		CASE(test_text_above_an_hour),
		CASE(test_text_names_are_harmless),
		CASE(test_text_tells_clones_apart),
		GOID_CASE(test_text_by_goroutine),
		PID_CASE(test_text_by_process_has_names),
		CASE(test_text_says_what_is_missing),
		CASE(test_text_of_uncalled_functions_is_short),
		CASE(test_text_that_does_not_fit),
		CASE(test_text_of_kernel_functions),
		CASE(test_json_of_one_function),
		GOID_CASE(test_json_by_goroutine_has_all_keys),
		CASE(test_json_of_odd_names_and_the_last_bucket),
		CASE(test_json_without_functions),
		CASE(test_openmetrics_of_one_function),
		CASE(test_openmetrics_without_calls),
		CASE(test_openmetrics_of_odd_names),
		CASE(test_openmetrics_series_are_distinct),
		PID_CASE(test_openmetrics_by_process),
		CASE(test_openmetrics_of_many_functions),
		cmocka_unit_test(test_candidates_as_text),
		cmocka_unit_test(test_candidates_as_json),
		cmocka_unit_test(test_no_candidates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
