/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the Docker Engine API: what is in them, and the containers that come of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/container_labels.h"
#include "agent/server/metadata/container_pairs.h"
#include "agent/server/metadata/docker/docker_json.h"
#include "base/cleanup.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define POD "1111111111111111111111111111111111111111111111111111111111111111"

#define KUBELETS                                                                        \
	"\"io.kubernetes.pod.name\":\"shop\",\"io.kubernetes.pod.namespace\":\"prod\"," \
	"\"io.kubernetes.pod.uid\":\"u-1\""
#define SANDBOX                                                                           \
	"{\"Id\":\"" POD "\",\"Names\":[\"/k8s_POD_shop\"],\"Labels\":{" KUBELETS         \
	",\"io.kubernetes.docker.type\":\"podsandbox\",\"io.kubernetes.container.name\":" \
	"\"POD\",\"app\":\"shop\",\"annotation.note\":\"n\"}}"
#define WEB                                                                          \
	"{\"Id\":\"" A                                                               \
	"\",\"Names\":[\"/k8s_web_shop\"],\"Image\":\"app:1\",\"Labels\":{" KUBELETS \
	",\"io.kubernetes.docker.type\":\"container\","                              \
	"\"io.kubernetes.container.name\":\"web\",\"io.kubernetes.sandbox.id\":\"" POD "\"}}"

static struct containers *begin(void)
{
	struct containers *c;

	assert_int_equal(containers_create("docker", &c), 0);
	return c;
}

static int add(struct containers *c, const char *text)
{
	return docker_json_container(text, strlen(text), c);
}

static struct containers *finish(struct containers *c, struct containers *old)
{
	assert_int_equal(containers_finish(c, old, 2, 0), 0);
	containers_unref(old);
	return c;
}

static struct containers *table_of(const char *text)
{
	struct containers *c = begin();

	assert_int_equal(add(c, text), 0);
	return finish(c, NULL);
}

static const char *name_of(const struct containers *c, const char *id)
{
	const struct container_facts *facts = containers_find(c, id);

	return facts ? facts->name : "none";
}

static void assert_version(const char *text, int expected, const char *name)
{
	char found[CONTAINER_RUNTIME_BYTES] = "unchanged";

	assert_int_equal(docker_json_version(text, strlen(text), found), expected);
	assert_string_equal(found, name);
}

static void the_server_says_what_it_is(void **state)
{
	(void)state;
	assert_version(
		"{\"ApiVersion\":\"1.43\",\"Components\":[{\"Name\":\"Engine\"}]}", 0, "docker");
	assert_version("{\"ApiVersion\":\"1.41\",\"Components\":[{\"Name\":\"Podman Engine\"}]}", 0,
		"podman");
	assert_version("{\"ApiVersion\":\"1.24\"}", 0, "docker");
	assert_version(
		"{\"ApiVersion\":\"1.24\",\"Components\":[[],1,{\"Name\":[]}]}", 0, "docker");
	assert_version("{\"ApiVersion\":1}", -EBADMSG, "unchanged");
	assert_version("{}", -EBADMSG, "unchanged");
	assert_version("{\"ApiVersion\":", -EBADMSG, "unchanged");
	assert_version("", -EBADMSG, "unchanged");
}

static void a_container_has_its_name_and_labels(void **state)
{
	struct containers *c = table_of(
		"{\"Id\":\"" A "\",\"Names\":[\"/other/alias\",\"/web\"],\"Image\":\"app:1\","
		"\"ImageID\":\"sha256:0\",\"Labels\":{\"b\":\"2\",\"a\":\"1\\u0000\\n\"},"
		"\"State\":\"running\"}");
	const struct container_facts *facts = containers_find(c, A);

	(void)state;
	assert_string_equal(facts->name, "web");
	assert_string_equal(facts->image, "app:1");
	assert_string_equal(facts->runtime, "docker");
	assert_false(container_is_in_pod(facts));
	assert_true(container_is_of_pod(facts, ""));
	assert_int_equal(facts->labels.count, 2);
	assert_string_equal(container_pairs_get(&facts->labels, "a"), "1??");
	assert_int_equal(containers_count(c), 1);
	assert_int_equal(containers_pod_count(c), 0);
	containers_unref(c);
}

