/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/container_labels.h"

#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "base/cleanup.h"

enum {
	ROOM_FOR_RULES = 24, /* labels that rules and samples may still add */
	META_NAME_BYTES = 64 + CONTAINER_KEY_LIMIT,
	CONTAINER_REFERENCE_BYTES = 2 * CONTAINER_NAME_LIMIT,
	HASH_DIGITS = 5, /* at the end of the names that Kubernetes generates */
};

int container_labels(const struct container_facts *facts, struct labels *labels)
{
	const struct container_pod *pod = facts->pod;
	int err;

	if (!container_is_in_pod(facts))
		return labels_set(labels, "container", facts->name);
	err = labels_set(labels, "namespace", pod->namespace);
	if (!err)
		err = labels_set(labels, "pod", pod->name);
	if (!err)
		err = labels_set(labels, "pod_uid", pod->uid);
	return err ? err : labels_set(labels, "container", facts->name);
}

/* ---- for rules ------------------------------------------------------------------------------ */

/* As Prometheus does: what a label's name cannot hold becomes an underscore. */
static void container_labels_name(char name[META_NAME_BYTES], const char *prefix, const char *key)
{
	snprintf(name, META_NAME_BYTES, "__meta_%s_%s", prefix, key);
	for (char *c = name; *c; c++) {
		bool digit = *c >= '0' && *c <= '9';
		char lower = (char)(*c | 0x20);

		if (!digit && (lower < 'a' || lower > 'z'))
			*c = '_';
	}
}

/* What kubelet itself notes for the runtime; the pod has no such labels. */
static bool container_labels_is_kubelets(const char *key)
{
	return !strncmp(key, "io.kubernetes.", strlen("io.kubernetes."));
}

/* Two keys with one name: the first of them by its bytes. */
static int container_labels_pairs(struct labels *labels, const char *prefix,
	const struct container_pairs *pairs, const char *value, uint64_t *cut)
{
	char name[META_NAME_BYTES];
	int err = 0;

	for (size_t i = 0; !err && i < pairs->count; i++) {
		const struct container_pair *pair = &pairs->items[i];

		if (container_labels_is_kubelets(pair->name))
			continue;
		container_labels_name(name, prefix, pair->name);
		if (labels_get(labels, name))
			continue;
		if (labels->count + ROOM_FOR_RULES >= LABELS_LIMIT)
			++*cut;
		else
			err = labels_set(labels, name, value ? value : pair->value);
	}
	return err;
}

static int container_labels_all_pairs(
	const struct container_pod *pod, struct labels *labels, uint64_t *cut)
{
	const struct {
		const char *prefix;
		const struct container_pairs *pairs;
		const char *value;
	} all[] = {
		{ "kubernetes_pod_label", &pod->labels, NULL },
		{ "kubernetes_pod_annotation", &pod->annotations, NULL },
		{ "kubernetes_pod_labelpresent", &pod->labels, "true" },
		{ "kubernetes_pod_annotationpresent", &pod->annotations, "true" },
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(all); i++)
		err = container_labels_pairs(
			labels, all[i].prefix, all[i].pairs, all[i].value, cut);
	return err;
}

static const char *container_labels_or_none(const char *text)
{
	return text ? text : "";
}

static int container_labels_pod_meta(
	const struct container_facts *facts, const char *node, struct labels *labels, uint64_t *cut)
{
	char reference[CONTAINER_REFERENCE_BYTES];
	const struct container_pod *pod = facts->pod;
	const struct {
		const char *name, *value;
	} fixed[] = {
		{ "__meta_kubernetes_namespace", pod->namespace },
		{ "__meta_kubernetes_pod_name", pod->name },
		{ "__meta_kubernetes_pod_uid", pod->uid },
		{ "__meta_kubernetes_pod_node_name", node },
		{ "__meta_kubernetes_pod_container_name", facts->name },
		{ "__meta_kubernetes_pod_container_id", reference },
		{ "__meta_kubernetes_pod_container_image", facts->image },
		{ "__meta_kubernetes_pod_controller_kind",
			container_labels_or_none(pod->controller_kind) },
		{ "__meta_kubernetes_pod_controller_name",
			container_labels_or_none(pod->controller_name) },
	};
	int err = 0;

	snprintf(reference, sizeof(reference), "%s://%s", facts->runtime, facts->id);
	for (size_t i = 0; !err && i < ARRAY_SIZE(fixed); i++)
		err = labels_set(labels, fixed[i].name, fixed[i].value);
	return err ? err : container_labels_all_pairs(pod, labels, cut);
}

/* Prometheus has the name as Docker tells it. */
static int container_labels_docker_meta(
	const struct container_facts *facts, struct labels *labels, uint64_t *cut)
{
	char name[CONTAINER_NAME_LIMIT + 2];
	int err = labels_set(labels, "__meta_docker_container_id", facts->id);

	snprintf(name, sizeof(name), "/%s", facts->name);
	if (!err)
		err = labels_set(labels, "__meta_docker_container_name", name);
	if (!err)
		err = labels_set(labels, "__meta_docker_container_image", facts->image);
	return err ? err
		   : container_labels_pairs(
			     labels, "docker_container_label", &facts->labels, NULL, cut);
}

