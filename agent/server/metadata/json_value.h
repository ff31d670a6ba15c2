/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Foreign JSON as jansson's values, parsed within 16 MB of memory each. jansson's allocator belongs
 * to the whole program: nothing else may use jansson.
 */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/metadata/containers.h"
#include "base/arena.h"

/* -EBADMSG: no JSON; -E2BIG: too large when parsed; -ENOMEM. The caller frees the value. */
int json_value_load(const void *bytes, size_t size, json_t **ret_value);
void json_value_free(json_t **value); /* for autocall(); *VALUE may be NULL */
/* Valid as long as OBJECT. "" if there is no such text, or if it has a NUL, which no name may. */
const char *json_value_text(const json_t *object, const char *key);
/* The text, cut and printable. */
void json_value_printable(const json_t *object, const char *key, char *text, size_t size);
/*
 * The members of OBJECT (NULL = none), for container_pairs_copy(); what is no text is "". Valid as
 * long as OBJECT and ARENA. Adds to *REFUSED those beyond the first 4096. -E2BIG, -ENOMEM.
 */
int json_value_pairs(struct arena *arena, json_t *object, const struct container_pair **ret_pairs,
	size_t *ret_count, uint64_t *refused);
