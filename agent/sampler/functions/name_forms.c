/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/functions/name_forms.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const qualifiers[] = { " const", " volatile", " &", " &&", " noexcept" };

static bool name_ends_in(const char *name, size_t size, const char *end)
{
	size_t length = strlen(end);

	return size > length && !memcmp(name + size - length, end, length);
}

/* SIZE without qualifiers of a member function, `run() const &`. */
static size_t name_without_qualifiers(const char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(qualifiers); i++) {
		if (name_ends_in(name, size, qualifiers[i]))
			return name_without_qualifiers(name, size - strlen(qualifiers[i]));
	}
	return size;
}

/* The length of NAME before its parameter list; SIZE if it has none. */
static size_t name_without_parameters(const char *name, size_t size)
{
	size_t end = name_without_qualifiers(name, size), depth = 0;

	if (!end || name[end - 1] != ')')
		return size;
	for (size_t at = end; at-- > 0;) {
		depth += name[at] == ')';
		depth -= name[at] == '(';
		if (!depth)
			return at ? at : size;
	}
	return size;
}

/* Whether the word at AT begins the name of an operator, which may have blanks and brackets. */
static bool name_is_operator(const char *name, size_t at, size_t size)
{
	static const char word[] = "operator";

	return size - at >= strlen(word) && !memcmp(name + at, word, strlen(word)) &&
	       (at == 0 || name[at - 1] == ' ' || name[at - 1] == ':');
}

/* Where NAME begins after a return type, which the demangled name of a template's instance has. */
static size_t name_after_return_type(const char *name, size_t size)
{
	size_t depth = 0, start = 0;

	for (size_t at = 0; at < size; at++) {
		if (!depth && name_is_operator(name, at, size))
			break;
		if (strchr("<({[", name[at]))
			depth++;
		else if (strchr(">)}]", name[at]) && depth)
			depth--;
		else if (name[at] == ' ' && !depth)
			start = at + 1;
	}
	return start;
}

static void name_forms_add(struct name_forms *forms, const char *text, size_t size)
{
	forms->forms[forms->count++] = (struct name_form){ text, size };
}

void name_forms_of(const char *name, const char *linkage, struct name_forms *ret_forms)
{
	struct name_forms forms = { 0 };
	size_t size = strlen(name), plain, start;

	name_forms_add(&forms, name, size);
	if (strcmp(name, linkage)) {
		name_forms_add(&forms, linkage, strlen(linkage));
		plain = name_without_parameters(name, size);
		start = plain < size ? name_after_return_type(name, plain) : 0;
		if (plain < size)
			name_forms_add(&forms, name, plain);
		if (start)
			name_forms_add(&forms, name + start, plain - start);
	}
	*ret_forms = forms;
}
