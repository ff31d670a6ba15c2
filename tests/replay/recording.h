/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recording (agent/sampler/recording/format.h) in memory, indexed by question. The file is
 * untrusted: every length is checked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/recording/format.h"
#include "base/buffer.h"
#include "base/map.h"

struct record {
	enum recording_type type;
	uint64_t time_ns;
	const uint8_t *body; /* points into the recording; unaligned */
	uint32_t size;
	uint64_t key; /* hash of the question; 0 = none */
	uint32_t next; /* next record with equal type and key; 0 = none */
};

struct recording {
	struct buffer bytes;
	struct recording_begin begin;
	bool names_timers; /* it has the calls of single timers */
	struct record *records; /* indexed from 1 */
	size_t count, capacity;
	struct map first, last; /* type and key → record */
	uint32_t *events; /* event records, in order */
	size_t event_count, event_capacity;
};

/*
 * Parses the contents of a file, which may be compressed. Returns -EBADMSG if it is no recording.
 */
int recording_parse(const void *bytes, size_t size, struct recording *ret_recording);
void recording_deinit(struct recording *r);
/* Returns the number of the first record with TYPE and KEY, 0 if there is none. */
uint32_t recording_first(const struct recording *r, enum recording_type type, uint64_t key);
/* Copies the first SIZE bytes of the body; returns false if it is shorter. */
bool recording_body(const struct record *record, void *bytes, size_t size);
/* Likewise, for an index. Older recordings know less of its file. */
bool recording_index_body(const struct record *record, struct recording_index *ret_index);
/* Returns the string after the first SIZE bytes of the body, "" if there is none. */
const char *recording_text(const struct record *record, size_t size);
uint64_t recording_text_key(const char *text);
uint64_t recording_id_key(const struct module_id *id);
/*
 * The key by which R has records of TYPE for ID. In older recordings the identity of a file with a
 * build ID lacks the file's numbers.
 */
uint64_t recording_wanted_id_key(
	const struct recording *r, enum recording_type type, const struct module_id *id);
uint64_t recording_number_key(uint64_t number);
