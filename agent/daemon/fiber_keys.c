/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/fiber_keys.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* What series say of a process, and what servers go by: no program says it of itself. */
static bool fiber_keys_is_reserved(const char *name)
{
	static const char *const names[] = {
		"node",
		"service_name",
		"executable",
		"namespace",
		"pod",
		"pod_uid",
		"container",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return profile_fiber_key_is_taken(name);
}

static bool fiber_keys_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool fiber_keys_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void fiber_keys_name(struct fiber_key *key)
{
	char *to = key->name;

	if (fiber_keys_is_digit(*key->key))
		*to++ = '_';
	for (const char *c = key->key; *c; c++)
		*to++ = fiber_keys_is_letter(*c) || fiber_keys_is_digit(*c) ? *c : '_';
	*to = '\0';
}

const char *fiber_keys_add(struct fiber_keys *keys, const char *key)
{
	struct fiber_key added = { .key = "" };

	if (strlen(key) > ABI_FIBER_KEY_BYTES)
		return "such a long label of a goroutine is not read";
	snprintf(added.key, sizeof(added.key), "%s", key);
	fiber_keys_name(&added);
	/* Labels that begin so exist only while rules are applied. */
	if (!strncmp(added.name, "__", 2))
		return "its name would begin with __, and such labels are not sent";
	if (fiber_keys_is_reserved(added.name))
		return "this is a label of fathom's own";
	for (size_t i = 0; i < keys->count; i++) {
		if (!strcmp(keys->of[i].key, key))
			return NULL;
		if (!strcmp(keys->of[i].name, added.name))
			return "two labels of goroutines would have the same name";
	}
	if (keys->count == ABI_FIBER_LABELS)
		return "there are too many labels of goroutines";
	keys->of[keys->count++] = added;
	return NULL;
}

void fiber_keys_values(const struct fiber_keys *keys, const struct profile_fiber *fiber,
	const char *ret_values[ABI_FIBER_LABELS])
{
	struct profile_fiber_label label;
	const char *at = NULL;

	for (size_t i = 0; i < keys->count; i++)
		ret_values[i] = "";
	while (keys->count && profile_fiber_next(fiber, &at, &label))
		for (size_t i = 0; i < keys->count; i++)
			if (!strcmp(keys->of[i].key, label.key))
				ret_values[i] = label.value;
}
