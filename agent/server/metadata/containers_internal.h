/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What containers.c and containers_finish.c share. */
#include <stdatomic.h>

#include "agent/server/metadata/containers.h"
#include "base/arena.h"
#include "base/map.h"

enum { CONTAINERS_CHAIN_LIMIT = 16 }; /* entries with one hash: somebody makes collisions */

/* A container, or a pod: the sandbox has an ID of the same kind. */
struct entry {
	const char *id, *pod_id; /* of a pod, and of what is in none: "" */
	struct container_facts facts;
	struct container_pod pod;
	uint64_t told_ns;
	uint32_t next; /* with the same hash, index + 1 */
	bool is_alone; /* in no pod */
	bool conflict, kept; /* kept: of the table before */
};

struct table {
	struct map by_id; /* hash → index + 1 */
	struct entry **all;
	size_t count, capacity;
};

struct containers {
	atomic_uint references;
	struct arena arena;
	const char *runtime;
	struct table containers, pods;
	size_t kept_containers, kept_pods;
	struct containers_refused refused;
	struct containers_times times;
};

/* NULL if there is none. *RET_CHAIN: how many entries have the ID's hash. */
struct entry *containers_table_find(const struct table *t, const char *id, unsigned int *ret_chain);
/* -E2BIG, -ENOMEM. */
int containers_table_add(struct table *t, struct entry *entry);
/* ERR, but 0 for -E2BIG: what is over a limit is counted and left out. */
int containers_count_limit(struct containers *c, int err);
/* TEXT (NULL = "") in C's memory. -E2BIG, -ENOMEM. */
int containers_copy(struct containers *c, const char *text, const char **ret_copy);
/* A new entry of ID, or NULL and an error. */
struct entry *containers_entry(struct containers *c, const char *id, int *ret_err);
/* True if ID is known, or cannot be: then nothing is to be added. POD_ID NULL: in no pod. */
bool containers_has(struct containers *c, const char *id, const char *pod_id, const char *name);
