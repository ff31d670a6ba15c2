/* SPDX-License-Identifier: Apache-2.0 */
/* The settings file: what is accepted, what is rejected, and how the message gives the position. */
#include "tests/unit/config_fixture.h"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/items.h"

enum { BIG = 2 << 20 };

/* Rejected with LINE and WORD in the message; no setting changes. */
static void refused(struct fixture *f, const char *text, int line, const char *word)
{
	load_refused(f, text, line, word);
	assert_true(config_number(&f->config, SETTING_sampling_frequency) == 19);
}

static void settings_of_all_kinds(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, "# a comment\n"
				 "---\n"
				 "profiling-cpu-sampling-frequency: 97\n"
				 "profiling-duration: 1m\n"
				 "local-store-max-bytes: '2G'\n"
				 "http-address: \"unix:/run/fathom.sock\"\n"
				 "node:   edge-7   # here\n"),
		0);
	assert_null(f->message);
	assert_true(config_number(&f->config, SETTING_sampling_frequency) == 97);
	assert_true(config_number(&f->config, SETTING_profiling_duration) == 60000000000);
	assert_true(config_number(&f->config, SETTING_local_store_max_bytes) == 2ull << 30);
	assert_string_equal(config_text(&f->config, SETTING_http_address), "unix:/run/fathom.sock");
	assert_string_equal(config_text(&f->config, SETTING_node), "edge-7");
	assert_int_equal(f->config.values[SETTING_node].line, 7);
	assert_int_equal(f->config.values[SETTING_cpu_budget].line, 0);
}

/* libyaml reports the same error for both. */
static void a_read_error_is_distinguished_from_bad_yaml(void **state)
{
	enum { TOO_LARGE = (1 << 20) + 1 };
	struct fixture *f = *state;
	char *text = malloc(TOO_LARGE);

	assert_non_null(text);
	memset(text, '#', TOO_LARGE);
	assert_int_equal(load_bytes(f, text, TOO_LARGE), -EINVAL);
	free(text);
	assert_non_null(strstr(f->message, ": is larger than 1 MiB"));
	free(f->message);
	assert_int_equal(config_load(&f->config, "/tmp", &f->message), -EINVAL);
	assert_string_equal(f->message, "/tmp: Is a directory");
}

static void remote_stores_and_relabelling(void **state)
{
	struct fixture *f = *state;
	struct config_lists *lists;
	struct config copy;

	assert_int_equal(load(f, "remote-stores:\n"
				 "  - type: parca\n"
				 "    address: http://127.0.0.1:7070\n"
				 "  - type: pyroscope\n"
				 "    address: https://pyroscope.example\n"
				 "    headers: [X-A=1, X-B=2]\n"
				 "    insecure-skip-verify: true\n"
				 "relabel_configs:\n"
				 "  - source_labels: [comm, node]\n"
				 "    separator: '-'\n"
				 "    regex: ''\n"
				 "    action: Keep\n"
				 "  - action: hashmod\n"
				 "    source_labels: [comm]\n"
				 "    target_label: shard\n"
				 "    modulus: 18446744073709551615\n"
				 "  - regex: pod_(.+)\n"
				 "    replacement: $1\n"
				 "    action: labelmap\n"
				 "node: n\n"),
		0);
	assert_int_equal(config_copy(&f->config, &copy), 0);
	lists = copy.lists;
	assert_int_equal(lists->store_count, 2);
	assert_string_equal(config_text(&lists->stores[0], SETTING_remote_store_type), "parca");
	assert_null(config_text(&lists->stores[0], SETTING_remote_store_headers));
	assert_string_equal(
		config_text(&lists->stores[1], SETTING_remote_store_headers), "X-A=1,X-B=2");
	assert_true(config_flag(&lists->stores[1], SETTING_remote_store_insecure_skip_verify));
	assert_null(config_text(&copy, SETTING_remote_store_type));
	assert_int_equal(lists->rule_count, 3);
	assert_int_equal(lists->rules[0].action, RELABEL_KEEP);
	assert_int_equal(lists->rules[0].source_label_count, 2);
	assert_string_equal(lists->rules[0].source_labels[1], "node");
	assert_string_equal(lists->rules[0].separator, "-");
	assert_string_equal(lists->rules[0].regex, "");
	assert_null(lists->rules[0].replacement);
	assert_true(lists->rules[1].modulus == UINT64_MAX);
	assert_string_equal(lists->rules[2].replacement, "$1");
	assert_string_equal(config_text(&copy, SETTING_node), "n");
	config_deinit(&copy);
}

