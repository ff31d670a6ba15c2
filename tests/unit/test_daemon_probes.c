/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's half of `probes:`: what the sampler is told, the labels and counts of histograms,
 * what a reload changes, and when a histogram ends.
 */
#include "tests/unit/daemon_fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/sampler/seam/window_latency.h"
#include "agent/sampler/seam/window_processes.h"

enum { BIG = 4 << 20, MAX_CELLS = 64, MAX_FUNCTIONS = 8 };

static const uint64_t SECOND = 1000000000;

static const char TWO_PROBES[] =
	"probes:\n"
	"- {name: shop, processes: [comm=shop, 'comm=a,b'], functions: [f], labels: {team: pay}}\n"
	"- {name: io, functions: [vfs_write], kernel: true, by: pid}\n";

/* An agent, and the next window's measurements. */
struct bench {
	struct daemon_fixture f;
	struct window_processes processes;
	struct window_latency latency;
	struct window_latency_probe probes[4];
	struct window_latency_function functions[MAX_FUNCTIONS];
	struct window_latency_cell cells[MAX_CELLS];
	uint64_t now_ns;
};

static void make(struct bench *b, const char *text)
{
	daemon_fixture_make(&b->f, text);
	window_processes_init(&b->processes);
	b->latency = (struct window_latency){
		.probes = b->probes, .functions = b->functions, .cells = b->cells
	};
	b->now_ns = 1000 * SECOND;
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct bench));
	make(*state, TWO_PROBES);
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	window_processes_deinit(&b->processes);
	daemon_fixture_unmake(&b->f);
	free(b);
	return 0;
}

static void change_settings(struct bench *b, const char *text)
{
	autofree char *message = NULL;

	daemon_fixture_write(&b->f, text);
	if (daemon_reload(&b->f.daemon, &message))
		fail_msg("%s", message);
}

static void add_process(struct bench *b, uint32_t number, uint32_t pid, const char *comm)
{
	struct process_facts facts = { .number = number, .pid = pid, .program_path = "/opt/shop" };

	snprintf(facts.comm, sizeof(facts.comm), "%s", comm);
	snprintf(facts.container_id, sizeof(facts.container_id), "%s", "0123abc");
	assert_int_equal(window_processes_add(&b->processes, &facts), 0);
}

static uint32_t add_probe(struct bench *b, const char *name, enum abi_latency_by by)
{
	b->probes[b->latency.probe_count] = (struct window_latency_probe){ .name = name,
		.by = by,
		.state = WINDOW_LATENCY_MEASURED,
		.reason = "",
		.functions = 2,
		.sites = 5,
		.factor = 4,
		.hits = 10 };
	return (uint32_t)b->latency.probe_count++;
}

static uint32_t add_function(struct bench *b, uint32_t probe, const char *name)
{
	assert_in_range(b->latency.function_count, 0, MAX_FUNCTIONS - 1);
	b->functions[b->latency.function_count] = (struct window_latency_function){
		.probe = probe, .factor = 1, .name = name, .linkage = name, .binary = "/opt/shop"
	};
	return (uint32_t)b->latency.function_count++;
}

static void add_calls(struct bench *b, uint32_t function, uint32_t process, uint64_t by,
	uint64_t calls, uint64_t ns)
{
	assert_in_range(b->latency.cell_count, 0, MAX_CELLS - 1);
	b->cells[b->latency.cell_count++] = (struct window_latency_cell){ .function = function,
		.process = process,
		.by = by,
		.bucket = abi_latency_bucket(ns),
		.calls = calls,
		.total_ns = calls * ns,
		.max_ns = ns };
}

/* Passes the window on, and begins another one with the same probes and functions. */
static void seal(struct bench *b)
{
	struct sealed_window window = b->f.sampler.window;

	b->now_ns += 10 * SECOND;
	window.began_ns = b->now_ns - 10 * SECOND;
	window.ended_ns = b->now_ns;
	window.processes = &b->processes;
	window.latency = &b->latency;
	daemon_probes_window(b->f.daemon.probes, &window, NULL);
	b->latency.cell_count = 0;
	b->latency.losses = (struct window_latency_losses){ 0 };
}

