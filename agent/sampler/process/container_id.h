/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which container a process is in, by the path of its control group. Whoever owns a control group
 * can make others below it and name them as he likes, so a name counts only below what root's
 * container runtimes own:
 *
 *   /system.slice/docker-ID.scope               ID
 *   /kubepods/burstable/podUID/ID               ID
 *   /docker/OUTER/…/cri-containerd-INNER.scope  OUTER/INNER: a container chose INNER
 *   /user.slice/user-1000.slice/…/libpod-ID.scope
 *                                               user-1000/ID: a user chose ID
 *   /system.slice/some.service/docker-ID.scope  none: the service may be anybody's
 *
 * Knows Docker, containerd, CRI-O, podman and nerdctl with both drivers (cgroupfs and systemd), on
 * cgroup v1, v2 and both at once, nested ones (kind, minikube) included. A container's monitor
 * (conmon) is not in the container.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/sampler/seam/window_processes.h"

/*
 * Writes the container of one line of /proc/PID/cgroup (cgroups(7): `NUMBER:CONTROLLERS:PATH`).
 * Returns false, and leaves *RET_ID unchanged, if it names none.
 */
bool container_id_of_line(const char *line, size_t length, char ret_id[CONTAINER_ID_BYTES]);
/*
 * Writes the UID of the pod that the outermost container of such a line is in, as Kubernetes writes
 * it: kubelet names a directory above the container after it (`podUID`, `…-podUID.slice`). Returns
 * false, and leaves *RET_UID unchanged, if the line tells none.
 */
bool container_pod_uid_of_line(const char *line, size_t length, char ret_uid[POD_UID_BYTES]);
