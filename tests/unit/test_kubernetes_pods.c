/* SPDX-License-Identifier: Apache-2.0 */
/* The API server's answers: JSON in pieces, what is in it, and the pods of a node that come of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "agent/server/metadata/joined.h"
#include "agent/server/metadata/kubernetes/api_pods.h"
#include "agent/server/metadata/kubernetes/api_server.h"
#include "agent/server/metadata/json_pieces.h"
#include "agent/server/metadata/kubernetes/pod_json.h"
#include "base/cleanup.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define POD "1111111111111111111111111111111111111111111111111111111111111111"

/* ---- pieces --------------------------------------------------------------------------------- */

enum { VALUE_BYTES = 40 };

static int append_value(void *context, const void *bytes, size_t size)
{
	struct buffer *all = context;

	(void)buffer_append(all, bytes, size);
	return buffer_append(all, "|", 1);
}

struct cut {
	struct buffer values; /* each with a bar after it */
	struct json_pieces pieces;
	int err;
};

static void cut_init(struct cut *c, enum json_pieces_form form, const char *text, size_t step)
{
	size_t size = strlen(text);

	*c = (struct cut){ 0 };
	buffer_init(&c->values, 1 << 20);
	json_pieces_init(&c->pieces, form, VALUE_BYTES, append_value, &c->values);
	for (size_t at = 0; !c->err && at < size; at += step)
		c->err = json_pieces_take(&c->pieces, text + at, MIN(step, size - at));
}

static void cut_deinit(struct cut *c)
{
	json_pieces_deinit(&c->pieces);
	buffer_deinit(&c->values);
}

static void assert_bytes(const struct buffer *b, const char *expected)
{
	if (b->size != strlen(expected) || (b->size && memcmp(b->bytes, expected, b->size) != 0))
		fail_msg("%.*s instead of %s", (int)b->size, (const char *)b->bytes, expected);
}

/* Whatever the pieces it comes in. REST: NULL = it cannot be of this form. */
static void assert_cut(
	enum json_pieces_form form, const char *text, const char *values, const char *rest)
{
	for (size_t step = 1; step <= strlen(text); step++) {
		struct cut c;

		cut_init(&c, form, text, step);
		if (rest) {
			assert_int_equal(c.err, 0);
			assert_bytes(&c.pieces.rest, rest);
		} else {
			assert_int_equal(c.err, -EBADMSG);
			assert_false(json_pieces_is_whole(&c.pieces));
			/* For good */
			assert_int_equal(json_pieces_take(&c.pieces, "{", 1), -EBADMSG);
		}
		assert_bytes(&c.values, values);
		cut_deinit(&c);
	}
}

static void a_list_is_cut_into_its_items(void **state)
{
	(void)state;
	assert_cut(JSON_PIECES_ITEMS, "{\"a\":[1,{}],\"items\":[{\"b\":[{}]} ,\n{}],\"c\":2} \n",
		"{\"b\":[{}]}|{}|", "{\"a\":[1,{}],\"items\":[],\"c\":2}");
	assert_cut(JSON_PIECES_ITEMS, " {\"items\" :\t[ ]}", "", "{\"items\" :\t[]}");
	assert_cut(JSON_PIECES_ITEMS, "{\"items\":null,\"kind\":\"PodList\"}", "",
		"{\"items\":null,\"kind\":\"PodList\"}");
	/* Brackets in strings, and items that are not the list's. */
	assert_cut(JSON_PIECES_ITEMS, "{\"items\":[{\"}\\\"]\":\"[{\"}]}", "{\"}\\\"]\":\"[{\"}|",
		"{\"items\":[]}");
	assert_cut(JSON_PIECES_ITEMS, "{\"b\":{\"items\":[{}]},\"my items\":[{}]}", "",
		"{\"b\":{\"items\":[{}]},\"my items\":[{}]}");
	assert_cut(JSON_PIECES_ITEMS, "{\"items\":[{}],\"items\":[{\"2\":2}]}", "{}|{\"2\":2}|",
		"{\"items\":[],\"items\":[]}");
}

static void a_watch_is_cut_into_its_events(void **state)
{
	(void)state;
	assert_cut(JSON_PIECES_VALUES, "{\"a\":[{}]}\n{}{\"items\":[{}]}\r\n",
		"{\"a\":[{}]}|{}|{\"items\":[{}]}|", "");
}

