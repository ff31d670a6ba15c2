/* SPDX-License-Identifier: Apache-2.0 */
/* `probes:` of the settings file: what is accepted, and what is refused with line, key and reason.
 */
#include "tests/unit/config_fixture.h"

#include "base/buffer.h"
#include "base/cleanup.h"

enum { BIG = 1 << 20 };

static const struct config_probes *load_probes(struct fixture *f, const char *text)
{
	if (load(f, text))
		fail_msg("%s", f->message);
	return &f->config.lists->probes;
}

/* The message begins with the file and LINE, and has WORD; no probe was taken over. */
static void refused(struct fixture *f, const char *text, int line, const char *word)
{
	load_refused(f, text, line, word);
	assert_null(f->config.lists);
}

/* ---- accepted ------------------------------------------------------------------------------- */

static void everything_is_read_and_copied(void **state)
{
	struct fixture *f = *state;
	const struct config_probe *p;
	struct config copy;

	(void)load_probes(f, "probes:\n"
			     "  - name: checkout\n"
			     "    processes: [executable=shop, 'comm=a,b']\n"
			     "    functions: ['main.(*Cart).*', 'libc:malloc', 'f(int, char)']\n"
			     "    exclude: ['main.init*']\n"
			     "    exclude-vendor: true\n"
			     "    by: pid\n"
			     "    labels:\n"
			     "      team: payments\n"
			     "      tier: 'gold \"1\"'\n"
			     "  - name: writes\n"
			     "    functions: vfs_write\n"
			     "    kernel: true\n"
			     "    by: cgroup\n");
	assert_int_equal(config_copy(&f->config, &copy), 0);
	assert_int_equal(copy.lists->probes.count, 2);
	p = &copy.lists->probes.items[0];
	assert_string_equal(p->name, "checkout");
	assert_int_equal(p->line, 2);
	assert_int_equal(p->processes.count, 2);
	assert_string_equal(p->processes.items[1], "comm=a,b");
	assert_int_equal(p->functions.count, 3);
	assert_string_equal(p->functions.items[2], "f(int, char)");
	assert_string_equal(p->unwanted.items[0], "main.init*");
	assert_true(p->exclude_vendor);
	assert_false(p->kernel);
	assert_int_equal(p->by, ABI_LATENCY_BY_PROCESS);
	assert_int_equal(p->label_names.count, 2);
	assert_string_equal(p->label_names.items[1], "tier");
	assert_string_equal(p->label_values.items[1], "gold \"1\"");
	p++;
	assert_true(p->kernel);
	assert_int_equal(p->by, ABI_LATENCY_BY_CGROUP);
	assert_int_equal(p->functions.count, 1);
	assert_int_equal(p->label_names.count, 0);
	config_deinit(&copy);
}

static void lists_may_be_texts_and_labels_may_be_a_list(void **state)
{
	struct fixture *f = *state;
	const struct config_probe *p =
		load_probes(f, "probes:\n- name: a\n  processes: comm=x,pid=1\n"
			       "  functions: 'f(int, char)'\n  labels: [team=a, env=b=c]\n")
			->items;

	assert_int_equal(p->processes.count, 2);
	assert_string_equal(p->processes.items[1], "pid=1");
	assert_int_equal(p->functions.count, 1);
	assert_string_equal(p->functions.items[0], "f(int, char)");
	assert_string_equal(p->label_names.items[1], "env");
	assert_string_equal(p->label_values.items[1], "b=c");
}

static void lists_may_be_empty_but_for_functions(void **state)
{
	struct fixture *f = *state;
	const struct config_probe *p = load_probes(f, "probes:\n- name: a\n  processes: []\n"
						      "  functions: ['/bin/x:main']\n"
						      "  exclude: []\n  labels: {}\n")
					       ->items;

	assert_int_equal(p->processes.count, 0);
	assert_int_equal(p->unwanted.count, 0);
	assert_int_equal(p->label_names.count, 0);
	teardown(state);
	setup(state);
	f = *state;
	assert_int_equal(load(f, "probes: []\n"), 0);
	assert_null(f->config.lists);
}

