/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"

static const struct {
	const char *name;
	const struct protocol *protocol;
	unsigned int properties;
} remote_kinds[] = {
#define REMOTE_KIND(id, name, object, properties) [REMOTE_##id] = { name, &object, properties },
#include "agent/server/export/remote/remote_kinds.def"
#undef REMOTE_KIND
};

const char *remote_type_name(enum remote_type type)
{
	return remote_kinds[type].name;
}

bool remote_type_has(enum remote_type type, enum remote_property property)
{
	return remote_kinds[type].properties & property;
}

const struct protocol *remote_type_protocol(enum remote_type type)
{
	return remote_kinds[type].protocol;
}

int remote_type_find(const char *name, enum remote_type *ret_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(remote_kinds); i++) {
		if (strcmp(remote_kinds[i].name, name))
			continue;
		*ret_type = (enum remote_type)i;
		return 0;
	}
	return -ENOENT;
}

void remote_type_list(char *text, size_t size)
{
	const size_t last = ARRAY_SIZE(remote_kinds) - 1;
	size_t used = 0;

	for (size_t i = 0; i <= last && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s",
			i == 0      ? ""
			: i == last ? " or "
				    : ", ",
			remote_kinds[i].name);
}