static char *metrics_of(struct bench *b)
{
	struct buffer out;

	buffer_init(&out, BIG);
	daemon_probes_write_metrics(b->f.daemon.probes, &out);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	return (char *)out.bytes;
}

static void assert_metric(struct bench *b, const char *wanted)
{
	autofree char *text = metrics_of(b);

	if (!strstr(text, wanted))
		fail_msg("%s is not in %s", wanted, text);
}

static void assert_no_metric(struct bench *b, const char *unwanted)
{
	autofree char *text = metrics_of(b);

	if (strstr(text, unwanted))
		fail_msg("%s is in %s", unwanted, text);
}

static uint64_t counter(struct bench *b, enum metric metric)
{
	return metrics_get(&b->f.sampler.metrics, metric);
}

#define SHOP_LABELS                                                          \
	"{function=\"f\",binary=\"/opt/shop\",probe=\"shop\",comm=\"shop\"," \
	"container=\"0123abc\",executable=\"shop\",team=\"pay\""

/* The function f of the probe `shop`, called by process 1. */
static uint32_t begin_shop(struct bench *b)
{
	add_process(b, 1, 77, "shop");
	return add_function(b, add_probe(b, "shop", ABI_LATENCY_BY_FUNCTION), "f");
}

/* ---- histograms ----------------------------------------------------------------------------- */

static void windows_add_up(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	add_calls(b, f, 1, 0, 3, 1000);
	add_calls(b, f, 1, 0, 2, 5000);
	seal(b);
	assert_metric(b, "_count" SHOP_LABELS "} 5\n");
	assert_metric(b, "_sum" SHOP_LABELS "} 0.000013000\n");
	assert_metric(b, "_bucket" SHOP_LABELS ",le=\"1.023e-06\"} 3\n");
	seal(b);
	assert_metric(b, "_count" SHOP_LABELS "} 5\n");
	add_calls(b, f, 1, 0, 1, 1000);
	seal(b);
	assert_metric(b, "_count" SHOP_LABELS "} 6\n");
	assert_metric(b, "fathom_probe_series 1\n");
}

static void processes_with_equal_labels_are_one_histogram(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	add_process(b, 2, 78, "shop");
	add_process(b, 3, 79, "other");
	add_calls(b, f, 1, 0, 1, 1000);
	add_calls(b, f, 3, 0, 4, 1000);
	add_calls(b, f, 2, 0, 2, 1000);
	seal(b);
	assert_metric(b, "_count" SHOP_LABELS "} 3\n");
	assert_metric(
		b, "comm=\"other\",container=\"0123abc\",executable=\"shop\",team=\"pay\"} 4\n");
	assert_metric(b, "fathom_probe_series 2\n");
}

static void calls_are_told_apart_as_the_probe_says(void **state)
{
	struct bench *b = *state;
	uint32_t f;

	add_process(b, 1, 77, "shop");
	add_process(b, 2, 78, "shop");
	f = add_function(b, add_probe(b, "io", ABI_LATENCY_BY_PROCESS), "vfs_write");
	b->functions[f].binary = "";
	add_calls(b, f, 1, 0, 1, 1000);
	add_calls(b, f, 2, 0, 2, 1000);
	/* Of a process that is not known. */
	add_calls(b, f, 9, 0, 3, 1000);
	seal(b);
	assert_metric(b, "_count{function=\"vfs_write\",probe=\"io\",comm=\"shop\","
			 "container=\"0123abc\",executable=\"shop\",pid=\"77\"} 1\n");
	assert_metric(b, "pid=\"78\"} 2\n");
	assert_metric(b, "_count{function=\"vfs_write\",probe=\"io\"} 3\n");
	change_settings(b, "probes:\n- {name: io, functions: ['x:f'], by: goid}\n");
	b->probes[0].by = ABI_LATENCY_BY_FIBER;
	add_calls(b, f, 1, 17, 5, 1000);
	seal(b);
	assert_metric(b, "executable=\"shop\",goid=\"17\"} 5\n");
}