static void an_array_is_cut_into_its_elements(void **state)
{
	(void)state;
	assert_cut(JSON_PIECES_ARRAY, " [{\"a\":[{}]} ,\n{}] \n", "{\"a\":[{}]}|{}|", "[]");
	assert_cut(JSON_PIECES_ARRAY, "[]", "", "[]");
	assert_cut(JSON_PIECES_ARRAY, "[{\"items\":[{}]},{\"]\":\"}\"}]",
		"{\"items\":[{}]}|{\"]\":\"}\"}|", "[]");
}

static void what_is_of_another_form_is_refused(void **state)
{
	(void)state;
	assert_cut(JSON_PIECES_ARRAY, "{", "", NULL);
	assert_cut(JSON_PIECES_ARRAY, "null", "", NULL);
	assert_cut(JSON_PIECES_ARRAY, "[[", "", NULL);
	assert_cut(JSON_PIECES_ARRAY, "[{},1", "{}|", NULL);
	assert_cut(JSON_PIECES_ARRAY, "[]]", "", NULL);
	assert_cut(JSON_PIECES_ARRAY, "[][", "", NULL);
	assert_cut(JSON_PIECES_ARRAY, "[{}]{", "{}|", NULL);
	assert_cut(JSON_PIECES_ITEMS, "[", "", NULL);
	assert_cut(JSON_PIECES_ITEMS, "true", "", NULL);
	assert_cut(JSON_PIECES_ITEMS, "<html>", "", NULL);
	assert_cut(JSON_PIECES_ITEMS, "{}{", "", NULL);
	assert_cut(JSON_PIECES_ITEMS, "{}}", "", NULL);
	assert_cut(JSON_PIECES_ITEMS, "{\"items\":[1", "", NULL);
	assert_cut(JSON_PIECES_ITEMS, "{\"items\":[[", "", NULL);
	assert_cut(JSON_PIECES_ITEMS, "{\"items\":[{},\"", "{}|", NULL);
	assert_cut(JSON_PIECES_VALUES, "{},", "{}|", NULL);
	assert_cut(JSON_PIECES_VALUES, "{}[", "{}|", NULL);
	assert_cut(JSON_PIECES_VALUES, "\"", "", NULL);
	assert_cut(JSON_PIECES_VALUES, "]", "", NULL);
}

static void assert_whole(enum json_pieces_form form, const char *text, bool expected)
{
	struct cut c;

	cut_init(&c, form, text, 1);
	assert_int_equal(c.err, 0);
	assert_int_equal(json_pieces_is_whole(&c.pieces), expected);
	cut_deinit(&c);
}

static void an_answer_that_is_cut_short_is_not_whole(void **state)
{
	static const char list[] = "{\"items\":[{\"a\":\"b\"}]}";

	(void)state;
	for (size_t size = 0; size < strlen(list); size++) {
		char text[sizeof(list)];

		snprintf(text, sizeof(text), "%.*s", (int)size, list);
		assert_whole(JSON_PIECES_ITEMS, text, false);
		assert_whole(JSON_PIECES_VALUES, text, size == 0);
	}
	assert_whole(JSON_PIECES_ITEMS, list, true);
	assert_whole(JSON_PIECES_VALUES, list, true);
}

/* One pod cannot make the others unknown. */
static void a_value_that_is_too_large_or_too_deep_is_left_out(void **state)
{
	struct buffer text;
	struct cut c;

	(void)state;
	cut_init(&c, JSON_PIECES_ITEMS,
		"{\"items\":[{},{\"a\":\"0123456789012345678901234567890123456789\"},{\"b\":1}]}",
		3);
	assert_int_equal(c.err, 0);
	assert_bytes(&c.values, "{}|{\"b\":1}|");
	assert_int_equal(c.pieces.too_large, 1);
	assert_int_equal(c.pieces.values, 3);
	cut_deinit(&c);

	buffer_init(&text, 1 << 20);
	(void)buffer_string(&text, "{\"items\":[{},");
	for (int i = 0; i < 300; i++)
		(void)buffer_string(&text, i ? "[" : "{");
	for (int i = 300; i-- > 0;)
		(void)buffer_string(&text, i ? "]" : "}");
	(void)buffer_string(&text, ",{\"b\":1}]}");
	assert_int_equal(buffer_append(&text, "", 1), 0);
	cut_init(&c, JSON_PIECES_ITEMS, (const char *)text.bytes, 7);
	assert_int_equal(c.err, 0);
	assert_bytes(&c.values, "{}|{\"b\":1}|");
	assert_int_equal(c.pieces.too_large, 1);
	assert_true(json_pieces_is_whole(&c.pieces));
	cut_deinit(&c);
	buffer_deinit(&text);
}