static void bad_lists_are_refused_with_their_line(void **state)
{
	struct fixture *f = *state;

	refused(f, "remote-stores: parca\n", 1, "remote-stores");
	refused(f, "remote-stores:\n- type: parca\n- parca\n", 3, "remote-stores");
	refused(f, "remote-stores:\n- type: parca\n  colour: red\n", 3, "colour");
	refused(f, "remote-stores:\n- type: parca\n  type: file\n", 3, "type");
	refused(f, "remote-stores:\n- insecure: perhaps\n", 2, "insecure");
	refused(f, "remote-stores:\n- remote-stores:\n  - type: parca\n", 2, "remote-stores");
	refused(f, "relabel_configs:\n- {target_label: a}\n- action: remove\n", 3, "action");
	refused(f, "relabel_configs:\n- target_label: a\n  regex: '('\n", 2, "regex");
	refused(f, "relabel_configs:\n- {target_label: a}\n- {regex: x}\n", 3, "target_label");
	refused(f, "relabel_configs:\n- {target_label: a, action: hashmod, modulus: -1}\n", 2,
		"modulus");
	refused(f, "relabel_configs:\n- {target_label: a, target_label: b}\n", 2, "target_label");
	refused(f, "relabel_configs: [[a]]\n", 1, "relabel_configs");
	assert_null(f->config.lists);
}

static void no_settings_at_all(void **state)
{
	static const char *const empty[] = { "", "\n\n", "# nothing\n", "---\n", "---\n...\n",
		"{}\n", "\xef\xbb\xbf" };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(empty); i++)
		assert_int_equal(load(f, empty[i]), 0);
	assert_true(config_number(&f->config, SETTING_sampling_frequency) == 19);
}

static void an_empty_text_means_nowhere(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, "http-address:\nlocal-store-directory: ''\n"), 0);
	assert_string_equal(config_text(&f->config, SETTING_http_address), "");
	assert_string_equal(config_text(&f->config, SETTING_local_store_directory), "");
}

static void lists_have_two_forms(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(load(f, "remote-store-headers:\n  - X-A=1\n  - X-B=2\n"), 0);
	assert_string_equal(config_text(&f->config, SETTING_remote_store_headers), "X-A=1,X-B=2");
	teardown(state);
	setup(state);
	f = *state;
	assert_int_equal(load(f, "remote-store-headers: X-A=1,X-B=2\n"), 0);
	assert_string_equal(config_text(&f->config, SETTING_remote_store_headers), "X-A=1,X-B=2");
}

static void an_empty_list_replaces_the_default(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(
		config_text(&f->config, SETTING_debuginfo_directories), "/usr/lib/debug");
	assert_int_equal(load(f, "debuginfo-directories: []\nrelabel_configs: []\n"
				 "remote-stores:\n- type: parca\n  headers: []\n"),
		0);
	assert_string_equal(config_text(&f->config, SETTING_debuginfo_directories), "");
	assert_int_equal(load(f, "relabel_configs:\n- {source_labels: [], target_label: a}\n"), 0);
	assert_int_equal(f->config.lists->rules[0].source_label_count, 0);
}

/* The value does not matter, nor does its absence. */
static void a_misspelt_name_is_reported_with_any_value(void **state)
{
	static const char *const values[] = { "[]", "~", "null", "''", "", "{}", "[a]", "x" };
	struct fixture *f = *state;
	char text[120];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		snprintf(text, sizeof(text), "node: n\nnodee: %s\n", values[i]);
		refused(f, text, 2, "no such setting: nodee");
		snprintf(text, sizeof(text), "remote-stores:\n- type: parca\n  insecuree: %s\n",
			values[i]);
		refused(f, text, 3, "no such setting: insecuree");
		snprintf(text, sizeof(text), "relabel_configs:\n- target_label: a\n  regexx: %s\n",
			values[i]);
		refused(f, text, 3, "no such setting: regexx");
	}
}