static void foreign_names_cannot_break_the_text(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	add_process(b, 2, 78, "a\"} 1\nx");
	b->functions[f].name = "f\"\\\n\xff";
	add_calls(b, f, 2, 0, 1, 1000);
	seal(b);
	assert_metric(b, "_count{function=\"f\\\"\\\\\\n?\",binary=\"/opt/shop\",probe=\"shop\","
			 "comm=\"a\\\"} 1?x\",");
}

/* ---- labels --------------------------------------------------------------------------------- */

static void rules_may_change_labels_but_not_ours(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	change_settings(b, "node: n1\nmetadata-external-labels: [zone=eu, rack=7]\n"
			   "relabel_configs:\n"
			   "- {source_labels: [node, zone], target_label: place, separator: '-'}\n"
			   "- {source_labels: [rack], target_label: rack, replacement: 'r$1'}\n"
			   "- {target_label: container, replacement: cart}\n"
			   "- {target_label: function, replacement: forged}\n"
			   "- {target_label: le, replacement: forged}\n"
			   "- {target_label: team, replacement: forged}\n"
			   "- {target_label: __tmp, replacement: forged}\n"
			   "probes:\n- {name: shop, functions: ['x:f'], labels: {team: pay}}\n");
	add_calls(b, f, 1, 0, 1, 1000);
	seal(b);
	assert_metric(b, "_count{function=\"f\",binary=\"/opt/shop\",probe=\"shop\","
			 "comm=\"shop\",container=\"cart\",executable=\"shop\","
			 "place=\"n1-eu\",rack=\"r7\",team=\"pay\"} 1\n");
	assert_no_metric(b, "forged");
}

static void what_a_rule_drops_is_counted(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	change_settings(b,
		"relabel_configs:\n- {source_labels: [comm], regex: shop, action: drop}\n"
		"probes:\n- {name: shop, functions: ['x:f']}\n");
	add_process(b, 2, 78, "other");
	add_calls(b, f, 1, 0, 6, 1000);
	add_calls(b, f, 2, 0, 1, 1000);
	seal(b);
	assert_no_metric(b, "comm=\"shop\"");
	assert_metric(b, "comm=\"other\"");
	assert_int_equal(counter(b, METRIC_CALLS_RELABEL_DROPPED), 6);
}

/* ---- limits and losses ---------------------------------------------------------------------- */

static void histograms_beyond_the_limit_are_counted(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	change_settings(
		b, "probe-series-max: 2\nprobes:\n- {name: shop, functions: ['x:f'], by: goid}\n");
	b->probes[0].by = ABI_LATENCY_BY_FIBER;
	for (uint64_t goid = 1; goid <= 5; goid++)
		add_calls(b, f, 1, goid, goid, 1000);
	seal(b);
	assert_metric(b, "goid=\"1\"} 1\n");
	assert_metric(b, "goid=\"2\"} 2\n");
	assert_no_metric(b, "goid=\"3\"");
	assert_int_equal(counter(b, METRIC_CALLS_SERIES_FULL), 3 + 4 + 5);
	assert_metric(b, "fathom_probe_series 2\n");
}

