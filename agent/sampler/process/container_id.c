/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/container_id.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	DIGITS = 64, /* of one ID */
	UID_DIGITS = 10,
	POD_UID_DIGITS = 32, /* of a static pod */
};

/* One component of a path, or a part of one. */
struct part {
	const char *at;
	size_t length;
};

static bool part_is(struct part part, const char *text)
{
	return part.length == strlen(text) && !memcmp(part.at, text, part.length);
}

static bool part_begins(struct part part, const char *text)
{
	return part.length >= strlen(text) && !memcmp(part.at, text, strlen(text));
}

static bool part_ends(struct part part, const char *text)
{
	size_t length = strlen(text);

	return part.length >= length && !memcmp(part.at + part.length - length, text, length);
}

static struct part part_without(struct part part, size_t before, size_t after)
{
	return (struct part){ part.at + before, part.length - before - after };
}

static bool part_is_hex(struct part part)
{
	for (size_t i = 0; i < part.length; i++) {
		char c = part.at[i];

		if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
			return false;
	}
	return true;
}

/* Takes the next component off PATH; false at its end. */
static bool part_next(struct part *path, struct part *ret_part)
{
	const char *slash;

	while (path->length && *path->at == '/')
		*path = part_without(*path, 1, 0);
	if (!path->length)
		return false;
	slash = memchr(path->at, '/', path->length);
	*ret_part = (struct part){ path->at, slash ? (size_t)(slash - path->at) : path->length };
	*path = part_without(*path, ret_part->length, 0);
	return true;
}

/*
 * The ID in a component that a runtime makes: ID, RUNTIME-ID or RUNTIME-ID.scope; and, where runc
 * is given systemd's form but uses the other driver, SLICE:RUNTIME:ID.
 */
static bool container_id_of_part(struct part part, struct part *ret_id)
{
	static const char *const runtimes[] = { "docker", "cri-containerd", "containerd", "crio",
		"libpod", "nerdctl" };
	const char *colon = memrchr(part.at, ':', part.length);

	if (colon && part_begins(part, "kubepods"))
		part = part_without(part, (size_t)(colon - part.at) + 1, 0);
	if (part_ends(part, ".scope"))
		part = part_without(part, 0, strlen(".scope"));
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		size_t length = strlen(runtimes[i]);

		if (part_begins(part, runtimes[i]) && part.length == length + 1 + DIGITS &&
			part.at[length] == '-')
			part = part_without(part, length + 1, 0);
	}
	if (part.length != DIGITS || !part_is_hex(part))
		return false;
	*ret_id = part;
	return true;
}

static bool part_has_no_dot(struct part part)
{
	return !memchr(part.at, '.', part.length);
}

/*
 * Directories that kubelet makes: `kubepods`, `kubepods-QOS.slice`, `podUID`. One with another
 * suffix is a unit of systemd, such as podcast.service, which may run as any user.
 */
static bool container_is_kubelets(struct part part)
{
	if (part_begins(part, "kubepods"))
		return part_has_no_dot(part) || part_ends(part, ".slice");
	return part_begins(part, "pod") && part.length > strlen("pod") && part_has_no_dot(part);
}

/* The services that make containers; all others may run as any user, with a delegated subtree. */
static bool container_is_runtime_service(struct part part)
{
	static const char *const services[] = { "containerd.service", "docker.service",
		"crio.service", "kubelet.service", "k3s.service", "k3s-agent.service",
		"rke2-server.service", "rke2-agent.service", "k0scontroller.service",
		"k0sworker.service" };

	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		if (part_is(part, services[i]))
			return true;
	}
	return part_ends(part, ".service") &&
	       (part_begins(part, "snap.docker.") || part_begins(part, "snap.microk8s.") ||
		       part_begins(part, "snap.k8s."));
}

/*
 * Whether only root makes what lies directly below PART, whose own parents are root's. systemd's
 * slices are, but for user.slice; what runs in our own cgroup namespace sees others by "..".
 */
static bool container_parent_is_roots(struct part part)
{
	static const char *const names[] = { "..", "docker", "libpod_parent", "burstable",
		"besteffort", "guaranteed", "kubelet", "crio", "default", "k8s.io" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (part_is(part, names[i]))
			return true;
	}
	if (container_is_kubelets(part) || container_is_runtime_service(part))
		return true;
	return part_ends(part, ".slice") && !part_begins(part, "user");
}

/* The user of `user-UID.slice`, as digits. */
static bool container_user_of(struct part part, struct part *ret_uid)
{
	if (!part_begins(part, "user-") || !part_ends(part, ".slice"))
		return false;
	part = part_without(part, strlen("user-"), strlen(".slice"));
	if (!part.length || part.length > UID_DIGITS)
		return false;
	for (size_t i = 0; i < part.length; i++) {
		if (part.at[i] < '0' || part.at[i] > '9')
			return false;
	}
	*ret_uid = part;
	return true;
}

