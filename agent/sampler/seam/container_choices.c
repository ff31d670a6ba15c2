/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/seam/container_choices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"

struct container_choice {
	char id[CONTAINER_CHOICE_ID]; /* without NUL */
	char pod_uid[CONTAINER_CHOICE_UID_BYTES]; /* "" = not told, or too long to compare */
	uint32_t flags;
	uint32_t next; /* with the same hash, index + 1; 0 = none */
};

int container_choices_create(struct container_choices **ret_choices)
{
	struct container_choices *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	map_init(&c->by_id, CONTAINER_CHOICES_LIMIT);
	*ret_choices = c;
	return 0;
}

void container_choices_destroy(struct container_choices *c)
{
	if (!c)
		return;
	map_deinit(&c->by_id);
	free(c->items);
	free(c);
}

void container_choices_freep(struct container_choices **c)
{
	container_choices_destroy(*c);
}

static struct container_choice *container_choices_get(
	const struct container_choices *c, const char *id, uint64_t *ret_first)
{
	*ret_first = 0;
	(void)map_get(&c->by_id, hash_bytes(id, CONTAINER_CHOICE_ID), ret_first);
	for (uint64_t at = *ret_first; at; at = c->items[at - 1].next) {
		if (!memcmp(c->items[at - 1].id, id, CONTAINER_CHOICE_ID))
			return &c->items[at - 1];
	}
	return NULL;
}

int container_choices_add(
	struct container_choices *c, const char *id, const char *pod_uid, uint32_t flags)
{
	struct container_choice *there;
	uint64_t first;
	int err;

	if (strlen(id) != CONTAINER_CHOICE_ID)
		return -EINVAL;
	there = container_choices_get(c, id, &first);
	if (there) {
		there->flags |= flags;
		return 0;
	}
	err = array_reserve(c->items, c->capacity, c->count + 1, CONTAINER_CHOICES_LIMIT);
	if (!err)
		err = map_set(&c->by_id, hash_bytes(id, CONTAINER_CHOICE_ID), c->count + 1);
	if (err)
		return err;
	there = &c->items[c->count++];
	memcpy(there->id, id, CONTAINER_CHOICE_ID);
	there->pod_uid[0] = 0;
	if (strlen(pod_uid) < sizeof(there->pod_uid))
		memcpy(there->pod_uid, pod_uid, strlen(pod_uid) + 1);
	there->flags = flags;
	there->next = (uint32_t)first;
	return 0;
}

bool container_choices_concern(const char *container_id)
{
	return strcspn(container_id, "/") == CONTAINER_CHOICE_ID;
}

/* What of FLAGS is left where the control group names another pod. */
static uint32_t container_choices_disputed(const struct container_choices *c, uint32_t flags)
{
	flags &= ~(uint32_t)(CONTAINER_INCLUDED | CONTAINER_ASKED);
	return c->strict ? flags | CONTAINER_UNSETTLED : flags;
}

bool container_choices_find(const struct container_choices *c, const char *container_id,
	const char *pod_uid, uint32_t *ret_flags)
{
	const struct container_choice *found;
	uint64_t first;

	if (!container_choices_concern(container_id))
		return false;
	found = container_choices_get(c, container_id, &first);
	if (!found)
		return false;
	*ret_flags = found->flags;
	if (*pod_uid && *found->pod_uid && strcmp(pod_uid, found->pod_uid) != 0)
		*ret_flags = container_choices_disputed(c, found->flags);
	return true;
}

bool container_choices_agree(const struct container_choices *a, const struct container_choices *b)
{
	if (!a || !b)
		return a == b;
	if (a->count != b->count || a->incomplete != b->incomplete || a->strict != b->strict)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		uint64_t first;
		const struct container_choice *other =
			container_choices_get(b, a->items[i].id, &first);

		if (!other || other->flags != a->items[i].flags ||
			strcmp(other->pod_uid, a->items[i].pod_uid) != 0)
			return false;
	}
	return true;
}
