/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's export settings: several remote stores and their names, series, what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/daemon/export_settings.h"
#include "agent/sampler/profile/sample_labels.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { TEXT_BYTES = 8 << 10 };

struct bench {
	char path[64];
	struct config config;
	struct export_settings settings;
	char *message;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	int fd;

	snprintf(b->path, sizeof(b->path), "/tmp/fathom-settings-XXXXXX");
	fd = mkstemp(b->path);
	assert_true(fd >= 0);
	close(fd);
	*state = b;
	return 0;
}

static void forget(struct bench *b)
{
	export_settings_deinit(&b->settings);
	config_deinit(&b->config);
	free(take(b->message));
}

static int teardown(void **state)
{
	struct bench *b = *state;

	forget(b);
	unlink(b->path);
	free(b);
	return 0;
}

/* Reads the settings file TEXT. */
static void load(struct bench *b, const char *text)
{
	char *argv[] = { (char *)"agent", NULL };

	forget(b);
	assert_int_equal(io_replace_file(AT_FDCWD, b->path, text, strlen(text), 0600), 0);
	assert_int_equal(config_parse(&b->config, IN_AGENT, 1, argv), 0);
	if (config_load(&b->config, b->path, &b->message))
		fail_msg("%s", b->message);
}

static int read_settings(struct bench *b, const char *text)
{
	load(b, text);
	return export_settings_read(&b->config, &b->settings, &b->message);
}

static void assert_taken(struct bench *b, const char *text)
{
	if (read_settings(b, text))
		fail_msg("%s", b->message);
}

/* Rejected with a message that names line and setting (WHERE) and the reason (WHY). */
static void assert_refused(struct bench *b, const char *text, const char *where, const char *why)
{
	assert_int_equal(read_settings(b, text), -EINVAL);
	assert_non_null(b->message);
	if (!strstr(b->message, where) || !strstr(b->message, why))
		fail_msg("no %s and %s in %s", where, why, b->message);
	assert_int_equal(b->settings.store_count, 0);
}

/* ---- remote stores -------------------------------------------------------------------------- */

static void without_a_store_nothing_is_exported(void **state)
{
	struct bench *b = *state;

	assert_taken(b, "");
	assert_int_equal(b->settings.store_count, 0);
	assert_int_equal(b->settings.external.count, 0);
	assert_null(b->settings.relabel);
	assert_false(b->settings.debuginfo_upload);
	/* The settings of the spool do not matter then. */
	assert_taken(b, "spool-max-bytes: 1\n");
}

static void stores_are_named_after_their_types(void **state)
{
	struct bench *b = *state;

	assert_taken(b, "remote-store-type: file\nremote-store-address: /0\n"
			"remote-stores:\n"
			"  - type: parca\n    address: http://a:1\n"
			"  - type: file\n    address: /1\n"
			"  - type: file\n    address: /2\n    name: mine\n"
			"  - type: file\n    address: /3\n");
	assert_int_equal(b->settings.store_count, 5);
	assert_string_equal(b->settings.names[0], "file");
	assert_string_equal(b->settings.names[1], "parca");
	assert_string_equal(b->settings.names[2], "file-2");
	assert_string_equal(b->settings.names[3], "mine");
	assert_string_equal(b->settings.place_names[3], "file-3");
	assert_string_equal(b->settings.names[4], "file-4");
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(b->settings.stores[i].options.name, b->settings.names[i]);
}

#define NAMED(name) \
	"remote-store-type: file\nremote-store-address: /x\nremote-store-name: " name "\n"

static void names_have_only_safe_characters(void **state)
{
	struct bench *b = *state;

	assert_taken(b, NAMED("Az09_.-"));
	assert_string_equal(b->settings.names[0], "Az09_.-");
	assert_taken(b, NAMED("a234567890123456789012345678901"));
	assert_string_equal(b->settings.names[0], "a234567890123456789012345678901");
	assert_refused(b, NAMED("a2345678901234567890123456789012"), "remote-store-name",
		"up to 31 letters, digits, _, . and -");
	assert_refused(b, NAMED("two words"), "remote-store-name", "two words");
	assert_refused(b, NAMED("x{y"), ":3: remote-store-name", "x{y");
}

static void two_stores_have_two_names(void **state)
{
	struct bench *b = *state;

	assert_refused(b,
		"remote-stores:\n"
		"  - type: file\n    address: /1\n    name: file-2\n"
		"  - type: file\n    address: /2\n",
		"name", "file-2 is the name of two remote stores");
}

static void a_store_has_an_address(void **state)
{
	assert_refused(*state, "remote-stores:\n  - type: file\n", "address", "is missing");
}

/* A settings file of COUNT stores, after the settings TOP. */
static void list_stores(char *text, size_t size, const char *top, int count)
{
	size_t used = (size_t)snprintf(text, size, "%sremote-stores:\n", top);

	for (int i = 0; i < count; i++)
		used += (size_t)snprintf(
			text + used, size - used, "  - type: file\n    address: /%d\n", i);
	assert_true(used < size);
}

