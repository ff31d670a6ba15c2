/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recording (agent/sampler/recording/format.h) in memory, with its records by question. The file
 * is trusted no more than any other: each length is checked.
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
	const uint8_t *body; /* into the bytes of the recording; not aligned */
	uint32_t size;
	uint64_t key; /* a hash of the question, 0 = none */
	uint32_t next; /* record of the same type and key, later; 0 = none */
};

struct recording {
	struct buffer bytes;
	struct recording_begin begin;
	struct record *records; /* from 1 */
	size_t count, capacity;
	struct map first, last; /* type and key → record */
	uint32_t *events; /* records of what happens, in order */
	size_t event_count, event_capacity;
};

/* Takes the bytes of a file, which may be compressed. -EBADMSG: it is no recording. */
int recording_parse(const void *bytes, size_t size, struct recording *ret_recording);
void recording_deinit(struct recording *r);
/* The first record of TYPE and KEY, 0 = there is none. */
uint32_t recording_first(const struct recording *r, enum recording_type type, uint64_t key);
/* The first SIZE bytes of the body; false: it is shorter. */
bool recording_body(const struct record *record, void *bytes, size_t size);
/* The text that follows SIZE bytes of the body; "" if there is none. */
const char *recording_text(const struct record *record, size_t size);
uint64_t recording_text_key(const char *text);
uint64_t recording_id_key(const struct module_id *id);
uint64_t recording_number_key(uint64_t number);