static void the_rest_of_a_list_is_bounded(void **state)
{
	struct cut c;
	int err = 0;

	(void)state;
	cut_init(&c, JSON_PIECES_ITEMS, "{\"a\":\"", 1);
	for (int i = 0; !err && i < 1 << 20; i++)
		err = json_pieces_take(&c.pieces, "xxxxxxxx", 8);
	assert_int_equal(err, -E2BIG);
	assert_true(c.pieces.rest.capacity <= 128 << 10);
	cut_deinit(&c);

	cut_init(&c, JSON_PIECES_ITEMS, "{\"a\":", 1);
	for (int i = 0; !err && i < 1000; i++)
		err = json_pieces_take(&c.pieces, "[", 1);
	assert_int_equal(err, -E2BIG);
	cut_deinit(&c);
}

/* ---- a pod ---------------------------------------------------------------------------------- */

static int pod_of(const char *text, struct api_pod **ret_pod, uint64_t *refused)
{
	*refused = 0;
	return pod_json_pod(text, strlen(text), ret_pod, refused);
}

#define METADATA "\"uid\":\"u-1\",\"name\":\"shop-1\",\"namespace\":\"prod\""

static void a_pod_has_what_the_runtime_does_not_know(void **state)
{
	struct api_pod *pod;
	uint64_t refused;

	(void)state;
	assert_int_equal(
		pod_of("{\"kind\":\"Pod\",\"metadata\":{" METADATA
		       ",\"labels\":{\"b\":\"2\",\"a\":\"1\"},\"annotations\":{\"note\":\"x\\u0000"
		       "\\ny\",\"n\":5},\"ownerReferences\":["
		       "{\"kind\":\"Other\",\"name\":\"o\"},"
		       "{\"kind\":\"ReplicaSet\",\"name\":\"shop-5f\",\"controller\":true}]},"
		       "\"spec\":{\"nodeName\":\"n\"}}",
			&pod, &refused),
		0);
	assert_string_equal(pod->uid, "u-1");
	assert_string_equal(pod->name, "shop-1");
	assert_string_equal(pod->namespace, "prod");
	assert_int_equal(pod->labels.count, 2);
	assert_string_equal(container_pairs_get(&pod->labels, "a"), "1");
	assert_string_equal(container_pairs_get(&pod->annotations, "note"), "x??y");
	assert_string_equal(container_pairs_get(&pod->annotations, "n"), "");
	assert_string_equal(pod->controller_kind, "ReplicaSet");
	assert_string_equal(pod->controller_name, "shop-5f");
	assert_int_equal(refused, 0);
	api_pod_unref(pod);
}

/* A static pod's object has a UID of its own. */
static void a_mirror_pod_has_the_uid_that_the_runtime_tells(void **state)
{
	struct api_pod *pod;
	uint64_t refused;

	(void)state;
	assert_int_equal(pod_of("{\"metadata\":{" METADATA ",\"annotations\":"
				"{\"kubernetes.io/config.mirror\":\"f00\"}}}",
				 &pod, &refused),
		0);
	assert_string_equal(pod->uid, "f00");
	assert_string_equal(pod->controller_name, "");
	api_pod_unref(pod);
}

static void assert_no_pod(const char *text, int expected)
{
	struct api_pod *pod = NULL;
	uint64_t refused;

	assert_int_equal(pod_of(text, &pod, &refused), expected);
	assert_null(pod);
}

