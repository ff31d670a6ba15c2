/* SPDX-License-Identifier: Apache-2.0 */
/* The semantics that Prometheus documents for relabel_config, rule by rule. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/server/export/labels/relabel.h"

#define SOURCES(...)                                           \
	.source_labels = (const char *const[]){ __VA_ARGS__ }, \
	.source_label_count = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

/* Writes "a=1,b=2", sorted by name. */
static void write_labels(const struct labels *labels, char *text, size_t size)
{
	size_t used = 0;

	*text = 0;
	for (size_t i = 0; i < labels->count; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s=%s", i ? "," : "",
			labels->items[i].name, labels->items[i].value);
}

static void read_labels(const char *text, struct labels *labels)
{
	char copy[4096], *at = copy, *item;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&at, ",")) != NULL) {
		char *value = strchr(item, '=');

		*value++ = 0;
		assert_int_equal(labels_set(labels, item, value), 0);
	}
}

/* LABELS after RULES; "dropped" if the target is dropped. */
static const char *relabelled(const struct relabel_rule *rules, size_t count, const char *text)
{
	static char out[8192];
	struct labels labels = { 0 };
	struct relabel *r = NULL;
	char *message = NULL;
	bool keep = false;

	read_labels(text, &labels);
	assert_int_equal(relabel_create(rules, count, &r, &message), 0);
	assert_null(message);
	assert_int_equal(relabel_apply(r, &labels, &keep), 0);
	write_labels(&labels, out, sizeof(out));
	labels_deinit(&labels);
	relabel_destroy(r);
	return keep ? out : "dropped";
}

#define RELABEL(text, ...)                                             \
	relabelled((const struct relabel_rule[]){ __VA_ARGS__ },       \
		sizeof((const struct relabel_rule[]){ __VA_ARGS__ }) / \
			sizeof(struct relabel_rule),                   \
		text)

static void replace_has_the_documented_defaults(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=foo,b=bar", { SOURCES("a"), .target_label = "c" }), "a=foo,b=bar,c=foo");
	assert_string_equal(RELABEL("a=foo,b=bar", { SOURCES("a", "b"), .target_label = "c" }),
		"a=foo,b=bar,c=foo;bar");
	assert_string_equal(RELABEL("a=foo,b=bar", { SOURCES("a", "missing", "b"), .separator = "-",
							   .target_label = "c" }),
		"a=foo,b=bar,c=foo--bar");
	assert_string_equal(RELABEL("a=foo", { .target_label = "c", .replacement = "static" }),
		"a=foo,c=static");
}

static void replace_with_groups(void **state)
{
	(void)state;
	assert_string_equal(RELABEL("a=foo", { SOURCES("a"), .regex = "f(.*)", .target_label = "d",
						     .replacement = "ch${1}-ch${1}" }),
		"a=foo,d=choo-choo");
	assert_string_equal(
		RELABEL("a=boo", { SOURCES("a"), .regex = "(?P<first>b)(?P<rest>.*)",
					 .target_label = "d", .replacement = "$rest$first$$1" }),
		"a=boo,d=oob$1");
	/* The longest name counts: $1x is not group 1. */
	assert_string_equal(
		RELABEL("a=foo", { SOURCES("a"), .target_label = "a", .replacement = "$1x" }), "");
	assert_string_equal(
		RELABEL("a=foo", { SOURCES("a"), .target_label = "d", .replacement = "$ $9 ${1" }),
		"a=foo,d=$  ${1");
	/* Letters of all scripts may be part of a name. */
	assert_string_equal(
		RELABEL("a=foo", { SOURCES("a"), .target_label = "d",
					 .replacement = "x$\xc3\xa9.${\xc3\xa9}$\xe2\x80\x93" }),
		"a=foo,d=x.$\xe2\x80\x93");
	/* References in the target label's name. */
	assert_string_equal(RELABEL("a=some-name-value",
				    { SOURCES("a"), .regex = "some-([^-]+)-([^,]+)",
					    .target_label = "${1}", .replacement = "${2}" }),
		"a=some-name-value,name=value");
	assert_string_equal(
		RELABEL("a=1", { SOURCES("a"), .target_label = "${1}", .replacement = "x" }),
		"a=1");
}

