/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a container runtime told of a process's container, as labels. docs/kubernetes.md lists them
 * for users.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/payload.h"
#include "agent/server/metadata/metadata.h"

/* Adds `namespace`, `pod`, `pod_uid` and `container`; only the last to what is in no pod. */
int container_labels(const struct container_facts *facts, struct labels *labels);
/*
 * Adds the `__meta_kubernetes_…` labels for relabelling, with the names of Prometheus' discovery of
 * pods, or `__meta_docker_…`, as its discovery of Docker's containers has them. Adds to *CUT the
 * labels and annotations for which there is no room in LABELS.
 */
int container_labels_meta(const struct container_facts *facts, const char *node,
	struct labels *labels, uint64_t *cut);
/*
 * The name of the service: an annotation, a label that names the application, the owner, the
 * container. False, with NAME unchanged, if none of them is told.
 */
bool container_labels_service(const struct container_facts *facts, char *name, size_t size);
