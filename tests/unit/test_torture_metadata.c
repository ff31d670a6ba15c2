/* SPDX-License-Identifier: Apache-2.0 */
/* agent/server/metadata while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/containers.h"
#include "agent/server/metadata/cri_decode.h"
#include "agent/server/metadata/docker/docker_json.h"
#include "agent/server/metadata/joined.h"
#include "agent/server/metadata/kubernetes/api_pods.h"
#include "agent/server/metadata/json_pieces.h"
#include "agent/server/metadata/kubernetes/pod_json.h"
#include "agent/server/metadata/metadata.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/protobuf_writer.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define POD "1111111111111111111111111111111111111111111111111111111111111111"
#define GONE "2222222222222222222222222222222222222222222222222222222222222222"

/* ---- an answer becomes a table --------------------------------------------------------------- */

struct listing {
	struct buffer pods, containers;
	struct containers *old, *table;
};

static void write_pod(struct buffer *answer, const char *id)
{
	struct buffer pod, metadata;

	buffer_init(&pod, 1 << 20);
	buffer_init(&metadata, 1 << 20);
	pb_text(&metadata, 1, "shop");
	pb_text(&metadata, 3, "prod");
	pb_text(&pod, 1, id);
	pb_message(&pod, 2, &metadata);
	pb_pair(&pod, 5, "app", "shop");
	pb_pair(&pod, 6, "note", "n");
	pb_message(answer, 1, &pod);
}

static void write_container(struct buffer *answer)
{
	struct buffer container, metadata;

	buffer_init(&container, 1 << 20);
	buffer_init(&metadata, 1 << 20);
	pb_text(&metadata, 1, "web");
	pb_text(&container, 1, A);
	pb_text(&container, 2, POD);
	pb_message(&container, 3, &metadata);
	pb_message(answer, 1, &container);
}

static void begin_listing(void *context)
{
	struct listing *l = context;
	uint64_t too_large = 0;

	*l = (struct listing){ 0 };
	buffer_init(&l->pods, 1 << 20);
	buffer_init(&l->containers, 1 << 20);
	write_pod(&l->pods, GONE);
	assert_int_equal(containers_create("old", &l->old), 0);
	assert_int_equal(cri_decode_pods(l->pods.bytes, l->pods.size, l->old, &too_large), 0);
	assert_int_equal(containers_finish(l->old, NULL, 1, 0), 0);
	l->pods.size = 0;
	write_pod(&l->pods, POD);
	write_container(&l->containers);
}

static int list(void *context)
{
	struct listing *l = context;
	uint64_t too_large = 0;
	struct containers *c;
	int err = containers_create("containerd", &c);

	if (err)
		return err;
	err = cri_decode_containers(l->containers.bytes, l->containers.size, c, &too_large);
	if (!err)
		err = cri_decode_pods(l->pods.bytes, l->pods.size, c, &too_large);
	if (!err)
		err = containers_finish(c, l->old, 2, 0);
	if (err)
		containers_unref(c);
	else
		l->table = c;
	return err;
}

static void end_listing(void *context, int result)
{
	struct listing *l = context;

	/* What was known before stays as it was. */
	assert_string_equal(containers_find(l->old, GONE)->pod->name, "shop");
	if (result >= 0) {
		assert_string_equal(containers_find(l->table, A)->name, "web");
		assert_string_equal(containers_find(l->table, GONE)->pod->name, "shop");
	}
	containers_unref(l->table);
	containers_unref(l->old);
	buffer_deinit(&l->pods);
	buffer_deinit(&l->containers);
}

static void an_answer_is_taken_whole_or_not_at_all(void **state)
{
	struct listing l;
	const struct torture t = {
		.begin = begin_listing, .operation = list, .end = end_listing, .context = &l
	};

	(void)state;
	torture_run(&t);
}

/* ---- so does Docker's ------------------------------------------------------------------------ */