static void sixteen_stores_are_taken(void **state)
{
	struct bench *b = *state;
	char text[TEXT_BYTES];

	list_stores(text, sizeof(text), "", EXPORT_STORES_LIMIT);
	assert_taken(b, text);
	assert_int_equal(b->settings.store_count, EXPORT_STORES_LIMIT);
	/* One more store, outside of the list: the last one is refused. */
	list_stores(text, sizeof(text), "remote-store-type: file\nremote-store-address: /x\n",
		EXPORT_STORES_LIMIT);
	assert_refused(b, text, "35: remote-stores: address", "more than 16 remote stores");
}

static void external_labels_are_those_of_the_top(void **state)
{
	struct bench *b = *state;

	assert_taken(b, "metadata-external-labels: zone=z;rack=r\n"
			"remote-stores:\n  - type: file\n    address: /1\n");
	assert_int_equal(b->settings.store_count, 1);
	assert_string_equal(labels_get(&b->settings.external, "zone"), "z");
	assert_string_equal(labels_get(&b->settings.external, "rack"), "r");
}

static void a_spool_holds_the_largest_profile(void **state)
{
	struct bench *b = *state;

	assert_refused(b,
		"spool-max-bytes: 2097151\nremote-store-type: file\nremote-store-address: /x\n",
		"spool-max-bytes", "2M or more");
	assert_taken(
		b, "spool-max-bytes: 2097152\nremote-store-type: file\nremote-store-address: /x\n");
}

static void debug_information_needs_a_store_that_takes_it(void **state)
{
	struct bench *b = *state;

	assert_refused(b, "debuginfo-upload: true\n", "debuginfo-upload", "only Parca supports it");
	assert_refused(b,
		"debuginfo-upload: true\nremote-store-type: file\nremote-store-address: /x\n",
		"debuginfo-upload", "only Parca supports it");
	assert_taken(b, "debuginfo-upload: true\n"
			"remote-stores:\n"
			"  - type: file\n    address: /1\n"
			"  - type: parca\n    address: http://a:1\n");
	assert_true(b->settings.debuginfo_upload);
}

/* ---- series --------------------------------------------------------------------------------- */

static void series_labels_must_be_sample_labels(void **state)
{
	struct bench *b = *state;

	assert_taken(b, "series-labels: tid, thread_comm\n");
	assert_int_equal(
		b->settings.series_labels, 1 << SAMPLE_LABEL_tid | 1 << SAMPLE_LABEL_thread_comm);
	assert_taken(b, "series-labels: tid\n");
	assert_int_equal(b->settings.series_labels, 1 << SAMPLE_LABEL_tid);
	assert_taken(b, "");
	assert_int_equal(b->settings.series_labels, 0);
}

/* All other names are keys of goroutines' labels; servers take fewer letters than programs. */
static void series_labels_may_be_those_of_goroutines(void **state)
{
	static const char *const names[] = { "work", "http_route", "_9_", "a__" };
	struct bench *b = *state;
	const struct fiber_keys *keys = &b->settings.fiber_keys;

	assert_taken(b, "series-labels: [work, tid, http.route, work, 9-, \"a\\u00e4\"]\n");
	assert_int_equal(b->settings.series_labels, 1 << SAMPLE_LABEL_tid);
	assert_int_equal(keys->count, 4);
	for (size_t i = 0; i < keys->count; i++)
		assert_string_equal(keys->of[i].name, names[i]);
	assert_string_equal(keys->of[1].key, "http.route");
	assert_taken(b, "series-labels: a,b,c,d,e,f,g,h,i,j\n");
	assert_int_equal(keys->count, 10);
	assert_refused(b, "series-labels: a,b,c,d,e,f,g,h,i,j,k\n", ":1: series-labels",
		"k: there are too many");
	assert_refused(b, "series-labels: a.b, a_b\n", "series-labels",
		"a_b: two labels of goroutines would have the same name");
	assert_taken(b, "series-labels: "
			"a123456789012345678901234567890123456789012345678901234567890123\n");
	assert_refused(b,
		"series-labels: "
		"a1234567890123456789012345678901234567890123456789012345678901234\n",
		"series-labels", "such a long label of a goroutine is not read");
}

/* Programs cannot say what series say of a process, and rules' own labels are not sent. */
static void goroutines_have_no_labels_of_ours(void **state)
{
	static const char *const ours[] = { "pid", "cpu", "comm", "container_id", "go_state",
		"go.state", "go_parent_goid", "go_created_by", "go_created_at", "go_wait_reason",
		"node", "service_name", "executable", "namespace", "pod", "pod_uid", "container" };
	static const char *const hidden[] = { "__name__", "..a", "_-meta", "__meta_x" };
	struct bench *b = *state;
	char text[128];

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		snprintf(text, sizeof(text), "series-labels: [tid, '%s']\n", ours[i]);
		assert_refused(b, text, "series-labels", "this is a label of fathom's own");
	}
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		snprintf(text, sizeof(text), "series-labels: '%s'\n", hidden[i]);
		assert_refused(b, text, "series-labels", "its name would begin with __");
	}
}

