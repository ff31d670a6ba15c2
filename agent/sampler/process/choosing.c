/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container that nobody has told of may be a pod's of which nobody has told yet, or none:
 * Docker's beside Kubernetes'. The runtimes' list tells, if the container existed while it was
 * made. So the first and the last time that each such container was seen are kept.
 */
#include "agent/sampler/process/choosing.h"

#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/processes.h"
#include "agent/sampler/process/selection.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"

enum { SEEN_LIMIT = 8192 };

struct choosing_seen {
	char id[CONTAINER_CHOICE_ID]; /* without NUL */
	uint64_t first_ns, last_ns;
	bool has_no_pod; /* once found out, it stays so */
};

void choosing_init(struct choosing *c)
{
	*c = (struct choosing){ 0 };
	map_init(&c->seen_by_id, SEEN_LIMIT);
}

void choosing_deinit(struct choosing *c)
{
	container_choices_destroy(c->choices);
	free(c->seen);
	map_deinit(&c->seen_by_id);
}

void choosing_select(struct choosing *c, const struct selection *selection)
{
	c->selection = selection;
}

bool choosing_take(struct choosing *c, struct container_choices *choices)
{
	bool same = container_choices_agree(c->choices, choices);

	container_choices_destroy(c->choices);
	c->choices = choices;
	return !same;
}

bool choosing_is_needed(const struct choosing *c)
{
	return c->selection || c->choices;
}

/* ---- containers that nobody has told of ----------------------------------------------------- */

/* Begins anew when there are too many: those that still exist are seen again. */
static struct choosing_seen *choosing_begin_seen(struct choosing *c, uint64_t hash, const char *id)
{
	struct choosing_seen *seen;

	if (c->seen_count == SEEN_LIMIT) {
		map_clear(&c->seen_by_id);
		c->seen_count = 0;
	}
	if (array_reserve(c->seen, c->seen_capacity, c->seen_count + 1, SEEN_LIMIT) ||
		map_set(&c->seen_by_id, hash, c->seen_count + 1))
		return NULL;
	seen = &c->seen[c->seen_count++];
	*seen = (struct choosing_seen){ .first_ns = UINT64_MAX };
	memcpy(seen->id, id, CONTAINER_CHOICE_ID);
	return seen;
}

/* Of two with one hash the one that was seen last is kept. NULL for lack of memory. */
static struct choosing_seen *choosing_seen(struct choosing *c, const char *id)
{
	uint64_t hash = hash_bytes(id, CONTAINER_CHOICE_ID), at;
	struct choosing_seen *seen;

	if (!map_get(&c->seen_by_id, hash, &at))
		return choosing_begin_seen(c, hash, id);
	seen = &c->seen[at - 1];
	if (!memcmp(seen->id, id, CONTAINER_CHOICE_ID))
		return seen;
	*seen = (struct choosing_seen){ .first_ns = UINT64_MAX };
	memcpy(seen->id, id, CONTAINER_CHOICE_ID);
	return seen;
}

/* Whether the container ID, which is not in `choices`, has no pod. It existed at TIME_NS. */
static bool choosing_has_no_pod(struct choosing *c, const char *id, uint64_t time_ns)
{
	const struct container_choices *choices = c->choices;
	struct choosing_seen *seen;

	if (!choices->incomplete)
		return true;
	seen = choosing_seen(c, id);
	if (!seen)
		return false;
	seen->first_ns = MIN(seen->first_ns, time_ns);
	seen->last_ns = MAX(seen->last_ns, time_ns);
	if (choices->listed_until_ns && seen->first_ns <= choices->listed_from_ns &&
		seen->last_ns >= choices->listed_until_ns)
		seen->has_no_pod = true;
	return seen->has_no_pod;
}

/* What is known of P's container at TIME_NS. */
static uint32_t choosing_flags(struct choosing *c, const struct process *p, uint64_t time_ns)
{
	const char *id = p->container_id;
	uint32_t flags = 0;

	if (!c->choices || !container_choices_concern(id) ||
		container_choices_find(c->choices, id, p->pod_uid, &flags))
		return flags;
	return choosing_has_no_pod(c, id, time_ns) ? 0 : CONTAINER_UNSETTLED;
}

/* ---- answers -------------------------------------------------------------------------------- */

static enum choosing_answer choosing_include(
	const struct selection *s, const struct process *p, uint32_t flags)
{
	bool wanted = selection_is_empty(s, SELECTION_INCLUDE) || flags & CONTAINER_INCLUDED ||
		      selection_matches(s, SELECTION_INCLUDE, p);

	return wanted ? CHOICE_WANTED : CHOICE_UNWANTED;
}

enum choosing_answer choosing_of(struct choosing *c, const struct process *p, uint64_t time_ns)
{
	const struct selection *s = c->selection;
	uint32_t flags;

	if (selection_matches(s, SELECTION_EXCLUDE, p))
		return CHOICE_UNWANTED;
	flags = choosing_flags(c, p, time_ns);
	if (flags & (CONTAINER_EXCLUDED | CONTAINER_DECLINED))
		return CHOICE_UNWANTED;
	if (flags & CONTAINER_UNSETTLED) {
		c->missed++;
		return CHOICE_OPEN;
	}
	if (flags & CONTAINER_ASKED)
		return CHOICE_WANTED;
	return choosing_include(s, p, flags);
}

bool choosing_keeps(struct choosing *c, const struct process *p, uint64_t time_ns)
{
	uint32_t flags = choosing_flags(c, p, time_ns);

	if (flags & (CONTAINER_EXCLUDED | CONTAINER_DECLINED | CONTAINER_UNSETTLED))
		return false;
	return !p->open || flags & CONTAINER_ASKED ||
	       choosing_include(c->selection, p, flags) == CHOICE_WANTED;
}

bool choosing_refuses_cgroup(const struct choosing *c, const char *container_id,
	const char *pod_uid, const struct cgroup_paths *paths)
{
	const struct selection *s = c->selection;
	uint32_t flags = 0;

	if (selection_matches_cgroup(s, SELECTION_EXCLUDE, container_id, paths))
		return true;
	if (c->choices && container_choices_concern(container_id) &&
		!container_choices_find(c->choices, container_id, pod_uid, &flags) &&
		c->choices->incomplete)
		return false;
	if (flags & (CONTAINER_EXCLUDED | CONTAINER_DECLINED))
		return true;
	if (flags & (CONTAINER_UNSETTLED | CONTAINER_ASKED | CONTAINER_INCLUDED))
		return false;
	return !selection_is_empty(s, SELECTION_INCLUDE) &&
	       !selection_needs_process(s, SELECTION_INCLUDE) &&
	       !selection_matches_cgroup(s, SELECTION_INCLUDE, container_id, paths);
}
