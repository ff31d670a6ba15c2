/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns against names of functions. The input is a pattern, a demangled and a linkage name, each
 * ended by a zero. A name's forms lie inside of it, `*` names everything, and a name that is also a
 * pattern names itself.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/glob.h"
#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/functions/vendored.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* Takes the text up to the next zero; the last one is what is left. */
static char *next_text(const uint8_t **data, size_t *size)
{
	size_t length = strnlen((const char *)*data, *size);
	char *text = strndup((const char *)*data, length);

	check(text);
	length += length < *size;
	*data += length;
	*size -= length;
	return text;
}

static bool lies_in(const struct name_form *form, const char *text)
{
	return form->text >= text && form->text + form->size <= text + strlen(text);
}

static void try_pattern(const char *text, const char *name, const struct name_forms *forms)
{
	autocall(function_patterns_deinit) struct function_patterns patterns = { 0 };
	const char *problem = NULL;
	int err = function_patterns_add(&patterns, text, &problem);
	const struct function_pattern *pattern;

	check(!err == (patterns.count == 1));
	if (err)
		return;
	pattern = &patterns.items[0];
	check(strlen(pattern->glob) > 0 && (!pattern->binary || *pattern->binary));
	if (!pattern->binary && !strcmp(pattern->glob, name))
		check(function_pattern_match(pattern, forms) == FUNCTION_EQUALS);
	if (!glob_has_wildcards(pattern->glob) && !strchr(pattern->glob, '\\'))
		check(glob_matches(pattern->glob, pattern->glob, strlen(pattern->glob)));
	(void)function_pattern_match(pattern, forms);
	if (pattern->binary)
		(void)function_pattern_names_file(pattern, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *pattern = next_text(&data, &size);
	autofree char *name = next_text(&data, &size);
	autofree char *linkage = next_text(&data, &size);
	struct name_forms forms;

	name_forms_of(name, linkage, &forms);
	check(forms.count >= 1 && forms.count <= NAME_FORMS);
	for (size_t i = 0; i < forms.count; i++) {
		check(lies_in(&forms.forms[i], name) || lies_in(&forms.forms[i], linkage));
		check(glob_matches("*", forms.forms[i].text, forms.forms[i].size));
	}
	(void)path_is_vendored(name);
	try_pattern(pattern, name, &forms);
	try_pattern(name, name, &forms);
	return 0;
}