static void what_cannot_be_a_pod_is_refused(void **state)
{
	char *deep = malloc(4096), *wide = malloc(4 << 20);
	size_t at = 0;

	(void)state;
	assert_no_pod("", -EBADMSG);
	assert_no_pod("{", -EBADMSG);
	assert_no_pod("{]", -EBADMSG);
	assert_no_pod("{} {}", -EBADMSG);
	assert_no_pod("[]", -EBADMSG);
	assert_no_pod("{\"metadata\":[]}", -EBADMSG);
	assert_no_pod("{\"metadata\":{\"uid\":1,\"name\":\"n\",\"namespace\":\"s\"}}", -EBADMSG);
	assert_no_pod("{\"metadata\":{\"uid\":\"u\",\"name\":\"\",\"namespace\":\"s\"}}", -EBADMSG);
	assert_no_pod(
		"{\"metadata\":{\"uid\":\"u\",\"name\":\"a\\nb\",\"namespace\":\"s\"}}", -EBADMSG);
	assert_no_pod("{\"metadata\":{\"uid\":\"u\",\"name\":\"a\\u0000b\",\"namespace\":\"s\"}}",
		-EBADMSG);
	assert_no_pod("{\"metadata\":{\"uid\":\"u\\u0000x\",\"name\":\"a\",\"namespace\":\"s\"}}",
		-EBADMSG);
	assert_no_pod("{\"metadata\":{" METADATA ",\"labels\":{\"a\":\"\xff\"}}}", -EBADMSG);
	/* jansson recurses; it has a limit, and json_pieces a lower one. */
	memset(deep, '[', 4095);
	deep[4095] = 0;
	assert_no_pod(deep, -EBADMSG);
	/* Two bytes take a hundred: more than one pod may. */
	for (wide[at++] = '['; at < (4 << 20) - 4; at += 3)
		memcpy(wide + at, "[],", 3);
	memcpy(wide + at, "1]", 3);
	assert_no_pod(wide, -E2BIG);
	free(deep);
	free(wide);
}

static void too_many_or_too_long_pairs_are_left_out(void **state)
{
	struct buffer text;
	struct api_pod *pod;
	uint64_t refused = 0;

	(void)state;
	buffer_init(&text, 1 << 20);
	(void)buffer_string(&text, "{\"metadata\":{" METADATA ",\"labels\":{");
	for (int i = 0; i < 5000; i++)
		(void)buffer_printf(&text, "%s\"k%d\":\"v\"", i ? "," : "", i);
	(void)buffer_string(&text, "},\"annotations\":{\"long\":\"");
	for (int i = 0; i < CONTAINER_VALUE_LIMIT + 1; i++)
		(void)buffer_string(&text, "x");
	(void)buffer_string(&text, "\",\"\":\"no name\",\"good\":\"g\"}}}");
	assert_int_equal(pod_json_pod(text.bytes, text.size, &pod, &refused), 0);
	assert_int_equal(pod->labels.count, CONTAINER_PAIRS_LIMIT);
	assert_int_equal(pod->annotations.count, 1);
	assert_string_equal(container_pairs_get(&pod->annotations, "good"), "g");
	assert_int_equal(refused, 5000 - CONTAINER_PAIRS_LIMIT + 2);
	api_pod_unref(pod);
	buffer_deinit(&text);
}

/* ---- events and answers --------------------------------------------------------------------- */

static int event_of(const char *text, struct pod_json_event *ret_event)
{
	uint64_t refused = 0;

	return pod_json_event(text, strlen(text), ret_event, &refused);
}

static void events_say_what_has_changed(void **state)
{
	struct pod_json_event e;

	(void)state;
	assert_int_equal(event_of("{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{" METADATA
				  ",\"resourceVersion\":\"12\"}}}",
				 &e),
		0);
	assert_int_equal(e.type, POD_JSON_IS);
	assert_string_equal(e.version, "12");
	assert_string_equal(e.pod->name, "shop-1");
	api_pod_unref(e.pod);
	assert_int_equal(
		event_of("{\"type\":\"DELETED\",\"object\":{\"metadata\":{" METADATA "}}}", &e), 0);
	assert_int_equal(e.type, POD_JSON_DELETED);
	assert_string_equal(e.version, "");
	api_pod_unref(e.pod);
	/* It cannot be believed, but the watch goes on behind it. */
	assert_int_equal(event_of("{\"type\":\"ADDED\",\"object\":{\"metadata\":{"
				  "\"resourceVersion\":\"13\"}}}",
				 &e),
		0);
	assert_null(e.pod);
	assert_int_equal(e.pod_error, -EBADMSG);
	assert_string_equal(e.version, "13");
	assert_int_equal(event_of("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
				  "\"resourceVersion\":\"14\"}}}",
				 &e),
		0);
	assert_int_equal(e.type, POD_JSON_BOOKMARK);
	assert_null(e.pod);
	assert_int_equal(e.pod_error, 0);
	assert_string_equal(e.version, "14");
	assert_int_equal(
		event_of("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
			 "\"message\":\"too old\\n\"}}",
			&e),
		0);
	assert_int_equal(e.type, POD_JSON_ERROR);
	assert_int_equal(e.code, 410);
	assert_string_equal(e.message, "too old?");
}

