/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are validated like Prometheus does when it reads its file, so that a rule that cannot work
 * is refused at the start. Label values that get too long are cut: a series with a shortened label
 * is more useful than none.
 */
#include "agent/server/export/labels/relabel.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <nettle/md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "agent/server/export/labels/pattern.h"
#include "base/buffer.h"
#include "base/cleanup.h"

enum {
	MAX_RULES = 1000,
	MAX_SOURCE_LABELS = 64,
	TEXT_LIMIT = 256 << 10, /* all source labels joined, or a replacement */
};

static const char default_regex[] = "(.*)";
static const char default_separator[] = ";";
static const char default_replacement[] = "$1";
static const char NAME_CHARACTERS[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

struct rule {
	enum relabel_action action;
	char **source_labels;
	size_t source_label_count;
	char *separator, *target_label, *replacement;
	struct pattern *pattern;
	uint64_t modulus;
};

struct relabel {
	struct rule *rules;
	size_t count;
};

/* ---- checking ------------------------------------------------------------------------------- */

static bool is_label_name(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	}
	return true;
}

/* A label name that may contain references: letters, digits, _, $1, ${name}. */
static bool is_name_template(const char *text)
{
	bool first = true;

	while (*text) {
		size_t name = strspn(text, NAME_CHARACTERS);

		if (name && first && isdigit((unsigned char)*text))
			return false;
		text += name;
		first = false;
		if (!*text)
			break;
		if (*text++ != '$')
			return false;
		if (*text == '{') {
			name = strspn(text + 1, NAME_CHARACTERS);
			if (!name || text[name + 1] != '}')
				return false;
			text += name + 2;
		} else if (!isalnum((unsigned char)*text) && *text != '_') {
			return false;
		}
	}
	return !first;
}

static bool wants_target(enum relabel_action action)
{
	return action == RELABEL_REPLACE || action == RELABEL_HASHMOD ||
	       action == RELABEL_LOWERCASE || action == RELABEL_UPPERCASE ||
	       action == RELABEL_KEEPEQUAL || action == RELABEL_DROPEQUAL;
}

static bool only_regex(enum relabel_action action)
{
	return action == RELABEL_LABELDROP || action == RELABEL_LABELKEEP;
}

static bool only_labels(enum relabel_action action)
{
	return action == RELABEL_KEEPEQUAL || action == RELABEL_DROPEQUAL;
}

/* A field with its default value counts as not given. */
static bool is_given(const char *text, const char *by_default)
{
	return text && strcmp(text, by_default);
}

/* What is wrong with RULE, or NULL. */
static const char *complaint(const struct relabel_rule *rule)
{
	const char *target = rule->target_label ? rule->target_label : "";
	const char *replacement = rule->replacement ? rule->replacement : default_replacement;

	if (rule->source_label_count > MAX_SOURCE_LABELS)
		return "too many source_labels";
	if (rule->action == RELABEL_HASHMOD && !rule->modulus)
		return "hashmod needs a modulus above 0";
	if (wants_target(rule->action) && !*target)
		return "target_label is missing";
	if (rule->action == RELABEL_REPLACE && !is_name_template(target))
		return "target_label is not a label name";
	if (wants_target(rule->action) && rule->action != RELABEL_REPLACE && !is_label_name(target))
		return "target_label is not a label name";
	if (rule->action == RELABEL_LABELMAP && !is_name_template(replacement))
		return "replacement is not a label name";
	if ((rule->action == RELABEL_LOWERCASE || rule->action == RELABEL_UPPERCASE) &&
		is_given(rule->replacement, default_replacement))
		return "lowercase and uppercase take no replacement";
	if (only_labels(rule->action) &&
		(rule->regex || rule->modulus || is_given(rule->separator, default_separator) ||
			is_given(rule->replacement, default_replacement)))
		return "keepequal and dropequal take source_labels and target_label only";
	if (only_regex(rule->action) &&
		(rule->source_label_count || is_given(rule->target_label, "") || rule->modulus ||
			is_given(rule->separator, default_separator) ||
			is_given(rule->replacement, default_replacement)))
		return "labeldrop and labelkeep take a regex only";
	for (size_t i = 0; i < rule->source_label_count; i++) {
		if (!is_label_name(rule->source_labels[i]))
			return "a source label is not a label name";
	}
	return NULL;
}

/* ---- making --------------------------------------------------------------------------------- */

static int say(char **ret_message, size_t number, const char *what, const char *detail)
{
	if (asprintf(ret_message, "relabel rule %zu: %s%s", number + 1, what, detail) < 0)
		*ret_message = NULL;
	return -EINVAL;
}