static void probes_are_compared_by_content(void **state)
{
	static const char *const others[] = { "name: b\n  functions: ['x:f']",
		"name: a\n  functions: ['x:g']", "name: a\n  functions: ['x:f', 'x:f']",
		"name: a\n  functions: ['x:f']\n  exclude: [g]",
		"name: a\n  functions: ['x:f']\n  processes: [comm=x]",
		"name: a\n  functions: ['x:f']\n  by: goid",
		"name: a\n  functions: ['x:f']\n  kernel: true",
		"name: a\n  functions: ['x:f']\n  exclude-vendor: true",
		"name: a\n  functions: ['x:f']\n  labels: {x: y}" };
	struct fixture *f = *state;
	const struct config_probe *first =
		load_probes(f, "probes:\n- {name: a, functions: 'x:f'}\n")->items;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		const struct config_probe *other;
		char text[200];
		void *another;

		assert_int_equal(setup(&another), 0);
		snprintf(text, sizeof(text), "probes:\n- %s\n", others[i]);
		other = load_probes(another, text)->items;
		assert_false(config_probe_is_same(first, other));
		assert_true(config_probe_is_same(other, other));
		teardown(&another);
	}
}

/* ---- refused -------------------------------------------------------------------------------- */

static void names_are_checked(void **state)
{
	struct fixture *f = *state;

	refused(f, "probes:\n- functions: ['x:f']\n", 2, "a probe needs a name");
	refused(f, "probes:\n- name: ''\n", 2, "name");
	refused(f, "probes:\n- name: \"a\\nb\"\n", 2, "control characters");
	refused(f, "probes:\n- name: \"a\\e[31m\"\n", 2, "control characters");
	refused(f,
		"probes:\n- name: "
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
		2, "1 to 64 bytes");
	refused(f,
		"probes:\n- {name: a, functions: 'x:f'}\n- {name: b, functions: 'x:f'}\n"
		"- functions: 'x:f'\n  name: a\n",
		5, "'a' is the probe in line 2 already");
}

static void unknown_keys_are_named_with_their_line(void **state)
{
	struct fixture *f = *state;

	refused(f, "probes:\n- name: a\n  function: f\n", 3, "no such setting: function");
	refused(f, "probes:\n- name: a\n  remote-stores: []\n", 3,
		"no such setting: remote-stores");
	refused(f, "probes:\n- name: a\n  probes: []\n", 3, "no such setting: probes");
	refused(f, "probes:\n- name: a\n  name: a\n", 3, "given twice: name");
	refused(f, "probes:\n- a\n", 2, "probes");
	refused(f, "probes: a\n", 1, "probes");
	refused(f, "probes: ~\n", 1, "probes");
	refused(f, "probes:\n  name: a\n", 2, "probes");
}

static void values_are_checked(void **state)
{
	struct fixture *f = *state;

	refused(f, "probes:\n- name: a\n  by: function\n", 3, "by: must be goid, pid or cgroup");
	refused(f, "probes:\n- name: a\n  kernel: perhaps\n", 3, "kernel: must be true or false");
	refused(f, "probes:\n- name: a\n  exclude-vendor: 2\n", 3, "exclude-vendor: must be");
	refused(f, "probes:\n- name: a\n  kernel: [true]\n", 3, "not a list, for kernel");
	refused(f, "probes:\n- name: a\n  by: ~\n", 3, "null is not a value");
	refused(f, "probes:\n- name: a\n  functions: {x: f}\n", 3, "functions");
	refused(f, "probes:\n- name: a\n  functions: [[f]]\n", 3, "functions");
	refused(f, "probes:\n- name: a\n  functions:\n  - f\n  - 'x:'\n", 5,
		"functions: 'x:' names no function after the colon");
	refused(f, "probes:\n- name: a\n  functions: ['']\n", 3, "'' names no function");
	refused(f, "probes:\n- name: a\n  exclude: [':f']\n", 3, "exclude: ':f' names no file");
	refused(f, "probes:\n- name: a\n  processes:\n  - comm=x\n  - user=x\n", 5,
		"processes: must be KEY=GLOB");
	refused(f, "probes:\n- name: a\n  processes: ['']\n", 3, "processes: must be KEY=GLOB");
	refused(f, "probes:\n- name: a\n  processes: comm=x,pid\n", 3, "processes: must be");
}

static void a_probe_must_say_what_it_measures(void **state)
{
	struct fixture *f = *state;

	refused(f, "probes:\n- {name: a, functions: 'x:f'}\n- name: b\n", 3, "'b' needs functions");
	refused(f, "probes:\n- name: b\n  functions: []\n", 2, "'b' needs functions");
	refused(f, "probes:\n- name: b\n  functions: ['x:f', 'main.*']\n", 2,
		"'main.*' needs processes, or a file");
	refused(f, "probes:\n- {name: b, functions: f, kernel: true, exclude-vendor: true}\n", 2,
		"exclude-vendor");
	refused(f, "probes:\n- {name: b, functions: f, kernel: true, by: goid}\n", 2, "goroutines");
}