static void what_is_no_event_is_refused(void **state)
{
	struct pod_json_event e;
	char long_version[200];

	(void)state;
	assert_int_equal(event_of("{}", &e), -EBADMSG);
	assert_int_equal(event_of("{\"type\":\"ADDED\"}", &e), -EBADMSG);
	assert_int_equal(event_of("{\"type\":\"OTHER\",\"object\":{}}", &e), -EBADMSG);
	assert_int_equal(event_of("{\"type\":\"ADDED\",\"object\":{}", &e), -EBADMSG);
	snprintf(long_version, sizeof(long_version),
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"%0*d\"}}}",
		POD_JSON_VERSION_BYTES, 0);
	assert_int_equal(event_of(long_version, &e), -EBADMSG);
	assert_int_equal(event_of("{\"type\":\"ERROR\",\"object\":{\"code\":-410}}", &e), 0);
	assert_int_equal(e.code, 0);
}

static int answer_of(const char *text, struct pod_json_answer *ret_answer)
{
	return pod_json_answer(text, strlen(text), ret_answer);
}

static void an_answer_is_a_list_or_a_refusal(void **state)
{
	struct pod_json_answer a;

	(void)state;
	assert_int_equal(
		answer_of("{\"kind\":\"PartialObjectMetadataList\",\"metadata\":"
			  "{\"resourceVersion\":\"7\",\"continue\":\"next=\"},\"items\":[]}",
			&a),
		0);
	assert_true(a.is_list);
	assert_string_equal(a.version, "7");
	assert_string_equal(a.next, "next=");
	assert_int_equal(
		answer_of("{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}", &a), 0);
	assert_false(a.is_list);
	assert_string_equal(a.message, "pods is forbidden");
	assert_int_equal(answer_of("{\"kind\":\"Secret\"}", &a), -EBADMSG);
	assert_int_equal(answer_of("{}", &a), -EBADMSG);
	assert_int_equal(answer_of("", &a), -EBADMSG);
	assert_int_equal(
		answer_of("{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"a\\u0001\"}}", &a),
		-EBADMSG);
}

/* ---- the pods of a node ---------------------------------------------------------------------- */

static struct api_pod *make_pod(const char *uid, const char *name, const char *owner)
{
	const struct api_pod from = { .uid = uid,
		.name = name,
		.namespace = "prod",
		.controller_kind = "Job",
		.controller_name = owner };
	struct api_pod *pod;

	assert_int_equal(api_pod_copy(&from, &pod), 0);
	return pod;
}

static const char *owner_of(const struct api_pods *p, const char *uid, const char *name)
{
	const struct container_pod pod = { .uid = uid, .name = name, .namespace = "prod" };
	const struct api_pod *found = api_pods_find(p, &pod);

	return found ? found->controller_name : "none";
}

static void pods_are_found_by_all_that_names_them(void **state)
{
	struct api_pods p;

	(void)state;
	api_pods_init(&p);
	assert_int_equal(api_pods_set(&p, make_pod("u1", "one", "first")), 0);
	assert_int_equal(api_pods_set(&p, make_pod("u2", "two", "other")), 0);
	assert_int_equal(api_pods_set(&p, make_pod("u1", "one", "second")), 0);
	assert_string_equal(owner_of(&p, "u1", "one"), "second");
	assert_string_equal(owner_of(&p, "u2", "two"), "other");
	assert_string_equal(owner_of(&p, "u1", "two"), "none");
	assert_string_equal(owner_of(&p, "", "one"), "none");
	assert_int_equal(api_pods_count(&p), 2);
	assert_int_equal(p.changes, 3);
	api_pods_deinit(&p);
}

