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
	*known = (struct known_frames){ .generation_bytes = limit_bytes / 2 };
}

static void generation_deinit(struct known_generation *g)
{
	intern_deinit(&g->keys);
	intern_deinit(&g->texts);
	arena_deinit(&g->lines);
	free(take(g->frames));
	*g = (struct known_generation){ 0 };
}

void known_frames_forget(struct known_frames *known)
{
	generation_deinit(&known->recent);
	generation_deinit(&known->older);
	known->full = false;
}

void known_frames_deinit(struct known_frames *known)
{
	known_frames_forget(known);
}

void known_frames_trim(struct known_frames *known)
{
	if (!known->full)
		return;
	generation_deinit(&known->older);
	known->older = known->recent;
	known->recent = (struct known_generation){ 0 };
	known->full = false;
}

static size_t generation_bytes(const struct known_generation *g)
{
	const size_t texts = g->keys.bytes.total_bytes + g->texts.bytes.total_bytes;
	const size_t slots = g->keys.capacity + g->texts.capacity;

	return texts + slots * SLOT_BYTES + g->lines.total_bytes + g->capacity * sizeof(*g->frames);
}

size_t known_frames_bytes(const struct known_frames *known)
{
	return generation_bytes(&known->recent) + generation_bytes(&known->older);
}

static const struct known_frame *generation_get(
	const struct known_generation *g, const struct known_frame_key *key, const void *index)
{
	const struct known_frame *frame;
	uint32_t number;

	if (!intern_known(&g->keys, key, sizeof(*key), &number))
		return NULL;
	frame = &g->frames[number];
	return frame->index == index ? frame : NULL;
}

const struct known_frame *known_frames_get(
	struct known_frames *known, const struct known_frame_key *key, const void *index)
{
	const struct known_frame *frame = generation_get(&known->recent, key, index);

	if (frame)
		return frame;
	frame = generation_get(&known->older, key, index);
	if (frame)
		known_frames_put(known, key, frame);
	return frame;
}

/* Makes TEXT one that stays. */
static int generation_keep_text(struct known_generation *g, const char **text)
{
	uint32_t number;
	int err = intern_string(&g->texts, *text, &number);

	if (!err)
		*text = intern_text(&g->texts, number);
	return err;
}

static int generation_keep_lines(
	struct known_generation *g, const struct known_frame *frame, struct index_frame **ret_lines)
{
	struct index_frame *lines = arena_alloc(&g->lines, frame->line_count * sizeof(*lines) + 1);
	int err = 0;

	if (!lines)
		return g->lines.error;
	for (size_t i = 0; i < frame->line_count && !err; i++) {
		lines[i] = frame->lines[i];
		err = generation_keep_text(g, &lines[i].name)
			      ?: generation_keep_text(g, &lines[i].linkage)
				      ?: generation_keep_text(g, &lines[i].file);
	}
	*ret_lines = lines;
	return err;
}

static int generation_begin(struct known_generation *g, size_t limit_bytes)
{
	int err = 0;

	if (!g->lines.limit_bytes)
		arena_init(&g->lines, limit_bytes);
	if (!g->keys.count)
		err = intern_init(&g->keys, MAX_KNOWN, limit_bytes);
	if (!err && !g->texts.count)
		err = intern_init(&g->texts, MAX_KNOWN, limit_bytes);
	return err;
}

static int generation_add(struct known_generation *g, size_t limit_bytes,
	const struct known_frame_key *key, const struct known_frame *frame)
{
	struct index_frame *lines = NULL;
	uint32_t number;
	int err = generation_begin(g, limit_bytes);

	if (!err && generation_bytes(g) > limit_bytes)
		err = -E2BIG;
	if (!err)
		err = generation_keep_lines(g, frame, &lines);
	if (!err)
		err = array_reserve(g->frames, g->capacity, g->keys.count + 1, MAX_KNOWN);
	if (!err)
		err = intern_bytes(&g->keys, key, sizeof(*key), &number);
	if (err)
		return err;
	g->frames[number] = *frame;
	g->frames[number].lines = lines;
	return 0;
}

void known_frames_put(struct known_frames *known, const struct known_frame_key *key,
	const struct known_frame *frame)
{
	if (!known->full)
		known->full =
			generation_add(&known->recent, known->generation_bytes, key, frame) != 0;
}