/* A control group that names a pod is not that of a container in none. */
static void a_container_without_a_pod_is_of_no_pod(void **state)
{
	struct containers *c = table_of("{\"Id\":\"" A "\",\"Names\":[\"web\"]}");
	char name[16] = "";

	(void)state;
	assert_string_equal(name_of(c, A), "web");
	assert_false(container_is_of_pod(containers_find(c, A), "u-1"));
	assert_true(container_labels_service(containers_find(c, A), name, sizeof(name)));
	assert_string_equal(name, "web");
	containers_unref(c);
}

static void what_is_no_container_is_refused(void **state)
{
	static const char *const invalid[] = { "{}", "{\"Id\":\"" A "\"}",
		"{\"Id\":\"" A "\",\"Names\":[]}", "{\"Id\":\"" A "\",\"Names\":\"/web\"}",
		"{\"Id\":\"" A "\",\"Names\":[\"/\",\"/a/b\",7]}",
		"{\"Id\":\"" A "\",\"Names\":[\"/a\\nb\"]}",
		"{\"Id\":\"" A "\",\"Names\":[\"/a\\u0000\"]}",
		"{\"Id\":\"" A "\\u0000\",\"Names\":[\"/web\"]}",
		"{\"Id\":\"../../" A "\",\"Names\":[\"/web\"]}",
		"{\"Id\":7,\"Names\":[\"/web\"],\"Labels\":[]}" };
	struct containers *c = begin();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
		assert_int_equal(add(c, invalid[i]), 0);
	assert_int_equal(containers_refused(c)->invalid, ARRAY_SIZE(invalid));
	assert_int_equal(add(c, "{\"Id\":"), -EBADMSG);
	assert_int_equal(add(c, "{\"Labels\":{\"a\\u0000b\":\"\"}}"), -EBADMSG);
	assert_int_equal(add(c, ""), -EBADMSG);
	assert_int_equal(add(c, "{\"Id\":\"" A "\",\"Names\":[\"/web\"],\"Labels\":{\"a\":7}}"), 0);
	finish(c, NULL);
	assert_int_equal(containers_count(c), 1);
	assert_string_equal(container_pairs_get(&containers_find(c, A)->labels, "a"), "");
	containers_unref(c);
}

static void what_is_too_large_when_parsed_is_refused(void **state)
{
	const size_t size = 1 << 20;
	struct containers *c = begin();
	char *text = malloc(size);

	(void)state;
	for (size_t i = 0; i < size; i++)
		text[i] = "[[],"[i ? 1 + (i - 1) % 3 : 0];
	assert_int_equal(docker_json_container(text, size, c), -E2BIG);
	free(text);
	containers_unref(c);
}

/* cri-dockerd's; a pod that only labels tell counts if the control group says the same. */
static void a_pod_in_labels_is_a_claim(void **state)
{
	struct containers *c = begin();
	const struct container_facts *facts;

	(void)state;
	assert_int_equal(add(c, WEB), 0);
	assert_int_equal(add(c, SANDBOX), 0);
	finish(c, NULL);
	facts = containers_find(c, A);
	assert_string_equal(facts->name, "web");
	assert_string_equal(facts->pod->name, "shop");
	assert_string_equal(facts->pod->namespace, "prod");
	assert_string_equal(container_pairs_get(&facts->pod->labels, "app"), "shop");
	assert_string_equal(container_pairs_get(&facts->pod->annotations, "note"), "n");
	assert_true(container_is_of_pod(facts, "u-1"));
	assert_false(container_is_of_pod(facts, "u-2"));
	assert_false(container_is_of_pod(facts, ""));
	assert_string_equal(name_of(c, POD), "");
	assert_int_equal(containers_pod_count(c), 1);
	containers_unref(c);
}

static void one_id_with_two_names_is_nobodys(void **state)
{
	struct containers *c = begin();

	(void)state;
	assert_int_equal(add(c, "{\"Id\":\"" A "\",\"Names\":[\"/web\"]}"), 0);
	assert_int_equal(add(c, "{\"Id\":\"" A "\",\"Names\":[\"/db\"]}"), 0);
	assert_int_equal(add(c, "{\"Id\":\"" B "\",\"Names\":[\"/db\"]}"), 0);
	finish(c, NULL);
	assert_string_equal(name_of(c, A), "none");
	assert_string_equal(name_of(c, B), "db");
	assert_int_equal(containers_refused(c)->conflicts, 1);
	containers_unref(c);
}

