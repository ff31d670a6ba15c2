/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A runtime that speaks CRI: its containers are listed before its pods, so that whichever a
 * container belongs to is in the later list.
 */
#include "agent/server/metadata/cri_call.h"

enum cri_state { CRI_ASKED_VERSION, CRI_ASKED_CONTAINERS, CRI_ASKED_PODS };

struct cri_calls {
	enum cri_state state;
	struct cri_call call, events;
};

extern const struct runtime_protocol cri_protocol;