static void a_regex_matches_the_whole_value(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=foo", { SOURCES("a"), .regex = "o", .target_label = "d" }), "a=foo");
	assert_string_equal(RELABEL("a=ab", { SOURCES("a"), .regex = "a|ab", .target_label = "d",
						    .replacement = "x" }),
		"a=ab,d=x");
	assert_string_equal(
		RELABEL("a=foo\n", { .action = RELABEL_KEEP, SOURCES("a"), .regex = "foo$" }),
		"dropped");
	assert_string_equal(
		RELABEL("a=x\ny", { .action = RELABEL_KEEP, SOURCES("a"), .regex = "x.y" }),
		"a=x\ny");
	assert_string_equal(
		RELABEL("a=x\ny", { .action = RELABEL_KEEP, SOURCES("a"), .regex = "(?-s)x.y" }),
		"dropped");
	assert_string_equal(
		RELABEL("a=\xc3\xa4", { .action = RELABEL_KEEP, SOURCES("a"), .regex = "." }),
		"a=\xc3\xa4");
}

static bool keeps(const char *regex, const char *value)
{
	char text[64];

	snprintf(text, sizeof(text), "a=%s", value);
	return strcmp(
		RELABEL(text, { .action = RELABEL_KEEP, SOURCES("a"), .regex = regex }), "dropped");
}

/* Patterns that mean different things to RE2, which Prometheus uses, and to PCRE2. */
static void a_regex_means_what_re2_means_by_it(void **state)
{
	(void)state;
	assert_true(keeps(".*", "first line\nsecond line"));
	assert_false(keeps("\\s", "\v"));
	assert_true(keeps("\\S", "\v"));
	assert_false(keeps("[x\\s]", "\v"));
	assert_true(keeps("[x\\S]", "\v"));
	assert_true(keeps("\\v", "\v"));
	assert_false(keeps("\\v", "\n"));
	assert_true(keeps("[\\t-\\v]+", "\t\n\v"));
	assert_true(keeps("[\\s-;]+", "- ;"));
	assert_false(keeps("[\\s-;]+", "0"));
	assert_true(keeps("[\\pL-;]+", "-a;"));
	assert_true(keeps("[]\\s]+", "] "));
	assert_true(keeps("\\Q\\s\\E", "\\s"));
	assert_true(keeps("(?m)foo\\n^", "foo\n"));
	assert_true(keeps("x{ 2}", "x{ 2}"));
	assert_true(keeps("\\x{78}{2}", "xx"));
}

static void an_empty_replacement_removes(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=foo,f=baz",
			{ SOURCES("a"), .regex = "(f).*", .target_label = "f", .replacement = "" }),
		"a=foo");
}

static void an_explicit_empty_regex_is_not_the_default(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=foo", { .action = RELABEL_DROP, SOURCES("none"), .regex = "" }),
		"dropped");
	assert_string_equal(
		RELABEL("a=foo", { .action = RELABEL_DROP, SOURCES("a"), .regex = "" }), "a=foo");
}

static void keep_and_drop(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=foo", { .action = RELABEL_KEEP, SOURCES("a"), .regex = "f.*" }),
		"a=foo");
	assert_string_equal(
		RELABEL("a=foo", { .action = RELABEL_KEEP, SOURCES("a"), .regex = "no" }),
		"dropped");
	assert_string_equal(
		RELABEL("a=foo", { .action = RELABEL_DROP, SOURCES("a"), .regex = ".*o" }),
		"dropped");
	assert_string_equal(
		RELABEL("a=foo", { .action = RELABEL_DROP, SOURCES("a"), .regex = "f" }), "a=foo");
	/* Nothing after a drop is applied. */
	assert_string_equal(RELABEL("a=foo", { .action = RELABEL_DROP, SOURCES("a") },
				    { SOURCES("a"), .target_label = "b" }),
		"dropped");
}

static void keepequal_and_dropequal(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=x,b=x",
			{ .action = RELABEL_KEEPEQUAL, SOURCES("a"), .target_label = "b" }),
		"a=x,b=x");
	assert_string_equal(
		RELABEL("a=x,b=y",
			{ .action = RELABEL_KEEPEQUAL, SOURCES("a"), .target_label = "b" }),
		"dropped");
	assert_string_equal(
		RELABEL("a=x,b=x",
			{ .action = RELABEL_DROPEQUAL, SOURCES("a"), .target_label = "b" }),
		"dropped");
	assert_string_equal(
		RELABEL("a=x,b=y",
			{ .action = RELABEL_DROPEQUAL, SOURCES("a"), .target_label = "b" }),
		"a=x,b=y");
	assert_string_equal(
		RELABEL("b=y",
			{ .action = RELABEL_DROPEQUAL, SOURCES("none"), .target_label = "gone" }),
		"dropped");
}

