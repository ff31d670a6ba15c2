/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of what a runtime told of a container. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/daemon/container_labels.h"
#include "agent/daemon/probe_labels.h"
#include "base/cleanup.h"

#define POD "1111111111111111111111111111111111111111111111111111111111111111"
#define ID "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct told {
	struct container_pod pod;
	struct container_facts facts;
};

static void told_init(struct told *t, const char *pod_name, const char *container)
{
	*t = (struct told){
		.pod = { .id = ID, .name = pod_name, .namespace = "prod", .uid = "u-1" }
	};
	t->facts = (struct container_facts){ .id = ID,
		.name = container,
		.image = "app:1",
		.runtime = "containerd",
		.pod = &t->pod };
}

static const char *service_of(const struct told *t)
{
	static char name[256];

	snprintf(name, sizeof(name), "unchanged");
	if (!container_labels_service(&t->facts, name, sizeof(name)))
		assert_string_equal(name, "unchanged");
	return name;
}

static void assert_service(const char *pod_name, const struct container_pair *labels, size_t count,
	const char *expected)
{
	struct told t;

	told_init(&t, pod_name, "main");
	t.pod.labels = (struct container_pairs){ labels, count };
	assert_string_equal(service_of(&t), expected);
}

#define ASSERT_SERVICE(pod_name, expected, ...)                                  \
	assert_service(pod_name, (const struct container_pair[]){ __VA_ARGS__ }, \
		sizeof((const struct container_pair[]){ __VA_ARGS__ }) /         \
			sizeof(struct container_pair),                           \
		expected)

static void the_service_is_named_in_order(void **state)
{
	const struct container_pair annotations[] = { { "pyroscope.io/service_name", "second" },
		{ "resource.opentelemetry.io/service.name", "first" } };
	const struct container_pair empty[] = { { "pyroscope.io/service_name", "" } };
	const struct container_pair labels[] = { { "app", "app" }, { "k8s-app", "k8s" } };
	struct told t;

	(void)state;
	told_init(&t, "shop", "main");
	t.pod.labels = (struct container_pairs){ labels, 2 };
	t.pod.annotations = (struct container_pairs){ annotations, 2 };
	assert_string_equal(service_of(&t), "first");
	t.pod.annotations.count = 1;
	assert_string_equal(service_of(&t), "second");
	t.pod.annotations = (struct container_pairs){ empty, 1 };
	assert_string_equal(service_of(&t), "app");
	ASSERT_SERVICE("p", "name", { "app", "app" }, { "app.kubernetes.io/name", "name" });
	ASSERT_SERVICE("p", "k8s", { "k8s-app", "k8s" });
	ASSERT_SERVICE("backup-29-x8k2p", "backup", { "batch.kubernetes.io/job-name", "backup" });
	ASSERT_SERVICE("p", "main", { "other", "x" });
	told_init(&t, "shop", "");
	assert_string_equal(service_of(&t), "unchanged");
}

/* Names as controllers make them; where the labels do not fit the name, nobody owns the pod. */
static void the_owner_shows_in_the_pods_name(void **state)
{
	(void)state;
	ASSERT_SERVICE("my-shop-7d4b9c6f5-x8k2p", "my-shop", { "pod-template-hash", "7d4b9c6f5" });
	ASSERT_SERVICE("my-shop-7d4b9c6f5-x8k2p", "main", { "pod-template-hash", "other" });
	ASSERT_SERVICE("7d4b9c6f5-x8k2p", "main", { "pod-template-hash", "7d4b9c6f5" });
	ASSERT_SERVICE("shop7d4b9c6f5-x8k2p", "main", { "pod-template-hash", "7d4b9c6f5" });
	ASSERT_SERVICE("-7d4b9c6f5-x8k2p", "main", { "pod-template-hash", "7d4b9c6f5" });
	ASSERT_SERVICE("my-shop", "main", { "pod-template-hash", "7d4b9c6f5" });
	ASSERT_SERVICE(
		"node-exporter-x8k2p", "node-exporter", { "controller-revision-hash", "5f" });
	ASSERT_SERVICE("node-exporter", "main", { "controller-revision-hash", "5f" });
	ASSERT_SERVICE("my-db-12", "my-db", { "apps.kubernetes.io/pod-index", "12" },
		{ "controller-revision-hash", "my-db-5f" });
	ASSERT_SERVICE("my-db-0", "my-db", { "controller-revision-hash", "my-db-5f" },
		{ "statefulset.kubernetes.io/pod-name", "my-db-0" });
	ASSERT_SERVICE("my-db-", "main", { "statefulset.kubernetes.io/pod-name", "my-db-" });
	ASSERT_SERVICE("-0", "main", { "statefulset.kubernetes.io/pod-name", "-0" });
}