static void a_list_is_not_a_single_value(void **state)
{
	struct fixture *f = *state;

	refused(f, "http-address: []\n", 1, "http-address");
	refused(f, "node: [a]\n", 1, "not a list, for node");
	refused(f, "relabel_configs:\n- {target_label: a, regex: [x]}\n", 2, "regex");
	refused(f, "remote-stores:\n- {type: [parca]}\n", 2, "type");
}

static void a_null_is_not_a_value(void **state)
{
	struct fixture *f = *state;

	refused(f, "node: ~\n", 1, "node");
	refused(f, "cpu-budget: 1\nlocal-store-directory: null\n", 2, "local-store-directory");
	refused(f, "include: [comm=a, Null]\n", 1, "include");
	refused(f, "remote-stores: ~\n", 1, "remote-stores");
	refused(f, "relabel_configs:\n- {target_label: a, regex: NULL}\n", 2, "regex");
	assert_int_equal(load(f, "node: 'null'\n"), 0);
	assert_string_equal(config_text(&f->config, SETTING_node), "null");
}

/* An item of a sequence is one item; in a plain text, commas separate items. */
static void a_comma_in_an_item_belongs_to_it(void **state)
{
	struct fixture *f = *state;
	autofree char *include = NULL;
	char *next;

	assert_int_equal(load(f, "include: ['comm=a,b', comm=c]\n"
				 "exclude: comm=d,comm=e\n"
				 "metadata-external-labels: ['team=x,y;z', zone=1]\n"
				 "remote-store-headers: ['X-A=1\\,2', 'X-B=3,4;5']\n"),
		0);
	include = next = strdup(config_text(&f->config, SETTING_include));
	assert_string_equal(items_next(&next, ","), "comm=a,b");
	assert_string_equal(items_next(&next, ","), "comm=c");
	assert_null(items_next(&next, ","));
	assert_string_equal(config_text(&f->config, SETTING_exclude), "comm=d,comm=e");
	assert_string_equal(
		config_text(&f->config, SETTING_external_labels), "team=x\\,y\\;z,zone=1");
	assert_string_equal(
		config_text(&f->config, SETTING_remote_store_headers), "X-A=1\\,2,X-B=3\\,4;5");
	refused(f, "include: ['comm=a\\', comm=b]\n", 1, "include");
}

static void unknown_settings_are_named_with_their_line(void **state)
{
	struct fixture *f = *state;

	refused(f, "profiling-cpu-sampling-frequency: 97\nfrequenzy: 97\n", 2, "frequenzy");
	/* A setting of another command, and two that make no sense in a file. */
	refused(f, "output-style: JSON\n", 1, "output-style");
	refused(f, "\nconfig-path: /etc/x\n", 2, "config-path");
	refused(f, "help: true\n", 1, "help");
	refused(f, "Node: x\n", 1, "Node");
	refused(f, "--node: x\n", 1, "--node");
}

static void invalid_values(void **state)
{
	struct fixture *f = *state;

	refused(f, "profiling-cpu-sampling-frequency: often\n", 1, "sampling-frequency");
	refused(f, "profiling-cpu-sampling-frequency: -1\n", 1, "sampling-frequency");
	refused(f, "node: x\nprofiling-duration: 10 minutes\n", 2, "profiling-duration");
	refused(f, "memory-limit: 64Q\n", 1, "memory-limit");
	refused(f, "memory-limit:\n", 1, "memory-limit");
}

static void a_setting_is_given_once(void **state)
{
	struct fixture *f = *state;

	refused(f, "node: a\ncpu-budget: 1\nnode: b\n", 3, "node");
	refused(f, "node: a\n---\nnode: b\n", 3, "node");
	refused(f, "node: [a, b]\n", 1, "node");
}

