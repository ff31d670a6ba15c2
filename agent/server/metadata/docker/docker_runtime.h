/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A runtime that speaks the Docker Engine API: Docker, and podman's service. Events are asked for
 * before the containers are listed, so that what changes meanwhile is not missed. Containers that
 * do not run are listed, too: one has its name before its first sample.
 */
#include <stdint.h>

#include "agent/server/metadata/json_call.h"

enum docker_state { DOCKER_ASKED_VERSION, DOCKER_ASKED_CONTAINERS };

struct docker_calls {
	enum docker_state state;
	struct json_call call, events;
	uint64_t event_count; /* of this stream */
};

extern const struct runtime_protocol docker_protocol;