static void relabel_rule_deinit(struct rule *rule)
{
	for (size_t i = 0; i < rule->source_label_count; i++)
		free(rule->source_labels[i]);
	free(rule->source_labels);
	free(rule->separator);
	free(rule->target_label);
	free(rule->replacement);
	pattern_destroy(rule->pattern);
}

static int copy_texts(struct rule *rule, const struct relabel_rule *from)
{
	rule->separator = strdup(from->separator ? from->separator : default_separator);
	rule->target_label = strdup(from->target_label ? from->target_label : "");
	rule->replacement = strdup(from->replacement ? from->replacement : default_replacement);
	rule->source_labels = calloc(from->source_label_count + 1, sizeof(char *));
	if (!rule->separator || !rule->target_label || !rule->replacement || !rule->source_labels)
		return -ENOMEM;
	for (size_t i = 0; i < from->source_label_count; i++) {
		rule->source_labels[i] = strdup(from->source_labels[i]);
		if (!rule->source_labels[i])
			return -ENOMEM;
		rule->source_label_count++;
	}
	return 0;
}

static int relabel_make_rule(struct relabel *r, const struct relabel_rule *from, char **ret_message)
{
	char message[PATTERN_MESSAGE_BYTES];
	struct rule *rule = &r->rules[r->count];
	const char *wrong = complaint(from);
	int err;

	if (wrong)
		return say(ret_message, r->count, wrong, "");
	r->count++;
	rule->action = from->action;
	rule->modulus = from->modulus;
	err = copy_texts(rule, from);
	if (err)
		return err;
	err = pattern_create(from->regex ? from->regex : default_regex, &rule->pattern, message);
	return err == -EINVAL ? say(ret_message, r->count - 1, "regex: ", message) : err;
}

int relabel_create(const struct relabel_rule *rules, size_t count, struct relabel **ret_relabel,
	char **ret_message)
{
	struct relabel *r;
	int err = 0;

	*ret_message = NULL;
	if (count > MAX_RULES)
		return -E2BIG;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->rules = calloc(count + 1, sizeof(*r->rules));
	if (!r->rules)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < count; i++)
		err = relabel_make_rule(r, &rules[i], ret_message);
	if (err) {
		relabel_destroy(r);
		return err;
	}
	*ret_relabel = r;
	return 0;
}

void relabel_destroy(struct relabel *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		relabel_rule_deinit(&r->rules[i]);
	free(r->rules);
	free(r);
}

/* ---- applying ------------------------------------------------------------------------------- */

/* Cuts at a character boundary. */
static void relabel_cut(char *value)
{
	size_t length = LABEL_VALUE_BYTES;

	if (strlen(value) <= length)
		return;
	while (length && ((unsigned char)value[length] & 0xc0) == 0x80)
		length--;
	value[length] = 0;
}

/* An invalid name is skipped, as in Prometheus. */
static int relabel_set(struct labels *labels, const char *name, char *value)
{
	int err;

	relabel_cut(value);
	err = labels_set(labels, name, value);
	return err == -EINVAL ? 0 : err;
}

static int relabel_join(const struct rule *rule, const struct labels *labels, struct buffer *out)
{
	for (size_t i = 0; i < rule->source_label_count; i++) {
		const char *value = labels_get(labels, rule->source_labels[i]);

		if (i)
			(void)buffer_string(out, rule->separator);
		(void)buffer_string(out, value ? value : "");
	}
	return buffer_append(out, "", 1);
}

static int expand(
	const struct rule *rule, const char *text, const char *template, struct buffer *out)
{
	int err = pattern_expand(rule->pattern, text, template, out);

	return err ? err : buffer_append(out, "", 1);
}

static int relabel_replace(const struct rule *rule, struct labels *labels, const char *text)
{
	autocall(buffer_deinit) struct buffer name, value;
	int matches = pattern_match(rule->pattern, text, strlen(text));
	int err;

	buffer_init(&name, TEXT_LIMIT);
	buffer_init(&value, TEXT_LIMIT);
	if (matches <= 0)
		return matches;
	err = expand(rule, text, rule->target_label, &name);
	if (!err)
		err = expand(rule, text, rule->replacement, &value);
	return err ? err : relabel_set(labels, (char *)name.bytes, (char *)value.bytes);
}

/*
 * The last eight bytes of the MD5, as in Prometheus: all agents must agree on the shard of a
 * target.
 */
static int hashmod(const struct rule *rule, struct labels *labels, const char *text)
{
	uint8_t digest[MD5_DIGEST_SIZE];
	struct md5_ctx context;
	uint64_t hash = 0;
	char number[24];

	md5_init(&context);
	md5_update(&context, strlen(text), (const uint8_t *)text);
	md5_digest(&context, sizeof(digest), digest);
	for (size_t i = sizeof(digest) - 8; i < sizeof(digest); i++)
		hash = hash << 8 | digest[i];
	snprintf(number, sizeof(number), "%" PRIu64, hash % rule->modulus);
	return relabel_set(labels, rule->target_label, number);
}