static void assert_owned(const char *kind, const char *name, const char *hash, const char *expected)
{
	const struct container_pair labels[] = { { "pod-template-hash", hash } };
	struct told t;

	told_init(&t, "my-shop-7d4b9c6f5-x8k2p", "main");
	t.pod.labels = (struct container_pairs){ labels, hash ? 1 : 0 };
	t.pod.controller_kind = kind;
	t.pod.controller_name = name;
	assert_string_equal(service_of(&t), expected);
}

/* A pod's name may have been cut to fit; the controller's is whole. */
static void the_controller_names_the_service(void **state)
{
	(void)state;
	assert_owned("ReplicaSet", "long-shop-5f", "5f", "long-shop");
	assert_owned("ReplicaSet", "long-shop-5f", "6a", "long-shop-5f");
	assert_owned("ReplicaSet", "long-shop5f", "5f", "long-shop5f");
	assert_owned("ReplicaSet", "-5f", "5f", "-5f");
	assert_owned("ReplicaSet", "alone", NULL, "alone");
	assert_owned("StatefulSet", "db", NULL, "db");
	assert_owned("Job", "night-1", NULL, "night-1");
	/* A static pod's is its node. */
	assert_owned("Node", "node-1", NULL, "main");
	assert_owned("", "", "7d4b9c6f5", "my-shop");
}

static void assert_label(const struct labels *labels, const char *name, const char *value)
{
	const char *found = labels_get(labels, name);

	if (!found || strcmp(found, value) != 0)
		fail_msg("%s: %s", name, found ? found : "none");
}

static void labels_have_prometheus_names(void **state)
{
	const struct container_pair pairs[] = { { "App.kubernetes.io/na-me", "shop" },
		{ "a.b", "first" }, { "a/b", "second" }, { "empty", "" },
		{ "io.kubernetes.pod.name", "x" }, { "\xc3\xb6", "o" } };
	autocall(labels_deinit) struct labels labels = { 0 };
	struct told t;
	uint64_t cut = 0;

	(void)state;
	told_init(&t, "shop-1", "web");
	t.pod.labels = t.pod.annotations = (struct container_pairs){ pairs, ARRAY_SIZE(pairs) };
	assert_int_equal(container_labels(&t.facts, &labels), 0);
	assert_int_equal(labels.count, 4);
	assert_label(&labels, "namespace", "prod");
	assert_label(&labels, "pod", "shop-1");
	assert_label(&labels, "pod_uid", "u-1");
	assert_label(&labels, "container", "web");
	assert_int_equal(container_labels_meta(&t.facts, "n1", &labels, &cut), 0);
	assert_label(&labels, "__meta_kubernetes_namespace", "prod");
	assert_label(&labels, "__meta_kubernetes_pod_name", "shop-1");
	assert_label(&labels, "__meta_kubernetes_pod_uid", "u-1");
	assert_label(&labels, "__meta_kubernetes_pod_node_name", "n1");
	assert_label(&labels, "__meta_kubernetes_pod_container_name", "web");
	assert_label(&labels, "__meta_kubernetes_pod_container_id", "containerd://" ID);
	assert_label(&labels, "__meta_kubernetes_pod_container_image", "app:1");
	assert_label(&labels, "__meta_kubernetes_pod_label_App_kubernetes_io_na_me", "shop");
	assert_label(&labels, "__meta_kubernetes_pod_label_a_b", "first");
	assert_label(&labels, "__meta_kubernetes_pod_label___", "o");
	assert_label(&labels, "__meta_kubernetes_pod_labelpresent_empty", "true");
	assert_label(&labels, "__meta_kubernetes_pod_annotation_a_b", "first");
	assert_label(&labels, "__meta_kubernetes_pod_annotationpresent_a_b", "true");
	assert_null(labels_get(&labels, "__meta_kubernetes_pod_label_io_kubernetes_pod_name"));
	assert_int_equal(cut, 0);
}