static void duplicate_names_in_a_mapping_are_refused(void **state)
{
	struct fixture *f = *state;

	refused(f, "include: comm=a\ninclude: comm=b\n", 2, "given twice: include");
	refused(f, "include: [comm=a]\nnode: x\ninclude: []\n", 3, "given twice: include");
	refused(f, "remote-stores: []\nremote-stores: []\n", 2, "given twice: remote-stores");
	refused(f, "relabel_configs: []\n---\nrelabel_configs: []\n", 3, "relabel_configs");
	refused(f, "relabel_configs:\n- action: keep\n  action: drop\n", 3, "given twice: action");
	refused(f, "relabel_configs:\n- modulus: 1\n  modulus: 1\n", 3, "given twice: modulus");
	refused(f, "relabel_configs:\n- source_labels: []\n  source_labels: [a]\n", 3,
		"given twice: source_labels");
	refused(f, "remote-stores:\n- headers: [A=1]\n  headers: [B=1]\n", 3,
		"given twice: headers");
	/* Each entry has its own names. */
	assert_int_equal(
		load(f, "relabel_configs:\n- {target_label: a}\n- {target_label: a}\n"), 0);
}

static void structures_that_are_not_settings(void **state)
{
	struct fixture *f = *state;

	refused(f, "just text\n", 1, "setting: value");
	refused(f, "- a\n- b\n", 1, "setting: value");
	refused(f, "node:\n  name: x\n", 2, "node");
	refused(f, "node: &a x\nhttp-address: *a\n", 2, "http-address");
	refused(f, "[a, b]: c\n", 1, "name");
	refused(f, "{a: b}: c\n", 1, "name");
	refused(f, "remote-store-headers:\n  - a: b\n", 2, "remote-store-headers");
	refused(f, "remote-store-headers:\n  - [a]\n", 2, "remote-store-headers");
}

static void invalid_yaml(void **state)
{
	static const char *const cases[] = { "node: \"never closed\n", "node: [a, b\n",
		"\tnode: x\n", "node: x: y\n", "node: x\n  cpu-budget: 1\n", "node: \x01\n",
		"node: \xff\n", "node: \xc3(\n", "%YAML 9.9\n---\nnode: x\n", "node: !<tag x\n",
		"*nowhere\n" };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(load(f, cases[i]), -EINVAL);
		assert_non_null(f->message);
		assert_int_equal(strncmp(f->message, f->path, strlen(f->path)), 0);
		/* libyaml reports the line where it stopped. */
		assert_true(strtol(f->message + strlen(f->path) + 1, NULL, 10) >= 1);
	}
	assert_null(config_text(&f->config, SETTING_node));
}

static void zero_bytes(void **state)
{
	static const char bytes[] = "node: a\0b\n";
	struct fixture *f = *state;

	assert_int_equal(load_bytes(f, bytes, sizeof(bytes) - 1), -EINVAL);
	assert_null(config_text(&f->config, SETTING_node));
}

static void depth_is_bounded(void **state)
{
	enum { DEEP = 50000 };
	struct fixture *f = *state;
	autofree char *text = malloc(DEEP + 16);
	int used;

	assert_non_null(text);
	used = snprintf(text, 16, "node: ");
	memset(text + used, '[', DEEP);
	assert_int_equal(load_bytes(f, text, (size_t)used + DEEP), -EINVAL);
}

static void size_is_bounded(void **state)
{
	struct fixture *f = *state;
	autofree char *text = malloc(BIG);

	assert_non_null(text);
	memset(text, '\n', BIG);
	assert_int_equal(load_bytes(f, text, BIG), -EINVAL);
	memset(text, 'x', BIG);
	memcpy(text, "node: ", 6);
	assert_int_equal(load_bytes(f, text, BIG), -EINVAL);
	assert_null(config_text(&f->config, SETTING_node));
}

static void items_are_bounded(void **state)
{
	static const char head[] = "remote-store-headers: [", item[] = "a=1,";
	enum { ITEMS = 5000 };
	struct fixture *f = *state;
	struct buffer text;

	buffer_init(&text, BIG);
	buffer_string(&text, head);
	for (int i = 0; i < ITEMS; i++)
		buffer_string(&text, item);
	assert_int_equal(buffer_string(&text, "]\n"), 0);
	assert_int_equal(load_bytes(f, text.bytes, text.size), -EINVAL);
	assert_non_null(strstr(f->message, "too many"));
	buffer_deinit(&text);
}

