/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes the notes of base/host.h: calls of the sampler, indexes that arrived, and the profiles
 * that were made of all that.
 */
#include <stdint.h>

#include "base/host.h"
#include "base/map.h"

struct writer;

struct recorded_notes {
	struct writer *writer; /* borrowed */
	uint32_t files; /* number of indexes written */
	struct map index_files; /* hash of an index → its number */
	struct map requests; /* tag → struct module_id, owned */
};

void recorded_notes_init(struct recorded_notes *n, struct writer *writer);
void recorded_notes_deinit(struct recorded_notes *n);
/* WHAT is as in notes.h. */
void recorded_notes_put(struct recorded_notes *n, enum host_note kind, const void *what);