static int list_docker(void *context)
{
	static const char sandbox[] =
		"{\"Id\":\"" POD "\",\"Labels\":{\"io.kubernetes.docker.type\":\"podsandbox\","
		"\"io.kubernetes.pod.name\":\"shop\",\"annotation.a\":\"b\"}}";
	static const char alone[] =
		"{\"Id\":\"" A "\",\"Names\":[\"/web\"],\"Labels\":{\"a\":\"b\"}}";
	struct listing *l = context;
	struct containers *c;
	int err = containers_create("docker", &c);

	if (err)
		return err;
	err = docker_json_container(sandbox, strlen(sandbox), c);
	if (!err)
		err = docker_json_container(alone, strlen(alone), c);
	if (!err)
		err = containers_finish(c, l->old, 2, 0);
	if (err)
		containers_unref(c);
	else
		l->table = c;
	return err;
}

static void a_list_of_docker_is_taken_whole_or_not_at_all(void **state)
{
	struct listing l;
	const struct torture t = {
		.begin = begin_listing, .operation = list_docker, .end = end_listing, .context = &l
	};

	(void)state;
	torture_run(&t);
}

/* ---- what the API server tells is joined ------------------------------------------------------
 */

struct joining {
	struct containers *table;
	struct api_pods pods;
	struct joined *joined;
};

static void begin_joining(void *context)
{
	const struct containers_pod pod = {
		.id = POD, .name = "shop", .namespace = "prod", .uid = "u"
	};
	struct joining *j = context;

	*j = (struct joining){ 0 };
	api_pods_init(&j->pods);
	assert_int_equal(containers_create("containerd", &j->table), 0);
	assert_int_equal(containers_add_pod(j->table, &pod), 0);
	assert_int_equal(containers_finish(j->table, NULL, 1, 0), 0);
}

static int take_item(void *context, const void *bytes, size_t size)
{
	struct joining *j = context;
	struct api_pod *pod;
	uint64_t refused = 0;
	int err = pod_json_pod(bytes, size, &pod, &refused);

	return err ? err : api_pods_set(&j->pods, pod);
}

static int join(void *context)
{
	static const char answer[] =
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{"
		"\"metadata\":"
		"{\"uid\":\"u\",\"name\":\"shop\",\"namespace\":\"prod\",\"labels\":{\"a\":\"b\"},"
		"\"ownerReferences\":[{\"kind\":\"Job\",\"name\":\"j\",\"controller\":true}]}}]}";
	autocall(json_pieces_deinit) struct json_pieces pieces;
	struct joining *j = context;
	struct pod_json_answer told;
	int err;

	json_pieces_init(&pieces, JSON_PIECES_ITEMS, 1 << 20, take_item, j);
	err = json_pieces_take(&pieces, answer, strlen(answer));
	if (!err)
		err = pod_json_answer(pieces.rest.bytes, pieces.rest.size, &told);
	return err ? err : joined_create(&j->table, 1, &j->pods, &j->joined);
}

static void end_joining(void *context, int result)
{
	struct joining *j = context;

	if (result >= 0)
		assert_string_equal(joined_find(j->joined, containers_find(j->table, POD))
					    ->pod->controller_name,
			"j");
	joined_unref(j->joined);
	api_pods_deinit(&j->pods);
	containers_unref(j->table);
}

static void a_pod_is_joined_or_not_at_all(void **state)
{
	struct joining j;
	const struct torture t = {
		.begin = begin_joining, .operation = join, .end = end_joining, .context = &j
	};

	(void)state;
	torture_run(&t);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int start_and_stop(void *context)
{
	const struct metadata_options options = { .socket = "/nowhere/cri.sock" };
	struct metadata *m = NULL;
	int err = metadata_create(&options, context, &m);

	if (!err)
		metadata_ask(m);
	metadata_destroy(m);
	return err;
}

static void it_starts_or_says_why(void **state)
{
	static const char optional[] = "read write";
	struct metrics metrics = { 0 };
	const struct torture t = {
		.operation = start_and_stop, .context = &metrics, .optional = optional
	};

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(an_answer_is_taken_whole_or_not_at_all),
		torture_test(a_list_of_docker_is_taken_whole_or_not_at_all),
		torture_test(a_pod_is_joined_or_not_at_all),
		torture_test(it_starts_or_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