static void hashmod_is_that_of_prometheus(void **state)
{
	(void)state;
	assert_string_equal(RELABEL("c=baz", { .action = RELABEL_HASHMOD,
						     SOURCES("c"),
						     .target_label = "d",
						     .modulus = 1000 }),
		"c=baz,d=976");
}

static void hashmod_takes_the_last_half_of_the_md5(void **state)
{
	static const struct {
		const char *text, *digest;
	} cases[] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "a", "0cc175b9c0f1b6a831c399e269772661" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "message digest", "f96b697d7cb7938d525a2f31aaf161d0" },
		{ "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b" },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
			"d174ab98d277d9f5a5611c2c9f419d9f" },
		{ "1234567890123456789012345678901234567890123456789012345678901234567890123456789"
		  "0",
			"57edf4a22be3c955ac49da2e2107b67a" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t half = strtoull(cases[i].digest + 16, NULL, 16);
		char labels[128], expected[192];

		snprintf(labels, sizeof(labels), "c=%s", cases[i].text);
		snprintf(expected, sizeof(expected), "%s%sd=%" PRIu64, *cases[i].text ? labels : "",
			*cases[i].text ? "," : "", half);
		assert_string_equal(RELABEL(labels, { .action = RELABEL_HASHMOD,
							    SOURCES("c"),
							    .target_label = "d",
							    .modulus = UINT64_MAX }),
			expected);
	}
}

static void labelmap_copies(void **state)
{
	(void)state;
	assert_string_equal(RELABEL("a=foo,b1=bar,b2=baz", { .action = RELABEL_LABELMAP,
								   .regex = "(b.*)",
								   .replacement = "bar_${1}" }),
		"a=foo,b1=bar,b2=baz,bar_b1=bar,bar_b2=baz");
	assert_string_equal(RELABEL("__meta_my_bar=aaa,__meta_my_baz=bbb",
				    { .action = RELABEL_LABELMAP, .regex = "__meta_(my.*)" }),
		"__meta_my_bar=aaa,__meta_my_baz=bbb,my_bar=aaa,my_baz=bbb");
}

static void labeldrop_and_labelkeep(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=foo,b1=bar,b2=baz", { .action = RELABEL_LABELDROP, .regex = "(b.*)" }),
		"a=foo");
	assert_string_equal(
		RELABEL("a=foo,b1=bar,b2=baz", { .action = RELABEL_LABELKEEP, .regex = "(b.*)" }),
		"b1=bar,b2=baz");
}

static void lowercase_and_uppercase(void **state)
{
	(void)state;
	assert_string_equal(
		RELABEL("a=fOo \xc3\x84",
			{ .action = RELABEL_LOWERCASE, SOURCES("a"), .target_label = "l" },
			{ .action = RELABEL_UPPERCASE, SOURCES("a"), .target_label = "u" }),
		"a=fOo \xc3\x84,l=foo \xc3\xa4,u=FOO \xc3\x84");
}

static void rules_see_what_the_ones_before_made(void **state)
{
	(void)state;
	assert_string_equal(RELABEL("a=foo", { SOURCES("a"), .target_label = "__tmp_x" },
				    { SOURCES("__tmp_x"), .regex = "f(.*)", .target_label = "b" }),
		"__tmp_x=foo,a=foo,b=oo");
}

static void too_long_a_value_is_cut_between_characters(void **state)
{
	char text[LABEL_VALUE_BYTES];
	struct labels labels = { 0 };
	struct relabel *r = NULL;
	char *message = NULL;
	bool keep;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 3);
	assert_int_equal(labels_set(&labels, "a", text), 0);
	assert_int_equal(relabel_create(&(struct relabel_rule){ SOURCES("a", "a"), .separator = "x",
						.target_label = "b" },
				 1, &r, &message),
		0);
	assert_int_equal(relabel_apply(r, &labels, &keep), 0);
	assert_int_equal(strlen(labels_get(&labels, "b")), LABEL_VALUE_BYTES - 1);
	relabel_destroy(r);
	labels_deinit(&labels);
}

static void refuse(const struct relabel_rule *rule, const char *why)
{
	struct relabel *r = NULL;
	char *message = NULL;

	assert_int_equal(relabel_create(rule, 1, &r, &message), -EINVAL);
	assert_non_null(message);
	assert_non_null(strstr(message, why));
	free(message);
}

