/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Answers of the Docker Engine API (https://docs.docker.com/reference/api/engine/), which podman
 * has too and which may hold anything. One value is parsed at a time, within 16 MB of memory.
 *
 * A container of Kubernetes (cri-dockerd) has its pod in labels. Images have labels as well, and
 * Docker does not tell them apart: such a pod is a claim (containers.h).
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/server/metadata/containers.h"

enum {
	DOCKER_JSON_VALUE_BYTES = 2 << 20, /* of a container */
	DOCKER_JSON_EVENT_BYTES = 1 << 20,
	DOCKER_JSON_VERSION_BYTES = 64 << 10,
};

/* The answer to /version. NAME: podman, or docker. -EBADMSG: it is no answer to that; -ENOMEM. */
int docker_json_version(const void *bytes, size_t size, char name[CONTAINER_RUNTIME_BYTES]);
/*
 * An element of /containers/json, added to CONTAINERS. -EBADMSG: it is no object; -E2BIG: too large
 * when parsed; -ENOMEM.
 */
int docker_json_container(const void *bytes, size_t size, struct containers *containers);
/*
 * An element of /events: whether it says that containers have changed. A server may send what
 * nobody asked for. -EBADMSG, -E2BIG, -ENOMEM.
 */
int docker_json_event(const void *bytes, size_t size, bool *ret_changes);