/* `docker rename`; but what was in no pod does not come into one. */
static void a_container_is_renamed_and_kept(void **state)
{
	struct containers *c =
		table_of("{\"Id\":\"" A "\",\"Names\":[\"/web\"],\"Labels\":{\"a\":\"1\"}}");
	struct containers *next = begin();

	(void)state;
	assert_int_equal(add(next, "{\"Id\":\"" A "\",\"Names\":[\"/new\"]}"), 0);
	c = finish(next, c);
	assert_string_equal(name_of(c, A), "new");
	next = begin();
	assert_int_equal(add(next, "{\"Id\":\"" B "\",\"Names\":[\"/web\"]}"), 0);
	c = finish(next, c);
	assert_string_equal(name_of(c, A), "new"); /* its samples may still come */
	assert_int_equal(containers_count(c), 1);
	next = begin();
	assert_int_equal(add(next, WEB), 0);
	assert_int_equal(add(next, SANDBOX), 0);
	c = finish(next, c);
	assert_string_equal(name_of(c, A), "none");
	containers_unref(c);
}

static void assert_service(const char *labels, const char *expected)
{
	char text[1024], name[64] = "";
	struct containers *c;

	snprintf(text, sizeof(text), "{\"Id\":\"" A "\",\"Names\":[\"/web\"],\"Labels\":{%s}}",
		labels);
	c = table_of(text);
	assert_true(container_labels_service(containers_find(c, A), name, sizeof(name)));
	assert_string_equal(name, expected);
	containers_unref(c);
}

static void the_service_is_named_in_order(void **state)
{
	(void)state;
	assert_service("\"com.docker.compose.service\":\"db\","
		       "\"resource.opentelemetry.io/service.name\":\"first\"",
		"first");
	assert_service("\"com.docker.compose.service\":\"db\"", "db");
	assert_service("\"com.docker.swarm.service.name\":\"front\"", "front");
	assert_service("\"com.docker.compose.service\":\"\"", "web");
	/* Images have such labels. */
	assert_service("\"app\":\"x\",\"io.kubernetes.pod.name\":\"victim\"", "web");
}

static void rules_see_prometheus_names(void **state)
{
	struct containers *c =
		table_of("{\"Id\":\"" A "\",\"Names\":[\"/web\"],\"Image\":\"app:1\",\"Labels\":{"
			 "\"com.docker.compose.project\":\"p\"}}");
	autocall(labels_deinit) struct labels labels = { 0 };
	uint64_t cut = 0;

	(void)state;
	assert_int_equal(labels_set(&labels, "namespace", "the user's"), 0);
	assert_int_equal(container_labels(containers_find(c, A), &labels), 0);
	assert_int_equal(container_labels_meta(containers_find(c, A), "n", &labels, &cut), 0);
	assert_string_equal(labels_get(&labels, "namespace"), "the user's");
	assert_string_equal(labels_get(&labels, "container"), "web");
	assert_string_equal(labels_get(&labels, "__meta_docker_container_id"), A);
	assert_string_equal(labels_get(&labels, "__meta_docker_container_name"), "/web");
	assert_string_equal(labels_get(&labels, "__meta_docker_container_image"), "app:1");
	assert_string_equal(
		labels_get(&labels, "__meta_docker_container_label_com_docker_compose_project"),
		"p");
	assert_int_equal(labels.count, 6);
	containers_unref(c);
}

static void assert_event(const char *text, int expected, bool expected_changes)
{
	bool changes = false;

	assert_int_equal(docker_json_event(text, strlen(text), &changes), expected);
	assert_int_equal(changes, expected_changes);
}

static void events_of_containers_count(void **state)
{
	(void)state;
	assert_event("{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{}}", 0, true);
	assert_event("{\"Type\":\"image\",\"Action\":\"pull\"}", 0, false);
	assert_event("{}", 0, false);
	assert_event("{\"Type\":[]}", 0, false);
	assert_event("{", -EBADMSG, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_server_says_what_it_is),
		cmocka_unit_test(a_container_has_its_name_and_labels),
		cmocka_unit_test(a_container_without_a_pod_is_of_no_pod),
		cmocka_unit_test(what_is_no_container_is_refused),
		cmocka_unit_test(what_is_too_large_when_parsed_is_refused),
		cmocka_unit_test(a_pod_in_labels_is_a_claim),
		cmocka_unit_test(one_id_with_two_names_is_nobodys),
		cmocka_unit_test(a_container_is_renamed_and_kept),
		cmocka_unit_test(the_service_is_named_in_order),
		cmocka_unit_test(rules_see_prometheus_names),
		cmocka_unit_test(events_of_containers_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