static void a_pod_that_is_gone_stays_for_a_while(void **state)
{
	struct api_pod *gone = make_pod("u1", "one", "first");
	struct api_pods p;

	(void)state;
	api_pods_init(&p);
	assert_int_equal(api_pods_set(&p, make_pod("u1", "one", "first")), 0);
	assert_int_equal(api_pods_set(&p, make_pod("u2", "two", "other")), 0);
	api_pods_delete(&p, gone, 100);
	api_pods_delete(&p, gone, 200);
	assert_int_equal(api_pods_count(&p), 1);
	assert_int_equal(api_pods_forget(&p, 100), 0);
	assert_string_equal(owner_of(&p, "u1", "one"), "first");
	assert_int_equal(api_pods_forget(&p, 101), 0);
	assert_string_equal(owner_of(&p, "u1", "one"), "none");
	assert_string_equal(owner_of(&p, "u2", "two"), "other");
	assert_int_equal(p.gone, 0);
	/* What a new list does not have is gone, too; what it has again is there. */
	api_pods_begin_list(&p);
	assert_int_equal(api_pods_set(&p, make_pod("u3", "three", "x")), 0);
	api_pods_end_list(&p, 300);
	assert_int_equal(api_pods_count(&p), 1);
	assert_int_equal(api_pods_set(&p, make_pod("u2", "two", "again")), 0);
	assert_int_equal(api_pods_count(&p), 2);
	assert_int_equal(api_pods_forget(&p, UINT64_MAX), 0);
	assert_string_equal(owner_of(&p, "u2", "two"), "again");
	assert_int_equal(p.bytes,
		api_pods_find(&p,
			&(struct container_pod){ .uid = "u2", .name = "two", .namespace = "prod" })
				->bytes +
			api_pods_find(&p,
				&(struct container_pod){
					.uid = "u3", .name = "three", .namespace = "prod" })
				->bytes);
	api_pod_unref(gone);
	api_pods_deinit(&p);
}

static void pods_are_bounded(void **state)
{
	struct api_pods p;
	char uid[32];

	(void)state;
	api_pods_init(&p);
	for (int i = 0; i < API_PODS_LIMIT + 10; i++) {
		snprintf(uid, sizeof(uid), "u%d", i);
		assert_int_equal(api_pods_set(&p, make_pod(uid, "one", "x")), 0);
	}
	assert_int_equal(api_pods_count(&p), API_PODS_LIMIT);
	assert_int_equal(p.over_limit, 10);
	api_pods_deinit(&p);
}

/* ---- joined --------------------------------------------------------------------------------- */

static void containers_have_their_pods_labels_of_now(void **state)
{
	const struct container_pair before = { "team", "old" }, after = { "team", "new" };
	const struct containers_pod pod = { .id = POD,
		.name = "one",
		.namespace = "prod",
		.uid = "u1",
		.labels = &before,
		.label_count = 1 };
	struct api_pod from = { .uid = "u1",
		.name = "one",
		.namespace = "prod",
		.controller_kind = "Job",
		.controller_name = "job-1",
		.labels = { &after, 1 } },
		       *told;
	const struct container_facts *facts, *found;
	struct containers *tables[2] = { NULL };
	struct joined *j;
	struct api_pods p;

	(void)state;
	assert_int_equal(containers_create("containerd", &tables[1]), 0);
	assert_int_equal(containers_add_pod(tables[1], &pod), 0);
	assert_int_equal(containers_add(tables[1],
				 &(struct containers_container){
					 .id = A, .pod_id = POD, .name = "web", .image = "app:1" }),
		0);
	assert_int_equal(containers_finish(tables[1], NULL, 1, 0), 0);
	api_pods_init(&p);
	assert_int_equal(api_pod_copy(&from, &told), 0);
	assert_int_equal(api_pods_set(&p, told), 0);
	assert_int_equal(joined_create(tables, 2, &p, &j), 0);
	facts = containers_find(tables[1], A);
	found = joined_find(j, facts);
	assert_ptr_not_equal(found, facts);
	assert_string_equal(found->name, "web");
	assert_string_equal(found->pod->uid, "u1");
	assert_string_equal(container_pairs_get(&found->pod->labels, "team"), "new");
	assert_string_equal(found->pod->controller_name, "job-1");
	/* What it joins lives as long as it does. */
	containers_unref(tables[1]);
	api_pods_deinit(&p);
	assert_string_equal(found->pod->name, "one");
	assert_string_equal(container_pairs_get(&found->pod->labels, "team"), "new");
	joined_unref(j);
}