/* The last container in PATH; unchanged if there is none. */
static void container_find_innermost(struct part path, struct part *id)
{
	struct part part, found;

	while (part_next(&path, &part)) {
		if (container_id_of_part(part, &found))
			*id = found;
	}
}

/* Podman's pod with its cgroupfs driver: containers below libpod_parent are `libpod-ID`. */
static bool container_is_podman_pod(struct part before, struct part part)
{
	return part_is(before, "libpod_parent") && part.length == DIGITS && part_is_hex(part);
}

/* Takes the components before the first container off PATH; false if it is not to be believed. */
static bool container_find_outermost(struct part *path, struct part *ret_uid, struct part *ret_id)
{
	struct part part = { 0 }, before;

	while (before = part, part_next(path, &part)) {
		if (container_is_podman_pod(before, part))
			continue;
		if (container_id_of_part(part, ret_id))
			return true;
		if (ret_uid->length)
			continue; /* the user's own: it will be marked as such */
		if (part_is(part, "user.slice")) {
			if (!part_next(path, &part) || !container_user_of(part, ret_uid))
				return false;
		} else if (!container_parent_is_roots(part)) {
			return false;
		}
	}
	return false;
}

static bool container_path_of(const char *line, size_t length, struct part *ret_path)
{
	struct part rest = { line, length };

	for (int colons = 0; colons < 2; colons++) {
		const char *colon = memchr(rest.at, ':', rest.length);

		if (!colon)
			return false;
		rest = part_without(rest, (size_t)(colon - rest.at) + 1, 0);
	}
	*ret_path = rest;
	return true;
}

bool container_id_of_line(const char *line, size_t length, char ret_id[CONTAINER_ID_BYTES])
{
	struct part path, uid = { 0 }, outer, inner = { 0 };

	if (!container_path_of(line, length, &path) ||
		!container_find_outermost(&path, &uid, &outer))
		return false;
	container_find_innermost(path, &inner);
	snprintf(ret_id, CONTAINER_ID_BYTES, "%s%.*s%s%.*s%s%.*s", uid.length ? "user-" : "",
		(int)uid.length, uid.length ? uid.at : "", uid.length ? "/" : "", (int)outer.length,
		outer.at, inner.length ? "/" : "", (int)inner.length, inner.length ? inner.at : "");
	return true;
}

/* ---- the pod -------------------------------------------------------------------------------- */

/* An UUID, or of a static pod the 32 digits of a hash. */
static bool container_is_pod_uid(const char *uid)
{
	size_t length = strlen(uid);

	if (length != POD_UID_DIGITS && length != POD_UID_BYTES - 1)
		return false;
	return strspn(uid, "0123456789abcdef-") == length;
}

/* What of a component is behind `pod`; systemd's form has `_` for `-`, which would nest slices. */
static bool container_pod_part(struct part part, struct part *ret_uid)
{
	const char *colon = memchr(part.at, ':', part.length);

	if (part_begins(part, "pod") && part_has_no_dot(part)) {
		*ret_uid = part_without(part, strlen("pod"), 0);
		return true;
	}
	if (colon)
		part.length = (size_t)(colon - part.at);
	if (!part_ends(part, ".slice"))
		return false;
	part = part_without(part, 0, strlen(".slice"));
	for (size_t at = part.length; at-- > 0;) {
		if (!part_begins(part_without(part, at, 0), "-pod"))
			continue;
		*ret_uid = part_without(part, at + strlen("-pod"), 0);
		return true;
	}
	return false;
}

static bool container_pod_uid_of_part(struct part part, char ret_uid[POD_UID_BYTES])
{
	char uid[POD_UID_BYTES] = "";
	struct part from;

	if (!container_pod_part(part, &from) || from.length >= sizeof(uid))
		return false;
	for (size_t i = 0; i < from.length; i++)
		uid[i] = (char)(from.at[i] == '_' ? '-' : from.at[i]);
	if (!container_is_pod_uid(uid))
		return false;
	memcpy(ret_uid, uid, sizeof(uid));
	return true;
}

bool container_pod_uid_of_line(const char *line, size_t length, char ret_uid[POD_UID_BYTES])
{
	struct part path, rest, part, user = { 0 }, outer;
	bool found = false;

	if (!container_path_of(line, length, &path))
		return false;
	rest = path;
	if (!container_find_outermost(&rest, &user, &outer) || user.length)
		return false;
	/* What is below the container may have any name. */
	path.length -= rest.length;
	while (part_next(&path, &part))
		found |= container_pod_uid_of_part(part, ret_uid);
	return found;
}
