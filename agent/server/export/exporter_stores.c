/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/exporter_internal.h"
#include "base/cleanup.h"

size_t exporter_stores_find(const struct exporter_stores *s, const char *identity)
{
	size_t i = 0;

	while (i < s->count && strcmp(s->identities[i], identity))
		i++;
	return i;
}

/* Refuses two stores with one identity: they would share a position in the spool. */
static int refuse_twice(const struct exporter_stores *s, const struct remote_options *o,
	const char *identity, char **ret_message)
{
	size_t other = exporter_stores_find(s, identity);

	if (other == s->count)
		return 0;
	if (asprintf(ret_message,
		    "%s%sthe remote stores %s and %s are the same one (%s): remove one, or set a "
		    "name for one if they differ in headers or credentials",
		    o->place ? o->place : "", o->place ? ": " : "", s->names[other], o->name,
		    identity) < 0)
		*ret_message = NULL;
	return -EINVAL;
}

static int exporter_stores_add_store(
	struct exporter_stores *s, const struct remote_options *o, char **ret_message)
{
	autofree char *identity = NULL;
	int err = remote_create(s->transport, o, &s->remotes[s->count], ret_message);

	if (!err)
		err = remote_identity(o, &identity, ret_message);
	if (!err)
		err = refuse_twice(s, o, identity, ret_message);
	if (err) {
		remote_destroy(take(s->remotes[s->count]));
		return err;
	}
	snprintf(s->names[s->count], sizeof(s->names[0]), "%s", o->name);
	s->paced[s->count] = remote_type_has(o->type, REMOTE_PACED);
	s->identities[s->count++] = take(identity);
	return 0;
}

int exporter_stores_init(struct exporter_stores *s, const struct remote_options *options,
	size_t count, char **ret_message)
{
	int err;

	*s = (struct exporter_stores){ 0 };
	if (count > SPOOL_TARGETS_LIMIT)
		return -E2BIG;
	err = remotes_create(&s->transport);
	for (size_t i = 0; !err && i < count; i++)
		err = exporter_stores_add_store(s, &options[i], ret_message);
	return err;
}

void exporter_stores_deinit(struct exporter_stores *s)
{
	for (size_t i = 0; i < s->count; i++) {
		remote_destroy(s->remotes[i]);
		free(s->identities[i]);
	}
	remotes_destroy(s->transport);
	*s = (struct exporter_stores){ 0 };
}
