/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relabelling agrees with Prometheus: the cases of tests/unit/relabel.corpus, or of the file that
 * RELABEL_CORPUS names. tests/relabelcheck generates them with Prometheus' own package and
 * describes their format.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/labels/relabel.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_CASE_RULES = 8,
	MAX_CASE_SOURCES = 8,
	MAX_SHOWN = 20, /* number of differences */
	MIN_OF_ACTION = 40, /* cases; reveals a corpus that lacks an action */
};

/* By enum relabel_action. */
static const char *const actions[] = { "replace", "keep", "drop", "labelmap", "labeldrop",
	"labelkeep", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal" };

struct corpus_case {
	struct relabel_rule rules[MAX_CASE_RULES];
	const char *sources[MAX_CASE_RULES][MAX_CASE_SOURCES];
	size_t rule_count;
	struct labels labels;
};

struct tally {
	size_t by_action[ARRAY_SIZE(actions)];
	size_t cases, refused, dropped, kept, wrong;
};

/* ---- reading -------------------------------------------------------------------------------- */

static char *next_field(char **line)
{
	char *field = strsep(line, " ");

	if (!field)
		fail_msg("a line of the corpus ends too early");
	return field;
}

static uint64_t next_number(char **line)
{
	char *end, *field = next_field(line);
	uint64_t number = strtoull(field, &end, 10);

	if (*end || end == field)
		fail_msg("no number in the corpus: %s", field);
	return number;
}

/* Decodes =TEXT in place; NULL for -. */
static const char *next_text(char **line)
{
	char *field = next_field(line), *out = field + 1;

	if (!strcmp(field, "-"))
		return NULL;
	if (*field != '=')
		fail_msg("no text in the corpus: %s", field);
	for (const char *in = out; *in; in++) {
		char digits[3] = "";

		if (*in != '%') {
			*out++ = *in;
			continue;
		}
		memcpy(digits, in + 1, 2);
		*out++ = (char)strtoul(digits, NULL, 16);
		in += 2;
	}
	*out = 0;
	return field + 1;
}

static enum relabel_action next_action(char **line)
{
	const char *name = next_field(line);

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (!strcmp(name, actions[i]))
			return (enum relabel_action)i;
	}
	fail_msg("no action: %s", name);
	return RELABEL_REPLACE;
}

static void read_rule(struct corpus_case *c, char **line)
{
	struct relabel_rule *rule = &c->rules[c->rule_count];
	const char **sources = c->sources[c->rule_count++];

	rule->action = next_action(line);
	rule->source_label_count = next_number(line);
	assert_in_range(rule->source_label_count, 0, MAX_CASE_SOURCES);
	for (size_t i = 0; i < rule->source_label_count; i++)
		sources[i] = next_text(line);
	rule->source_labels = sources;
	rule->separator = next_text(line);
	rule->regex = next_text(line);
	rule->modulus = next_number(line);
	rule->target_label = next_text(line);
	rule->replacement = next_text(line);
}

static void read_labels(struct labels *labels, char **line)
{
	for (uint64_t count = next_number(line); count; count--) {
		const char *name = next_text(line);

		assert_int_equal(labels_set(labels, name, next_text(line)), 0);
	}
}

static void read_case(struct corpus_case *c, char **line)
{
	const char *word = next_field(line);

	for (; !strcmp(word, "rule"); word = next_field(line)) {
		assert_in_range(c->rule_count, 0, MAX_CASE_RULES - 1);
		read_rule(c, line);
	}
	assert_string_equal(word, "labels");
	read_labels(&c->labels, line);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool are_equal(const struct labels *a, const struct labels *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(a->items[i].name, b->items[i].name) ||
			strcmp(a->items[i].value, b->items[i].value))
			return false;
	}
	return true;
}

static void show_labels(const struct labels *labels)
{
	for (size_t i = 0; i < labels->count; i++)
		print_message(" %s=\"%s\"", labels->items[i].name, labels->items[i].value);
}

/* Applies our rules to C's labels in place: "refused", "dropped", "kept" or "failed". */
static const char *relabel_case(struct corpus_case *c)
{
	autofree char *message = NULL;
	struct relabel *relabel = NULL;
	bool keep = false;
	int err = relabel_create(c->rules, c->rule_count, &relabel, &message);

	if (err)
		return "refused";
	err = relabel_apply(relabel, &c->labels, &keep);
	relabel_destroy(relabel);
	return err ? "failed" : keep ? "kept" : "dropped";
}

static void count_case(struct tally *t, const struct corpus_case *c, const char *result)
{
	t->cases++;
	for (size_t i = 0; i < c->rule_count; i++)
		t->by_action[c->rules[i].action]++;
	if (!strcmp(result, "refused"))
		t->refused++;
	else if (!strcmp(result, "dropped"))
		t->dropped++;
	else
		t->kept++;
}

static void check_line(struct tally *t, char *line)
{
	autofree char *shown = strdup(line);
	struct corpus_case c = { 0 };
	struct labels wanted = { 0 };
	const char *expected, *result;

	read_case(&c, &line);
	expected = next_field(&line);
	if (!strcmp(expected, "kept"))
		read_labels(&wanted, &line);
	result = relabel_case(&c);
	count_case(t, &c, expected);
	if (strcmp(result, expected) ||
		(!strcmp(result, "kept") && !are_equal(&c.labels, &wanted))) {
		t->wrong++;
		if (t->wrong <= MAX_SHOWN) {
			print_message("%s\n  ours: %s", shown, result);
			show_labels(&c.labels);
			print_message("\n");
		}
	}
	labels_deinit(&wanted);
	labels_deinit(&c.labels);
}

static void each_case_is_as_in_prometheus(void **state)
{
	const char *path = getenv("RELABEL_CORPUS");
	autofclose FILE *f = fopen(path ? path : "tests/unit/relabel.corpus", "r");
	autofree char *line = NULL;
	struct tally t = { 0 };
	size_t size = 0;
	ssize_t length;

	(void)state;
	assert_non_null(f);
	while ((length = getline(&line, &size, f)) > 0) {
		line[length - 1] = 0;
		check_line(&t, line);
	}
	print_message("# %zu cases: %zu kept, %zu dropped, %zu refused; %zu differ\n", t.cases,
		t.kept, t.dropped, t.refused, t.wrong);
	assert_int_equal(t.wrong, 0);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		assert_in_range(t.by_action[i], MIN_OF_ACTION, SIZE_MAX);
	assert_in_range(t.dropped, MIN_OF_ACTION, SIZE_MAX);
	assert_in_range(t.refused, MIN_OF_ACTION, SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case_is_as_in_prometheus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