/* On a character that does not convert, the rest is left unchanged. */
static int change_characters(const char *text, bool upper, struct buffer *out)
{
	mbstate_t in = { 0 }, made = { 0 };
	char character[MB_LEN_MAX];
	wchar_t wide;

	while (*text) {
		size_t size = mbrtowc(&wide, text, strlen(text), &in);
		size_t made_size;

		if (size == 0 || size > MB_LEN_MAX)
			return buffer_string(out, text);
		wide = (wchar_t)(upper ? towupper((wint_t)wide) : towlower((wint_t)wide));
		made_size = wcrtomb(character, wide, &made);
		if (made_size > sizeof(character))
			return buffer_string(out, text);
		(void)buffer_append(out, character, made_size);
		text += size;
	}
	return out->error;
}

static int change_case(const struct rule *rule, struct labels *labels, const char *text)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
	autocall(buffer_deinit) struct buffer out;
	int err;

	buffer_init(&out, TEXT_LIMIT);
	err = change_characters(text, rule->action == RELABEL_UPPERCASE, &out);
	if (utf8) {
		uselocale(before);
		freelocale(utf8);
	}
	if (!err)
		err = buffer_append(&out, "", 1);
	return err ? err : relabel_set(labels, rule->target_label, (char *)out.bytes);
}

static int map_name(const struct rule *rule, struct labels *labels, const struct label *label)
{
	autocall(buffer_deinit) struct buffer name;
	int matches = pattern_match(rule->pattern, label->name, strlen(label->name));
	int err;

	buffer_init(&name, TEXT_LIMIT);
	if (matches <= 0)
		return matches;
	err = expand(rule, label->name, rule->replacement, &name);
	return err ? err : relabel_set(labels, (char *)name.bytes, label->value);
}

/* labelmap, labeldrop, labelkeep: over the names as they were before the rule. */
static int over_names(const struct rule *rule, struct labels *labels)
{
	autocall(labels_deinit) struct labels before = { 0 };
	int err = labels_copy(labels, &before);

	for (size_t i = 0; !err && i < before.count; i++) {
		const struct label *label = &before.items[i];
		int matches;

		if (rule->action == RELABEL_LABELMAP) {
			err = map_name(rule, labels, label);
			continue;
		}
		matches = pattern_match(rule->pattern, label->name, strlen(label->name));
		if (matches < 0)
			err = matches;
		else if ((matches == 1) == (rule->action == RELABEL_LABELDROP))
			err = labels_set(labels, label->name, "");
	}
	return err;
}

/* keep, drop, keepequal, dropequal: 1 = keep the target, 0 = drop it. */
static int decide(const struct rule *rule, const struct labels *labels, const char *text)
{
	const char *target = labels_get(labels, rule->target_label);
	bool equal = !strcmp(target ? target : "", text);
	int matches;

	if (rule->action == RELABEL_KEEPEQUAL)
		return equal;
	if (rule->action == RELABEL_DROPEQUAL)
		return !equal;
	matches = pattern_match(rule->pattern, text, strlen(text));
	if (matches < 0)
		return matches;
	return matches == (rule->action == RELABEL_KEEP);
}

/* 1 = keep the target, 0 = drop it. */
static int relabel_apply_rule(const struct rule *rule, struct labels *labels)
{
	autocall(buffer_deinit) struct buffer joined;
	const char *text;
	int err;

	buffer_init(&joined, TEXT_LIMIT);
	err = relabel_join(rule, labels, &joined);
	if (err)
		return err;
	text = (const char *)joined.bytes;
	switch (rule->action) {
	case RELABEL_KEEP:
	case RELABEL_DROP:
	case RELABEL_KEEPEQUAL:
	case RELABEL_DROPEQUAL:
		return decide(rule, labels, text);
	case RELABEL_REPLACE:
		err = relabel_replace(rule, labels, text);
		break;
	case RELABEL_HASHMOD:
		err = hashmod(rule, labels, text);
		break;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		err = change_case(rule, labels, text);
		break;
	case RELABEL_LABELMAP:
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		err = over_names(rule, labels);
		break;
	}
	return err ? err : 1;
}

int relabel_apply(const struct relabel *r, struct labels *labels, bool *ret_keep)
{
	int stays = 1;

	for (size_t i = 0; stays == 1 && i < r->count; i++)
		stays = relabel_apply_rule(&r->rules[i], labels);
	if (stays < 0)
		return stays;
	*ret_keep = stays == 1;
	return 0;
}