int container_labels_meta(
	const struct container_facts *facts, const char *node, struct labels *labels, uint64_t *cut)
{
	return container_is_in_pod(facts) ? container_labels_pod_meta(facts, node, labels, cut)
					  : container_labels_docker_meta(facts, labels, cut);
}

/* ---- the service ---------------------------------------------------------------------------- */

static const char *container_labels_first(
	const struct container_pairs *pairs, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = container_pairs_get(pairs, names[i]);

		if (value && *value)
			return value;
	}
	return NULL;
}

static bool container_labels_ends(const char *text, size_t length, const char *end)
{
	size_t end_length = strlen(end);

	return length > end_length && !memcmp(text + length - end_length, end, end_length);
}

/* The length of NAME without the `-` and random characters that Kubernetes has appended; 0 = none.
 */
static size_t container_labels_without_suffix(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && strlen(dash + 1) == HASH_DIGITS ? (size_t)(dash - name) : 0;
}

/*
 * The length of the owner's name in the pod's, 0 if it does not show. The labels that controllers
 * put on their pods say which of them made the name: a Deployment's ReplicaSet NAME-HASH-xxxxx, a
 * DaemonSet NAME-xxxxx, a StatefulSet NAME-INDEX.
 */
static size_t container_labels_owner(const struct container_pod *pod)
{
	const char *hash = container_pairs_get(&pod->labels, "pod-template-hash");
	const char *ordinal = container_pairs_get(&pod->labels, "apps.kubernetes.io/pod-index");
	const char *own_name =
		container_pairs_get(&pod->labels, "statefulset.kubernetes.io/pod-name");
	const char *dash = strrchr(pod->name, '-');
	size_t length = container_labels_without_suffix(pod->name);

	if (hash && *hash)
		return length > strlen(hash) + 1 &&
				       container_labels_ends(pod->name, length, hash) &&
				       pod->name[length - strlen(hash) - 1] == '-'
			       ? length - strlen(hash) - 1
			       : 0;
	if (ordinal || own_name)
		return dash && dash[1] && strspn(dash + 1, "0123456789") == strlen(dash + 1)
			       ? (size_t)(dash - pod->name)
			       : 0;
	return container_pairs_get(&pod->labels, "controller-revision-hash") ? length : 0;
}

/*
 * The length of the controller's name, as the API server tells it, without what a Deployment has
 * appended to its ReplicaSet's; 0 = none is told. What owns a static pod is its node.
 */
static size_t container_labels_controller(const struct container_pod *pod)
{
	const char *hash = container_pairs_get(&pod->labels, "pod-template-hash");
	const char *kind = pod->controller_kind, *name = pod->controller_name;
	size_t length = name ? strlen(name) : 0, hash_length = hash ? strlen(hash) : 0;

	if (!length || !strcmp(kind, "Node"))
		return 0;
	if (strcmp(kind, "ReplicaSet") != 0 || !hash_length || length <= hash_length + 1 ||
		strcmp(name + length - hash_length, hash) != 0 ||
		name[length - hash_length - 1] != '-')
		return length;
	return length - hash_length - 1;
}

static const char *const annotations[] = { "resource.opentelemetry.io/service.name",
	"pyroscope.io/service_name" };

/* An annotation, or a label of the application or of a job; NULL = none. */
static const char *container_labels_named(const struct container_pod *pod)
{
	static const char *const applications[] = { "app.kubernetes.io/name", "app", "k8s-app" };
	static const char *const jobs[] = { "batch.kubernetes.io/job-name", "job-name" };
	const char *text =
		container_labels_first(&pod->annotations, annotations, ARRAY_SIZE(annotations));

	if (!text)
		text = container_labels_first(&pod->labels, applications, ARRAY_SIZE(applications));
	return text ? text : container_labels_first(&pod->labels, jobs, ARRAY_SIZE(jobs));
}

/* Of a container in no pod: labels, what compose or swarm calls the service; else its name. */
static const char *container_labels_alone(const struct container_facts *facts)
{
	static const char *const services[] = { "com.docker.compose.service",
		"com.docker.swarm.service.name" };
	const char *text =
		container_labels_first(&facts->labels, annotations, ARRAY_SIZE(annotations));

	if (!text)
		text = container_labels_first(&facts->labels, services, ARRAY_SIZE(services));
	return text ? text : facts->name;
}

static bool container_labels_of_pod(const struct container_facts *facts, char *name, size_t size)
{
	const struct container_pod *pod = facts->pod;
	const char *text = container_labels_named(pod), *owner = pod->controller_name;
	size_t length = text ? 0 : container_labels_controller(pod);

	if (!text && !length) {
		owner = pod->name;
		length = container_labels_owner(pod);
	}
	if (length) {
		snprintf(name, size, "%.*s", (int)length, owner);
		return true;
	}
	text = text ? text : facts->name;
	if (*text)
		snprintf(name, size, "%s", text);
	return *text != 0;
}

bool container_labels_service(const struct container_facts *facts, char *name, size_t size)
{
	if (container_is_in_pod(facts))
		return container_labels_of_pod(facts, name, size);
	snprintf(name, size, "%s", container_labels_alone(facts));
	return true;
}