/* Each possible label is named: texts first. */
static void a_refusal_lists_the_labels(void **state)
{
	struct bench *b = *state;

	assert_refused(b, "series-labels: tid, pid\n", ":1: series-labels",
		"must be thread_comm, tid, goid or a pprof label of Go programs: pid: ");
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		char text[128];

		if (sample_labels[i].is_series_label)
			continue;
		snprintf(text, sizeof(text), "series-labels: %s\n", sample_labels[i].name);
		assert_refused(b, text, "series-labels", "must be thread_comm");
	}
}

static const char *variable(const struct bench *b, size_t number)
{
	const char *at = b->settings.environment;

	while (number-- && *at)
		at += strlen(at) + 1;
	return at;
}

static void variables_are_listed_by_name(void **state)
{
	struct bench *b = *state;

	assert_taken(b, "include-env-var: TEAM, _x9,z\n");
	assert_string_equal(variable(b, 0), "TEAM");
	assert_string_equal(variable(b, 1), "_x9");
	assert_string_equal(variable(b, 2), "z");
	assert_string_equal(variable(b, 3), "");
	assert_taken(b, "");
	assert_string_equal(variable(b, 0), "");
	assert_refused(b, "include-env-var: A-B\n", "include-env-var", "A-B");
}

static void list_variables(char *text, size_t size, int count)
{
	size_t used = (size_t)snprintf(text, size, "include-env-var: ");

	for (int i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, size - used, "%sV%d", i ? ", " : "", i);
	snprintf(text + used, size - used, "\n");
}

static void thirty_two_variables_of_256_bytes_are_taken(void **state)
{
	struct bench *b = *state;
	char text[TEXT_BYTES], name[300];

	list_variables(text, sizeof(text), 32);
	assert_taken(b, text);
	assert_string_equal(variable(b, 31), "V31");
	list_variables(text, sizeof(text), 33);
	assert_refused(b, text, "include-env-var", "up to 32 names");
	memset(name, 'v', sizeof(name));
	snprintf(text, sizeof(text), "include-env-var: %.256s\n", name);
	assert_taken(b, text);
	snprintf(text, sizeof(text), "include-env-var: %.257s\n", name);
	assert_refused(b, text, "include-env-var", "up to 32 names");
}

static void rules_are_compiled(void **state)
{
	struct bench *b = *state;

	assert_taken(b, "relabel_configs:\n  - action: drop\n    source_labels: [comm]\n"
			"    regex: gone\n");
	assert_non_null(b->settings.relabel);
}

/* ---- what changes a store ------------------------------------------------------------------- */

static uint64_t hash_of(struct bench *b, const char *text)
{
	load(b, text);
	return export_settings_hash(&b->config);
}

static void only_settings_of_stores_and_spool_change_the_hash(void **state)
{
	struct bench *b = *state;
	const uint64_t one = hash_of(b, "remote-stores:\n  - type: file\n    address: /1\n");

	assert_int_equal(one, hash_of(b, "node: n\nseries-labels: tid\n"
					 "remote-stores:\n  - type: file\n    address: /1\n"));
	assert_int_not_equal(one, hash_of(b, "remote-stores:\n  - type: file\n    address: /2\n"));
	assert_int_not_equal(one, hash_of(b, "spool-max-bytes: 9M\n"
					     "remote-stores:\n  - type: file\n    address: /1\n"));
	assert_int_not_equal(one, hash_of(b, "remote-stores:\n  - type: file\n    address: /1\n"
					     "  - type: file\n    address: /1\n"));
	assert_int_not_equal(
		one, hash_of(b, "remote-store-type: file\nremote-store-address: /1\n"));
	assert_int_not_equal(one, hash_of(b, ""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_store_nothing_is_exported),
		CASE(stores_are_named_after_their_types),
		CASE(names_have_only_safe_characters),
		CASE(two_stores_have_two_names),
		CASE(a_store_has_an_address),
		CASE(sixteen_stores_are_taken),
		CASE(external_labels_are_those_of_the_top),
		CASE(a_spool_holds_the_largest_profile),
		CASE(debug_information_needs_a_store_that_takes_it),
		CASE(series_labels_must_be_sample_labels),
		CASE(series_labels_may_be_those_of_goroutines),
		CASE(goroutines_have_no_labels_of_ours),
		CASE(a_refusal_lists_the_labels),
		CASE(variables_are_listed_by_name),
		CASE(thirty_two_variables_of_256_bytes_are_taken),
		CASE(rules_are_compiled),
		CASE(only_settings_of_stores_and_spool_change_the_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
