/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The answers of a container runtime (proto/cri.proto), which may hold anything. Items are decoded
 * one by one, each with a limit of its memory: two bytes of a message can take a hundred of ours.
 */
#include <stddef.h>

#include "agent/server/metadata/containers.h"

/* The body of VersionResponse. NAME: of the runtime, printable. -EBADMSG, -ENOMEM. */
int cri_decode_version(const void *bytes, size_t size, char name[CONTAINER_RUNTIME_BYTES]);
/*
 * The bodies of ListPodSandboxResponse and ListContainersResponse, added to CONTAINERS. -EBADMSG:
 * not one of these; some of it may have been added. An item that is too large is left out and
 * counted in *TOO_LARGE.
 */
int cri_decode_pods(
	const void *bytes, size_t size, struct containers *containers, uint64_t *too_large);
int cri_decode_containers(
	const void *bytes, size_t size, struct containers *containers, uint64_t *too_large);