/* Another pod with the same UID, or the pod under another name, is not this one. */
static void another_pods_labels_are_not_joined(void **state)
{
	const struct containers_pod pod = {
		.id = POD, .name = "one", .namespace = "prod", .uid = "u1"
	};
	struct containers *table;
	struct api_pods p;
	struct joined *j;

	(void)state;
	assert_int_equal(containers_create("containerd", &table), 0);
	assert_int_equal(containers_add_pod(table, &pod), 0);
	assert_int_equal(containers_finish(table, NULL, 1, 0), 0);
	api_pods_init(&p);
	assert_int_equal(api_pods_set(&p, make_pod("u1", "two", "wrong")), 0);
	assert_int_equal(api_pods_set(&p, make_pod("u2", "one", "wrong")), 0);
	assert_int_equal(joined_create(&table, 1, &p, &j), 0);
	assert_ptr_equal(joined_find(j, containers_find(table, POD)), containers_find(table, POD));
	joined_unref(j);
	api_pods_deinit(&p);
	containers_unref(table);
}

/* ---- where the server is --------------------------------------------------------------------- */

static int access_of(const char *host, const char *port, const char *node)
{
	struct api_access access;

	if (host)
		setenv("KUBERNETES_SERVICE_HOST", host, 1);
	else
		unsetenv("KUBERNETES_SERVICE_HOST");
	if (port)
		setenv("KUBERNETES_SERVICE_PORT", port, 1);
	else
		unsetenv("KUBERNETES_SERVICE_PORT");
	return api_access_init(&access, "/secrets", node);
}

static void the_environment_says_where_the_server_is(void **state)
{
	char node[300];

	(void)state;
	memset(node, 'n', sizeof(node));
	node[299] = 0;
	assert_int_equal(access_of("10.96.0.1", "443", "node-1.example"), 0);
	assert_int_equal(access_of("fd00::1", "443", "n"), 0);
	assert_int_equal(access_of("kubernetes.default.svc", "6443", "n"), 0);
	assert_int_equal(access_of(NULL, "443", "n"), -ENOENT);
	assert_int_equal(access_of("10.96.0.1", NULL, "n"), -ENOENT);
	assert_int_equal(access_of("", "443", "n"), -ENOENT);
	assert_int_equal(access_of("evil/x?", "443", "n"), -EINVAL);
	assert_int_equal(access_of("user@evil", "443", "n"), -EINVAL);
	assert_int_equal(access_of("10.96.0.1", "443/x", "n"), -EINVAL);
	assert_int_equal(access_of("10.96.0.1", "4430000", "n"), -EINVAL);
	assert_int_equal(access_of("10.96.0.1", "443", ""), -EDOM);
	assert_int_equal(access_of("10.96.0.1", "443", "n,status.phase=Running"), -EDOM);
	assert_int_equal(access_of("10.96.0.1", "443", "n&watch=1"), -EDOM);
	assert_int_equal(access_of("10.96.0.1", "443", node), -EDOM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_cut_into_its_items),
		cmocka_unit_test(a_watch_is_cut_into_its_events),
		cmocka_unit_test(an_array_is_cut_into_its_elements),
		cmocka_unit_test(what_is_of_another_form_is_refused),
		cmocka_unit_test(an_answer_that_is_cut_short_is_not_whole),
		cmocka_unit_test(a_value_that_is_too_large_or_too_deep_is_left_out),
		cmocka_unit_test(the_rest_of_a_list_is_bounded),
		cmocka_unit_test(a_pod_has_what_the_runtime_does_not_know),
		cmocka_unit_test(a_mirror_pod_has_the_uid_that_the_runtime_tells),
		cmocka_unit_test(what_cannot_be_a_pod_is_refused),
		cmocka_unit_test(too_many_or_too_long_pairs_are_left_out),
		cmocka_unit_test(events_say_what_has_changed),
		cmocka_unit_test(what_is_no_event_is_refused),
		cmocka_unit_test(an_answer_is_a_list_or_a_refusal),
		cmocka_unit_test(pods_are_found_by_all_that_names_them),
		cmocka_unit_test(a_pod_that_is_gone_stays_for_a_while),
		cmocka_unit_test(pods_are_bounded),
		cmocka_unit_test(containers_have_their_pods_labels_of_now),
		cmocka_unit_test(another_pods_labels_are_not_joined),
		cmocka_unit_test(the_environment_says_where_the_server_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