static void senseless_rules_are_refused(void **state)
{
	(void)state;
	refuse(&(struct relabel_rule){ .action = RELABEL_HASHMOD, .target_label = "d" }, "modulus");
	refuse(&(struct relabel_rule){ .regex = "x" }, "target_label");
	refuse(&(struct relabel_rule){ .target_label = "a-b" }, "target_label");
	refuse(&(struct relabel_rule){ .target_label = "$" }, "target_label");
	refuse(&(struct relabel_rule){ .target_label = "${}" }, "target_label");
	refuse(&(struct relabel_rule){ .target_label = "${a-b}" }, "target_label");
	refuse(&(struct relabel_rule){ .action = RELABEL_LOWERCASE, .target_label = "${1}" },
		"target_label");
	refuse(&(struct relabel_rule){ .action = RELABEL_LABELMAP, .replacement = "a-$1" },
		"replacement");
	refuse(&(struct relabel_rule){ .action = RELABEL_LABELDROP, SOURCES("a") }, "regex only");
	refuse(
		&(struct relabel_rule){
			.action = RELABEL_KEEPEQUAL, .target_label = "a", .regex = "x" },
		"target_label only");
	refuse(&(struct relabel_rule){ SOURCES("a-b"), .target_label = "a" }, "source label");
	refuse(&(struct relabel_rule){ .target_label = "a", .regex = "(" }, "regex");
	refuse(&(struct relabel_rule){ .target_label = "a", .regex = "[z-a]" }, "at character");
}

static void a_default_may_be_written_out(void **state)
{
	(void)state;
	assert_string_equal(RELABEL("a=x", { .action = RELABEL_UPPERCASE,
						   SOURCES("a"),
						   .target_label = "b",
						   .replacement = "$1" }),
		"a=x,b=X");
	assert_string_equal(RELABEL("a=x,b=x", { .action = RELABEL_KEEPEQUAL,
						       SOURCES("a"),
						       .target_label = "b",
						       .separator = ";" }),
		"a=x,b=x");
	assert_string_equal(RELABEL("a=x,b=x", { .action = RELABEL_LABELDROP,
						       .regex = "b",
						       .separator = ";",
						       .target_label = "" }),
		"a=x");
}

/* The position refers to the text as written. */
static void a_bad_regex_says_where(void **state)
{
	(void)state;
	refuse(&(struct relabel_rule){ .target_label = "a", .regex = "\\s\\s(" }, "at character 6");
}

static void a_hostile_regex_is_given_up(void **state)
{
	char text[64];
	struct labels labels = { 0 };
	struct relabel *r = NULL;
	char *message = NULL;
	bool keep;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 2] = '!';
	text[sizeof(text) - 1] = 0;
	assert_int_equal(labels_set(&labels, "a", text), 0);
	assert_int_equal(relabel_create(&(struct relabel_rule){ .action = RELABEL_KEEP,
						SOURCES("a"),
						.regex = "(a|aa)+(a|b|ab)*c?" },
				 1, &r, &message),
		0);
	assert_int_equal(relabel_apply(r, &labels, &keep), -E2BIG);
	relabel_destroy(r);
	labels_deinit(&labels);
}

static void a_huge_regex_is_refused(void **state)
{
	char *text = malloc(10001);

	(void)state;
	memset(text, '(', 10000);
	text[10000] = 0;
	refuse(&(struct relabel_rule){ .target_label = "a", .regex = text }, "regex");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replace_has_the_documented_defaults),
		cmocka_unit_test(replace_with_groups),
		cmocka_unit_test(a_regex_matches_the_whole_value),
		cmocka_unit_test(a_regex_means_what_re2_means_by_it),
		cmocka_unit_test(an_empty_replacement_removes),
		cmocka_unit_test(an_explicit_empty_regex_is_not_the_default),
		cmocka_unit_test(keep_and_drop),
		cmocka_unit_test(keepequal_and_dropequal),
		cmocka_unit_test(hashmod_is_that_of_prometheus),
		cmocka_unit_test(hashmod_takes_the_last_half_of_the_md5),
		cmocka_unit_test(labelmap_copies),
		cmocka_unit_test(labeldrop_and_labelkeep),
		cmocka_unit_test(lowercase_and_uppercase),
		cmocka_unit_test(rules_see_what_the_ones_before_made),
		cmocka_unit_test(too_long_a_value_is_cut_between_characters),
		cmocka_unit_test(senseless_rules_are_refused),
		cmocka_unit_test(a_default_may_be_written_out),
		cmocka_unit_test(a_bad_regex_says_where),
		cmocka_unit_test(a_hostile_regex_is_given_up),
		cmocka_unit_test(a_huge_regex_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
