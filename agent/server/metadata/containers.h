/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The containers of one runtime and their pods, as it told of them at one time. Filled by one
 * thread, then finished; from then on it does not change, and any thread may read it and hold
 * references.
 *
 * Whatever it is told is foreign. Names that identify something (namespace, pod, container, UID)
 * are taken whole or not at all: a cut name could be another's. Two containers or two pods with the
 * same ID but different content are a conflict: neither is found.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONTAINERS_LIMIT = 32768,
	CONTAINER_RUNTIME_BYTES = 64, /* of its name */
	CONTAINER_NAME_LIMIT = 253, /* of anything in Kubernetes: a DNS subdomain (RFC 1123) */
	CONTAINER_KEY_LIMIT = 317, /* of a label or annotation: PREFIX/NAME, 253 + 1 + 63 */
	CONTAINER_VALUE_LIMIT = 2048,
	CONTAINER_PAIRS_LIMIT = 256, /* labels, or annotations, of one pod */
};

struct container_pair {
	const char *name, *value; /* UTF-8 without control characters */
};

/* Sorted by name, each name once. */
struct container_pairs {
	const struct container_pair *items;
	size_t count;
};

struct container_pod {
	const char *id; /* of its sandbox */
	const char *name, *namespace, *uid; /* "" = not told */
	struct container_pairs labels, annotations;
	/*
	 * Told by labels of its containers, which come from images, too: it counts only if the
	 * control group says the same.
	 */
	bool is_claim;
	/* The owner that made it, as the API server tells: ReplicaSet, Job, …; NULL = not told. */
	const char *controller_kind, *controller_name;
};

struct container_facts {
	const char *id; /* 64 hex digits */
	const char *name; /* in its pod; "" = it is the pod's sandbox */
	const char *image; /* "" = not told */
	const char *runtime; /* of the table: containerd, cri-o, docker */
	struct container_pairs labels; /* its own; only what is in no pod has any */
	const struct container_pod *pod; /* all texts are "" if it is in none */
};

/* What was not taken over, counted by containers_*(). */
struct containers_refused {
	uint64_t invalid; /* containers and pods without a valid ID or name */
	uint64_t conflicts;
	uint64_t over_limit;
	uint64_t pairs; /* labels and annotations that were too many, too long or without a valid
			   name */
};

struct containers;

/* Whether TEXT, which may be NULL, can identify something as it is. */
bool container_is_name(const char *text);

/* RUNTIME: its name for itself; foreign. The new table has one reference. */
int containers_create(const char *runtime, struct containers **ret_containers);
struct containers *containers_ref(struct containers *c);
void containers_unref(struct containers *c); /* C may be NULL */

/* Foreign texts; NULL is "". Errors: -ENOMEM only, else it is refused and counted. */
struct containers_pod {
	const char *id, *name, *namespace, *uid;
	const struct container_pair *labels, *annotations; /* in any order, may be NULL */
	size_t label_count, annotation_count;
	bool is_claim;
};
int containers_add_pod(struct containers *c, const struct containers_pod *pod);
struct containers_container {
	const char *id, *name, *image;
	const char *pod_id;
	bool is_alone; /* in no pod; POD_ID is not looked at */
	const struct container_pair *labels; /* in any order, may be NULL */
	size_t label_count;
};
int containers_add(struct containers *c, const struct containers_container *container);
/*
 * Connects containers with their pods, whichever came first. Then adds what OLD (NULL = none) knew
 * and the runtime no longer tells of, unless it was last told of before KEEP_SINCE_NS: its
 * processes may still have samples in the current window. NOW_NS: when this table was told.
 */
int containers_finish(struct containers *c, const struct containers *old, uint64_t now_ns,
	uint64_t keep_since_ns);

/* Finished tables only. NULL if ID is unknown, has no known pod or is in conflict. */
const struct container_facts *containers_find(const struct containers *c, const char *id);
/* All that can be found, one after the other: start with *AT = 0; NULL at the end. */
const struct container_facts *containers_next(const struct containers *c, size_t *at);
/* Else it has a name, and labels of its own, only. */
bool container_is_in_pod(const struct container_facts *facts);
/*
 * Whether FACTS can be of the pod that the container's control group names by UID: "" or NULL, or a
 * runtime that tells none, says nothing, which is not enough for a claim. What is in no pod is of
 * none.
 */
bool container_is_of_pod(const struct container_facts *facts, const char *uid);
/* Any ID that was told of, found or not, starting with *ITERATOR = 0; NULL at the end. */
const char *containers_next_id(const struct containers *c, size_t *iterator);
/* When the runtime was asked, and had answered in full; CLOCK_MONOTONIC. Both 0: not said. */
struct containers_times {
	uint64_t from_ns, until_ns;
};
void containers_set_times(struct containers *c, struct containers_times times);
struct containers_times containers_times(const struct containers *c);
size_t containers_count(const struct containers *c); /* without those of OLD */
size_t containers_pod_count(const struct containers *c);
const struct containers_refused *containers_refused(const struct containers *c);
