/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/symbolize/known_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_KNOWN = 1 << 20,
	SLOT_BYTES = 32, /* of an interned text besides its bytes */
};

void known_frames_init(struct known_frames *known, size_t limit_bytes)
{
	*known = (struct known_frames){ .limit_bytes = limit_bytes };
	arena_init(&known->lines, limit_bytes);
}

void known_frames_forget(struct known_frames *known)
{
	intern_deinit(&known->keys);
	intern_deinit(&known->texts);
	arena_reset(&known->lines);
	free(take(known->frames));
	known->capacity = 0;
	known->full = false;
}

void known_frames_deinit(struct known_frames *known)
{
	known_frames_forget(known);
	arena_deinit(&known->lines);
}

void known_frames_trim(struct known_frames *known)
{
	if (known->full)
		known_frames_forget(known);
}

size_t known_frames_bytes(const struct known_frames *known)
{
	const size_t texts = known->keys.bytes.total_bytes + known->texts.bytes.total_bytes;
	const size_t slots = known->keys.capacity + known->texts.capacity;

	return texts + slots * SLOT_BYTES + known->lines.total_bytes +
	       known->capacity * sizeof(*known->frames);
}

const struct known_frame *known_frames_get(
	const struct known_frames *known, const struct known_frame_key *key, const void *index)
{
	const struct known_frame *frame;
	uint32_t number;

	if (!intern_known(&known->keys, key, sizeof(*key), &number))
		return NULL;
	frame = &known->frames[number];
	return frame->index == index ? frame : NULL;
}

/* Makes TEXT one that stays. */
static int known_frames_keep_text(struct known_frames *known, const char **text)
{
	uint32_t number;
	int err = intern_string(&known->texts, *text, &number);

	if (!err)
		*text = intern_text(&known->texts, number);
	return err;
}

static int known_frames_keep_lines(
	struct known_frames *known, const struct known_frame *frame, struct index_frame **ret_lines)
{
	struct index_frame *lines =
		arena_alloc(&known->lines, frame->line_count * sizeof(*lines) + 1);
	int err = 0;

	if (!lines)
		return known->lines.error;
	for (size_t i = 0; i < frame->line_count && !err; i++) {
		lines[i] = frame->lines[i];
		err = known_frames_keep_text(known, &lines[i].name)
			      ?: known_frames_keep_text(known, &lines[i].linkage)
				      ?: known_frames_keep_text(known, &lines[i].file);
	}
	*ret_lines = lines;
	return err;
}

static int known_frames_begin(struct known_frames *known)
{
	int err = 0;

	if (!known->keys.count)
		err = intern_init(&known->keys, MAX_KNOWN, known->limit_bytes);
	if (!err && !known->texts.count)
		err = intern_init(&known->texts, MAX_KNOWN, known->limit_bytes);
	return err;
}

static int known_frames_add(struct known_frames *known, const struct known_frame_key *key,
	const struct known_frame *frame)
{
	struct index_frame *lines = NULL;
	uint32_t number;
	int err = known_frames_begin(known);

	if (!err && known_frames_bytes(known) > known->limit_bytes)
		err = -E2BIG;
	if (!err)
		err = known_frames_keep_lines(known, frame, &lines);
	if (!err)
		err = array_reserve(
			known->frames, known->capacity, known->keys.count + 1, MAX_KNOWN);
	if (!err)
		err = intern_bytes(&known->keys, key, sizeof(*key), &number);
	if (err)
		return err;
	known->frames[number] = *frame;
	known->frames[number].lines = lines;
	return 0;
}

void known_frames_put(struct known_frames *known, const struct known_frame_key *key,
	const struct known_frame *frame)
{
	if (!known->full)
		known->full = known_frames_add(known, key, frame) != 0;
}
