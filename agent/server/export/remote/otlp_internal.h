/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by otlp.c (the tables), otlp_profiles.c (the samples), otlp_attributes.c and otlp_links.c.
 */
#include "agent/server/export/remote/otlp.h"
#include "base/arena.h"
#include "base/intern.h"
#include "proto/otlp_profiles.pb-c.h"
#include "proto/profile.pb-c.h"

enum {
	OTLP_LABELS_LIMIT = 64, /* of a pprof sample */
	OTLP_STACK_LIMIT = 4096, /* locations of a sample */
	OTLP_ATTRIBUTES_LIMIT = OTLP_LABELS_LIMIT + 8, /* of one sample, mapping or location */
};

/* The state of one encoding. The arena owns the messages. */
struct otlp {
	const struct payload *payload;
	const Perftools__Profiles__Profile *pprof;
	struct arena arena;
	struct intern strings; /* string_table */
	struct intern texts; /* attribute values */
	struct intern attributes; /* struct attribute_record: attribute_table */
	struct intern stacks; /* int32_t[]: stack_table */
	struct intern links; /* a trace's id, a span's: link_table */
	int32_t *string_of; /* by index in pprof's table; -1 = not yet */
	const char **file_hashes; /* hex, by mapping id; NULL = unknown */
};

/* A set of attribute indices, in order of first use. */
struct attribute_set {
	int32_t indices[OTLP_ATTRIBUTES_LIMIT];
	uint32_t keys[OTLP_ATTRIBUTES_LIMIT];
	size_t count;
};

/* COUNT zeroed elements; NULL if over the limit. */
void *otlp_alloc(struct otlp *o, size_t count, size_t size);
/* -E2BIG, -ENOMEM. */
int otlp_string(struct otlp *o, const char *text, int32_t *ret_index);
/* "" if NUMBER is not in the table. */
const char *otlp_pprof_text(const struct otlp *o, int64_t number);
/* The index of pprof's string NUMBER. -EBADMSG if it is not in the table. -E2BIG, -ENOMEM. */
int otlp_pprof_string(struct otlp *o, int64_t number, int32_t *ret_index);

/* An existing key keeps its value: keys are unique within a set. */
int otlp_add_text(struct otlp *o, struct attribute_set *set, const char *key, const char *text);
int otlp_add_number(struct otlp *o, struct attribute_set *set, const char *key, int64_t number,
	const char *unit);
int otlp_add_true(struct otlp *o, struct attribute_set *set, const char *key);
/* Copies SET's indices into the arena; NULL and 0 if it is empty. */
int otlp_keep_attributes(
	struct otlp *o, const struct attribute_set *set, size_t *ret_count, int32_t **ret_indices);

/* Adds the series' labels that belong on each sample. */
int otlp_thread_attributes(struct otlp *o, struct attribute_set *set);
int otlp_sample_attributes(
	struct otlp *o, const Perftools__Profiles__Sample *sample, struct attribute_set *set);
/*
 * Sets *RET_INDEX to the link that SAMPLE's labels trace_id and span_id make; 0 = they are no ids
 * in hexadecimal. They stay attributes as well.
 */
int otlp_link(struct otlp *o, const Perftools__Profiles__Sample *sample, int32_t *ret_index);
int otlp_link_table(struct otlp *o, Otlp__ProfilesDictionary *dictionary);
int otlp_mapping_attributes(
	struct otlp *o, const Perftools__Profiles__Mapping *mapping, struct attribute_set *set);
int otlp_location_attributes(
	struct otlp *o, const Perftools__Profiles__Location *location, struct attribute_set *set);
int otlp_resource(struct otlp *o, Otlp__Resource *resource);
int otlp_attribute_table(struct otlp *o, Otlp__ProfilesDictionary *dictionary);