static void files_that_cannot_be_read(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(config_load(&f->config, "/nowhere/fathom.yaml", &f->message), -ENOENT);
	assert_string_equal(f->message, "/nowhere/fathom.yaml: No such file or directory");
	free(f->message);
	assert_int_equal(config_load(&f->config, "/tmp", &f->message), -EINVAL);
	assert_non_null(f->message);
}

/* Writes one piece after another, each once the previous one has been read. */
static void write_pieces(int fd)
{
	static const char *const pieces[] = { "node: ", "a\ncpu-bud", "get: 9\n" };

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		int unread = 1;

		if (write(fd, pieces[i], strlen(pieces[i])) < 0)
			_exit(1);
		while (!ioctl(fd, FIONREAD, &unread) && unread)
			sched_yield();
	}
	_exit(0);
}

/* Like a shell's <(…). */
static void a_pipe_is_read_to_its_end(void **state)
{
	struct fixture *f = *state;
	char path[32];
	int ends[2], status = 1;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	if (fork() == 0)
		write_pieces(ends[1]);
	close(ends[1]);
	assert_int_equal(config_load(&f->config, path, &f->message), 0);
	assert_string_equal(config_text(&f->config, SETTING_node), "a");
	assert_string_equal(config_text(&f->config, SETTING_cpu_budget), "9");
	close(ends[0]);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

static void has_no_end(struct fixture *f, const char *path)
{
	char said[96];

	snprintf(said, sizeof(said), "%s: did not end within 5 s", path);
	assert_int_equal(config_load(&f->config, path, &f->message), -EINVAL);
	assert_string_equal(f->message, said);
	assert_null(config_text(&f->config, SETTING_node));
}

/* A FIFO without a writer, and a pipe whose writer begins and goes silent. */
static void endless_files_are_not_awaited_forever(void **state)
{
	struct fixture *f = *state;
	int ends[2], status = 1;
	char path[32];
	pid_t child;

	unlink(f->path);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "node: x\n", 8), 8);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	child = fork();
	has_no_end(f, child ? f->path : path);
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
}

static void stronger_sources_override_the_file(void **state)
{
	struct fixture *f = *state;
	char *argv[] = { (char *)"agent", (char *)"--node=line", NULL };

	config_deinit(&f->config);
	setenv("FATHOM_CPU_BUDGET", "3", 1);
	assert_int_equal(config_parse(&f->config, IN_AGENT, 2, argv), 0);
	unsetenv("FATHOM_CPU_BUDGET");
	assert_int_equal(load(f, "node: file\ncpu-budget: 9\nmemory-limit: 64M\n"), 0);
	assert_string_equal(config_text(&f->config, SETTING_node), "line");
	assert_string_equal(config_text(&f->config, SETTING_cpu_budget), "3");
	assert_true(config_number(&f->config, SETTING_memory_limit) == 64 << 20);
	/* A setting that is overridden must still be valid. */
	assert_int_equal(load(f, "node: file\nprofiling-duration: never\n"), -EINVAL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(settings_of_all_kinds),
		CASE(a_read_error_is_distinguished_from_bad_yaml),
		CASE(remote_stores_and_relabelling),
		CASE(bad_lists_are_refused_with_their_line),
		CASE(no_settings_at_all),
		CASE(an_empty_text_means_nowhere),
		CASE(lists_have_two_forms),
		CASE(an_empty_list_replaces_the_default),
		CASE(a_misspelt_name_is_reported_with_any_value),
		CASE(a_list_is_not_a_single_value),
		CASE(a_null_is_not_a_value),
		CASE(a_comma_in_an_item_belongs_to_it),
		CASE(unknown_settings_are_named_with_their_line),
		CASE(invalid_values),
		CASE(a_setting_is_given_once),
		CASE(duplicate_names_in_a_mapping_are_refused),
		CASE(structures_that_are_not_settings),
		CASE(invalid_yaml),
		CASE(zero_bytes),
		CASE(depth_is_bounded),
		CASE(size_is_bounded),
		CASE(items_are_bounded),
		CASE(files_that_cannot_be_read),
		CASE(a_pipe_is_read_to_its_end),
		CASE(endless_files_are_not_awaited_forever),
		CASE(stronger_sources_override_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
