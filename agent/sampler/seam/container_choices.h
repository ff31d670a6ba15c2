/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What whoever knows pods says of the containers of this machine, for the choice of what is
 * profiled: plain data. The sampler knows nothing of pods; it combines this with what it knows of a
 * process (agent/sampler/process/choosing.h).
 *
 * Containers are told of by the part of their ID that root's runtimes chose: the outermost. One
 * that only a user chose (`user-UID/…`) is nobody's pod.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

enum {
	CONTAINER_CHOICES_LIMIT = 65536,
	CONTAINER_CHOICE_ID = 64, /* hex digits */
	CONTAINER_CHOICE_UID_BYTES = 36 + 1,
};

enum container_choice_flags {
	CONTAINER_INCLUDED = 1 << 0, /* a selector of --include about its pod matches */
	CONTAINER_EXCLUDED = 1 << 1, /* one of --exclude does */
	CONTAINER_ASKED = 1 << 2, /* its pod asks to be profiled */
	CONTAINER_DECLINED = 1 << 3, /* its pod asks not to be, or does not ask where it must */
	CONTAINER_UNSETTLED = 1 << 4, /* it has a pod that is not known, or in dispute */
};

struct container_choice;

struct container_choices {
	struct container_choice *items;
	size_t count, capacity;
	struct map by_id; /* hash → index + 1 of the newest with it */
	/* A container that is not here may still turn out to be a pod's. */
	bool incomplete;
	/*
	 * Pods must be known: else what a process's control group says against `items` leaves the
	 * container without a pod.
	 */
	bool strict;
	/*
	 * CLOCK_MONOTONIC: a container that existed from the one to the other and is not here has
	 * no pod. Both 0: nobody knows.
	 */
	uint64_t listed_from_ns, listed_until_ns;
};

int container_choices_create(struct container_choices **ret_choices);
void container_choices_destroy(struct container_choices *c); /* C may be NULL */
void container_choices_freep(struct container_choices **c); /* for autocall() */
/*
 * Adds the container ID with FLAGS, of the pod POD_UID ("" = not told). One that was added before
 * gets the flags of both. Returns -EINVAL if ID is
 * not 64 hex digits long, -E2BIG over the limit, or -ENOMEM.
 */
int container_choices_add(
	struct container_choices *c, const char *id, const char *pod_uid, uint32_t flags);
/*
 * Whether the container at the beginning of CONTAINER_ID is here; if so, sets *RET_FLAGS. POD_UID:
 * of the pod that the container's control group names, "" = none. If that is another one, the
 * container cannot be included, and what else is said of it stays.
 */
bool container_choices_find(const struct container_choices *c, const char *container_id,
	const char *pod_uid, uint32_t *ret_flags);
/* Whether CONTAINER_ID begins with one that a pod can have. */
bool container_choices_concern(const char *container_id);
/* Whether A and B say the same of each container, whenever it was listed. Either may be NULL. */
bool container_choices_agree(const struct container_choices *a, const struct container_choices *b);