static void labels_are_checked(void **state)
{
	static const char *const reserved[] = { "function", "binary", "probe", "comm", "container",
		"executable", "le", "quantile", "goid", "pid", "cgroup" };
	struct fixture *f = *state;
	char text[120];

	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
		snprintf(text, sizeof(text), "probes:\n- name: a\n  labels:\n    x: y\n    %s: x\n",
			reserved[i]);
		refused(f, text, 5, "anyhow");
	}
	refused(f, "probes:\n- name: a\n  labels: {__x: y}\n", 3, "'__x' is not the name of a");
	refused(f, "probes:\n- name: a\n  labels: {1x: y}\n", 3, "'1x' is not the name of a");
	refused(f, "probes:\n- name: a\n  labels: {a-b: y}\n", 3, "'a-b' is not the name of a");
	refused(f, "probes:\n- name: a\n  labels: {'': y}\n", 3, "'' is not the name of a");
	refused(f, "probes:\n- name: a\n  labels: {x: ''}\n", 3, "'x' needs a text");
	refused(f, "probes:\n- name: a\n  labels: {x: \"\\x01\"}\n", 3, "'x' needs a text");
	refused(f, "probes:\n- name: a\n  labels: {x: ~}\n", 3, "null is not a value");
	refused(f, "probes:\n- name: a\n  labels: {x: y, x: y}\n", 3, "given twice: x");
	refused(f, "probes:\n- name: a\n  labels: {x: [y]}\n", 3, "x");
	refused(f, "probes:\n- name: a\n  labels: {x: {y: z}}\n", 3, "x");
	refused(f, "probes:\n- name: a\n  labels: [x]\n", 3, "NAME=VALUE");
	refused(f, "probes:\n- name: a\n  labels: [x=1, x=2]\n", 3, "'x' is given twice");
	/* What follows the labels belongs to the probe again. */
	refused(f, "probes:\n- name: a\n  labels: {x: y}\n  zz: 1\n", 4, "no such setting: zz");
}

static void append_probes(struct buffer *text, size_t count)
{
	text->size = 0;
	buffer_string(text, "probes:\n");
	for (size_t i = 0; i < count; i++)
		buffer_printf(text, "- {name: p%zu, functions: 'x:f'}\n", i);
	buffer_append(text, "", 1);
	assert_int_equal(text->error, 0);
}

static void there_are_limits(void **state)
{
	struct fixture *f = *state;
	autocall(buffer_deinit) struct buffer text;

	buffer_init(&text, BIG);
	append_probes(&text, CONFIG_PROBES_MAX + 1);
	refused(f, (char *)text.bytes, CONFIG_PROBES_MAX + 2, "too many entries in probes");
	append_probes(&text, CONFIG_PROBES_MAX);
	assert_int_equal(load_probes(f, (char *)text.bytes)->count, CONFIG_PROBES_MAX);
	teardown(state);
	setup(state);
	f = *state;
	text.size = 0;
	buffer_string(&text, "probes:\n- name: a\n  functions:\n");
	for (size_t i = 0; i < 1001; i++)
		buffer_printf(&text, "  - f%zu\n", i);
	buffer_append(&text, "", 1);
	refused(f, (char *)text.bytes, 1004, "has more than 1000 patterns");
	text.size = 0;
	buffer_string(&text, "probes:\n- name: a\n  labels:\n");
	for (size_t i = 0; i < CONFIG_PROBE_LABELS_MAX + 1; i++)
		buffer_printf(&text, "    l%zu: x\n", i);
	buffer_append(&text, "", 1);
	refused(f, (char *)text.bytes, 4 + CONFIG_PROBE_LABELS_MAX, "has more than 16 labels");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(everything_is_read_and_copied),
		CASE(lists_may_be_texts_and_labels_may_be_a_list),
		CASE(lists_may_be_empty_but_for_functions),
		CASE(probes_are_compared_by_content),
		CASE(names_are_checked),
		CASE(unknown_keys_are_named_with_their_line),
		CASE(values_are_checked),
		CASE(a_probe_must_say_what_it_measures),
		CASE(labels_are_checked),
		CASE(there_are_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
