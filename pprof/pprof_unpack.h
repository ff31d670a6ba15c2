/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unpacks a Profile without its samples (pprof_samples.h), in less time than the generated code:
 * for those who read many. Bytes may be anybody's.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "proto/profile.pb-c.h"

/*
 * The message is in MEMORY and is freed with it. SAMPLES: the fields of PLAIN from the first sample
 * to the last. Returns -EBADMSG if PLAIN is no profile, or MEMORY's error.
 */
int pprof_unpack(const struct buffer *plain, struct arena *memory,
	Perftools__Profiles__Profile **ret_message, struct cursor *ret_samples);