static void losses_are_counted_by_reason(void **state)
{
	struct bench *b = *state;

	begin_shop(b);
	b->latency.losses = (struct window_latency_losses){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	seal(b);
	assert_int_equal(counter(b, METRIC_CALLS_ESTIMATED), 1);
	assert_int_equal(counter(b, METRIC_CALLS_NOT_RETURNED), 2);
	assert_int_equal(counter(b, METRIC_CALLS_NO_ENTRY), 3);
	assert_int_equal(counter(b, METRIC_CALLS_OPEN_FULL), 4);
	assert_int_equal(counter(b, METRIC_CALLS_EVICTED), 5);
	assert_int_equal(counter(b, METRIC_CALLS_HISTOGRAMS_FULL), 6);
	assert_int_equal(counter(b, METRIC_CALLS_FIBER_ERRORS), 7);
	assert_int_equal(counter(b, METRIC_CALLS_MISSED), 8);
	assert_int_equal(counter(b, METRIC_PROBE_PROCESSES_REFUSED), 9);
	assert_int_equal(counter(b, METRIC_PROBE_CELLS_LOST), 10);
}

static void states_are_shown(void **state)
{
	struct bench *b = *state;
	autocall(buffer_deinit) struct buffer out;

	begin_shop(b);
	b->probes[0].refused_functions = 3;
	b->probes[0].reason = "no such\x1b function";
	seal(b);
	seal(b);
	assert_metric(b, "fathom_probe_functions{probe=\"shop\"} 2\n");
	assert_metric(b, "fathom_probe_refused_functions{probe=\"shop\"} 3\n");
	assert_metric(b, "fathom_probe_sites{probe=\"shop\"} 5\n");
	assert_metric(b, "fathom_probe_measured_ratio{probe=\"shop\"} 0.25\n");
	assert_metric(b, "fathom_probe_hits_total{probe=\"shop\"} 20\n");
	assert_metric(b, "fathom_probe_state{probe=\"shop\",state=\"measured\"} 1\n");
	assert_metric(b, "fathom_probe_state{probe=\"shop\",state=\"waiting\"} 0\n");
	assert_metric(b, "fathom_probe_state{probe=\"io\",state=\"waiting\"} 1\n");
	b->probes[0].state = WINDOW_LATENCY_SUSPENDED;
	b->probes[0].suspended_ns = 30 * SECOND;
	seal(b);
	assert_metric(b, "fathom_probe_measured_ratio{probe=\"shop\"} 0\n");
	buffer_init(&out, BIG);
	assert_int_equal(daemon_write_status(&b->f.daemon, &out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_non_null(strstr((char *)out.bytes, "{\"name\": \"shop\", \"state\": \"suspended\", "
						  "\"reason\": \"no such? function\""));
	assert_non_null(strstr((char *)out.bytes, "\"suspended_seconds\": 30.0"));
}

static void states_are_known_before_the_first_window(void **state)
{
	struct bench *b = *state;

	assert_metric(b, "fathom_probe_state{probe=\"shop\",state=\"waiting\"} 1\n");
	begin_shop(b);
	seal(b);
	assert_metric(b, "fathom_probe_state{probe=\"shop\",state=\"measured\"} 1\n");
	change_settings(b, "probes:\n- {name: new, functions: ['x:f']}\n"
			   "- {name: shop, processes: [comm=shop], functions: [f]}\n");
	assert_metric(b, "fathom_probe_state{probe=\"new\",state=\"waiting\"} 1\n");
	assert_metric(b, "fathom_probe_state{probe=\"shop\",state=\"measured\"} 1\n");
	assert_no_metric(b, "probe=\"io\"");
	daemon_probes_refused(b->f.daemon.probes, "no such kernel");
	assert_metric(b, "fathom_probe_state{probe=\"shop\",state=\"refused\"} 1\n");
	change_settings(b, TWO_PROBES);
	seal(b);
	assert_metric(b, "fathom_probe_state{probe=\"shop\",state=\"measured\"} 1\n");
}

/* ---- reload --------------------------------------------------------------------------------- */

static void the_sampler_is_told(void **state)
{
	struct bench *b = *state;
	struct sampler *s = &b->f.sampler;

	change_settings(b, TWO_PROBES);
	assert_int_equal(s->probe_count, 2);
	assert_string_equal(s->probes[0], "shop");
	assert_string_equal(s->selectors[0], "comm=shop,comm=a\\,b");
	assert_string_equal(s->probes[1], "io");
	change_settings(b, "");
	assert_int_equal(s->probe_count, 0);
}

static void what_the_sampler_refuses_changes_nothing(void **state)
{
	struct bench *b = *state;
	autofree char *message = NULL;

	change_settings(b, TWO_PROBES);
	b->f.sampler.probes_error = -EOPNOTSUPP;
	daemon_fixture_write(&b->f, "profiling-cpu-sampling-frequency: 97\n\nprobes:\n"
				    "- {name: new, functions: ['x:f']}\n");
	assert_int_equal(daemon_reload(&b->f.daemon, &message), -EOPNOTSUPP);
	assert_non_null(strstr(message, "fathom.yaml:4: probes: 'new' has a problem"));
	assert_int_equal(b->f.sampler.probe_count, 2);
	assert_int_equal(b->f.daemon.settings.frequency_hz, 19);
}

/* A spool that cannot be used is found after the probes were changed. */
static void a_failed_reload_restores_the_probes(void **state)
{
	struct bench *b = *state;
	char text[256];
	autofree char *message = NULL;

	change_settings(b, TWO_PROBES);
	snprintf(text, sizeof(text), "%s/spool", b->f.directory);
	assert_int_equal(mkdir(text, 0700), 0);
	assert_int_equal(chmod(text, 0777), 0);
	snprintf(text, sizeof(text),
		"probes:\n- {name: new, functions: ['x:f']}\nspool-directory: %s/spool\n"
		"remote-store-type: parca\nremote-store-address: http://127.0.0.1:1\n",
		b->f.directory);
	daemon_fixture_write(&b->f, text);
	assert_int_equal(daemon_reload(&b->f.daemon, &message), -EPERM);
	assert_int_equal(b->f.sampler.probe_sets, 3);
	assert_int_equal(b->f.sampler.probe_count, 2);
	assert_string_equal(b->f.sampler.probes[0], "shop");
}

static void others_do_not_notice_a_reload(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b), g;

	add_calls(b, f, 1, 0, 3, 1000);
	seal(b);
	change_settings(b, "probes:\n- {name: new, functions: ['x:f']}\n"
			   "- {name: shop, processes: [comm=shop, 'comm=a,b'], functions: [f], "
			   "labels: {team: pay}}\n");
	g = add_function(b, add_probe(b, "new", ABI_LATENCY_BY_FUNCTION), "g");
	add_calls(b, f, 1, 0, 4, 1000);
	add_calls(b, g, 1, 0, 1, 1000);
	seal(b);
	assert_metric(b, "_count" SHOP_LABELS "} 7\n");
	assert_metric(b, "probe=\"new\"");
	assert_no_metric(b, "probe=\"io\"");
}

/* Its last calls can be read once more; then its histograms go. */
static void a_removed_probe_has_a_last_window(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	add_calls(b, f, 1, 0, 3, 1000);
	seal(b);
	change_settings(b, "");
	b->probes[0].state = WINDOW_LATENCY_REMOVED;
	add_calls(b, f, 1, 0, 4, 1000);
	seal(b);
	assert_metric(b, "_count" SHOP_LABELS "} 7\n");
	b->latency = (struct window_latency){
		.probes = b->probes, .functions = b->functions, .cells = b->cells
	};
	seal(b);
	seal(b);
	assert_no_metric(b, "probe=\"shop\"");
	assert_int_equal(counter(b, METRIC_PROBE_SERIES_DROPPED), 1);
}

static void other_labels_are_other_histograms(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);

	add_calls(b, f, 1, 0, 3, 1000);
	seal(b);
	change_settings(b, "probes:\n- {name: shop, processes: [comm=shop], functions: [f], "
			   "labels: {team: new}}\n");
	for (int i = 0; i < 3; i++) {
		add_calls(b, f, 1, 0, 1, 1000);
		seal(b);
	}
	assert_metric(b, "team=\"new\"} 3\n");
	assert_no_metric(b, "team=\"pay\"");
}

/* ---- the end of histograms ------------------------------------------------------------------ */

static pid_t ended_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

#define SHOP "probes:\n- {name: shop, processes: [comm=shop], functions: [f]}\n"

/* With SETTINGS, which have SHOP. Returns its function. */
static uint32_t add_ended_and_alive(struct bench *b, const char *settings)
{
	change_settings(b, settings);
	add_process(b, 1, (uint32_t)ended_process(), "ended");
	add_process(b, 2, (uint32_t)getpid(), "alive");
	return add_function(b, add_probe(b, "shop", ABI_LATENCY_BY_FUNCTION), "f");
}

static void only_ended_processes_lose_their_histograms(void **state)
{
	struct bench *b = *state;
	uint32_t f = add_ended_and_alive(b, "probe-series-max-idle: 60s\n" SHOP);

	add_calls(b, f, 1, 0, 1, 1000);
	add_calls(b, f, 2, 0, 1, 1000);
	seal(b);
	for (int i = 0; i < 5; i++)
		seal(b);
	assert_metric(b, "comm=\"ended\"");
	seal(b);
	assert_no_metric(b, "comm=\"ended\"");
	for (int i = 0; i < 20; i++)
		seal(b);
	assert_metric(b, "comm=\"alive\"");
	assert_int_equal(counter(b, METRIC_PROBE_SERIES_DROPPED), 1);
}

static void a_full_set_drops_the_ended_ones_sooner(void **state)
{
	struct bench *b = *state;
	uint32_t f = add_ended_and_alive(b, "probe-series-max: 1\n" SHOP);

	add_calls(b, f, 1, 0, 1, 1000);
	for (int i = 0; i < 40; i++) {
		seal(b);
		add_calls(b, f, 2, 0, 1, 1000);
	}
	assert_no_metric(b, "comm=\"ended\"");
	assert_metric(b, "comm=\"alive\"");
}

/* ---- the recent past ------------------------------------------------------------------------ */

static void the_page_gets_windows(void **state)
{
	struct bench *b = *state;
	uint32_t f = begin_shop(b);
	autocall(buffer_deinit) struct buffer out;

	add_calls(b, f, 1, 0, 3, 1000);
	seal(b);
	seal(b);
	buffer_init(&out, BIG);
	assert_int_equal(daemon_probes_write_history(b->f.daemon.probes, 0, INT64_MAX, &out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_non_null(strstr((char *)out.bytes,
		"{\"probe\":\"shop\",\"function\":\"f\",\"binary\":\"/opt/shop\"}"));
	assert_non_null(strstr((char *)out.bytes, "\"calls\":3,\"total_ns\":3000"));
	assert_non_null(strstr((char *)out.bytes, "\"duration_ms\":10000"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(windows_add_up),
		CASE(processes_with_equal_labels_are_one_histogram),
		CASE(calls_are_told_apart_as_the_probe_says),
		CASE(foreign_names_cannot_break_the_text),
		CASE(rules_may_change_labels_but_not_ours),
		CASE(what_a_rule_drops_is_counted),
		CASE(histograms_beyond_the_limit_are_counted),
		CASE(losses_are_counted_by_reason),
		CASE(states_are_shown),
		CASE(states_are_known_before_the_first_window),
		CASE(the_sampler_is_told),
		CASE(what_the_sampler_refuses_changes_nothing),
		CASE(a_failed_reload_restores_the_probes),
		CASE(others_do_not_notice_a_reload),
		CASE(a_removed_probe_has_a_last_window),
		CASE(other_labels_are_other_histograms),
		CASE(only_ended_processes_lose_their_histograms),
		CASE(a_full_set_drops_the_ended_ones_sooner),
		CASE(the_page_gets_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
