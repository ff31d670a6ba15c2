/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/server/metadata/joined.h"
#include "agent/server/metadata/metadata.h"

enum { ID_DIGITS = 64 };

void metadata_view_deinit(struct metadata_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		containers_unref(view->tables[i]);
	joined_unref(view->joined);
	*view = (struct metadata_view){ 0 };
}

/* The outermost ID of `ID` or `ID/INNER`; false for `user-UID/ID`, which a user chose. */
static bool metadata_outermost(const char *container_id, char ret_id[ID_DIGITS + 1])
{
	size_t length = strcspn(container_id, "/");

	if (length != ID_DIGITS)
		return false;
	memcpy(ret_id, container_id, ID_DIGITS);
	ret_id[ID_DIGITS] = 0;
	return true;
}

bool metadata_can_know(const struct metadata_view *view, const char *container_id)
{
	char id[ID_DIGITS + 1];

	return view->count && metadata_outermost(container_id, id);
}

const struct container_facts *metadata_view_find(
	const struct metadata_view *view, const char *container_id)
{
	const struct container_facts *found = NULL;
	char id[ID_DIGITS + 1];

	if (!metadata_outermost(container_id, id))
		return NULL;
	for (size_t i = 0; i < view->count; i++) {
		const struct container_facts *facts = containers_find(view->tables[i], id);

		if (found && facts &&
			(strcmp(found->pod->uid, facts->pod->uid) ||
				strcmp(found->name, facts->name)))
			return NULL;
		found = found ? found : facts;
	}
	return found && view->joined ? joined_find(view->joined, found) : found;
}
