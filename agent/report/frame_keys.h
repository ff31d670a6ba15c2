/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which frames of a profile are the same, so that each is symbolized once. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/frame.h"

/* Identifies a frame within a profile. Frames with equal keys have equal names. */
struct frame_key {
	uint64_t address; /* for callers, of the call instruction */
	uint32_t module;
	/* Process of a private frame, tenant of a kernel address; else PROFILE_FRAME_FUNCTION or 0
	 */
	uint32_t context;
	uint32_t position, reserved; /* runtime frames only; other keys are shorter */
};

/*
 * The key of FRAME of process generation PROCESS. ANON_MODULE is the window's. Returns the key's
 * size in bytes; the rest of *RET_KEY is unused.
 */
size_t frame_key(uint32_t anon_module, uint32_t process, const struct profile_frame *frame,
	struct frame_key *ret_key);
/* True if FRAME means something else in another process. */
bool frame_is_private(uint32_t anon_module, const struct profile_frame *frame);