/* A pod with very many labels loses some of them, not its series. */
static void many_labels_leave_room(void **state)
{
	autocall(labels_deinit) struct labels labels = { 0 };
	struct container_pair pairs[CONTAINER_PAIRS_LIMIT];
	char names[CONTAINER_PAIRS_LIMIT][16];
	struct told t;
	uint64_t cut = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		snprintf(names[i], sizeof(names[i]), "n%04zu", i);
		pairs[i] = (struct container_pair){ names[i], "v" };
	}
	told_init(&t, "shop-1", "web");
	t.pod.labels = t.pod.annotations = (struct container_pairs){ pairs, ARRAY_SIZE(pairs) };
	assert_int_equal(container_labels_meta(&t.facts, "n1", &labels, &cut), 0);
	assert_true(labels.count <= LABELS_LIMIT - 20);
	assert_int_equal(labels.count + cut, 7 + 4 * CONTAINER_PAIRS_LIMIT);
	assert_label(&labels, "__meta_kubernetes_pod_label_n0000", "v");
}

/* Labels of the histograms of a process in container ID. */
static void assert_histogram(
	const struct metadata_view *containers, const char *pod, const char *container)
{
	autocall(labels_deinit) struct labels labels = { 0 };
	const struct probe_label_rules rules = { .node = (char[]){ "n1" },
		.containers = containers };
	struct process_facts facts = { .pid = 7, .program_path = "/opt/shop", .comm = "shop" };
	bool keep;

	snprintf(facts.container_id, sizeof(facts.container_id), "%s", ID);
	assert_int_equal(probe_labels_of_process(&rules, &facts, NULL, &labels, &keep), 0);
	assert_true(keep);
	assert_label(&labels, "container", container);
	if (pod)
		assert_label(&labels, "pod", pod);
	else
		assert_null(labels_get(&labels, "pod"));
	assert_null(labels_get(&labels, "pod_uid"));
	assert_null(labels_get(&labels, "container_id"));
}

static void histograms_have_the_pod(void **state)
{
	struct metadata_view view = { .count = 0 };
	struct containers *c;

	(void)state;
	assert_int_equal(containers_create("containerd", &c), 0);
	assert_int_equal(
		containers_add_pod(c,
			&(struct containers_pod){
				.id = POD, .name = "shop-1", .namespace = "prod", .uid = "u" }),
		0);
	assert_int_equal(containers_add(c,
				 &(struct containers_container){
					 .id = ID, .pod_id = POD, .name = "web", .image = "" }),
		0);
	assert_int_equal(containers_finish(c, NULL, 1, 0), 0);
	assert_histogram(NULL, NULL, ID);
	assert_histogram(&view, NULL, ID);
	view.tables[view.count++] = c;
	assert_histogram(&view, "shop-1", "web");
	metadata_view_deinit(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_service_is_named_in_order),
		cmocka_unit_test(the_owner_shows_in_the_pods_name),
		cmocka_unit_test(the_controller_names_the_service),
		cmocka_unit_test(labels_have_prometheus_names),
		cmocka_unit_test(many_labels_leave_room),
		cmocka_unit_test(histograms_have_the_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
