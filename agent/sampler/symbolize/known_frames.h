/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names of frames in files, kept for the next reports: of what is sampled, most was sampled before,
 * by another process or in another window. Whoever asks again neither searches the index nor
 * touches its pages. What was said of a module holds as long as the module has the same index:
 * known_frames_forget() must be called before an index is replaced by another.
 *
 * Bounded in bytes. When the recent half is full, known_frames_trim() makes it the older one and
 * forgets that: what is asked for again moves to the recent half, so what is in use stays. Knows
 * nothing of modules and processes. One thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"
#include "symbolizer/index/index_frame.h"

/* Where a frame is. No padding: it is hashed as bytes. */
struct known_frame_key {
	uint64_t file_off;
	uint32_t module; /* number */
	uint32_t reserved; /* 0 */
};

struct known_frame {
	const void *index; /* which answered; only compared */
	const struct index_frame *lines; /* innermost first; valid until the next trim, forget */
	uint64_t address; /* ELF address */
	uint32_t segment; /* of the index */
	uint16_t line_count;
	bool named; /* else the only line, if there is one, is a stand-in: struct symbolized */
};

struct known_generation {
	struct intern keys, texts; /* unused until the first frame */
	struct arena lines; /* likewise */
	struct known_frame *frames; /* by number in `keys` */
	size_t capacity;
};

struct known_frames {
	size_t generation_bytes; /* limit of each */
	struct known_generation recent, older;
	bool full; /* a frame did not fit into the recent one */
};

void known_frames_init(struct known_frames *known, size_t limit_bytes);
void known_frames_deinit(struct known_frames *known);
/* NULL if it is not known, or INDEX is not that which answered. Valid until the next get or put. */
const struct known_frame *known_frames_get(
	struct known_frames *known, const struct known_frame_key *key, const void *index);
/* Keeps a copy of FRAME, if it fits. */
void known_frames_put(struct known_frames *known, const struct known_frame_key *key,
	const struct known_frame *frame);
/* Call between two reports: makes room if something did not fit. */
void known_frames_trim(struct known_frames *known);
void known_frames_forget(struct known_frames *known);
size_t known_frames_bytes(const struct known_frames *known);
