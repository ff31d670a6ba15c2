/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any answer of the Docker Engine API: the first byte says whether it is a list, events or a
 * version, and in which pieces it comes. What is found afterwards has valid names and labels, and a
 * pod only as a claim.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/containers.h"
#include "agent/server/metadata/docker/docker_json.h"
#include "agent/server/metadata/json_pieces.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum { LISTS, STREAMS, IS_VERSION, FORMS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
	if (!utf8_is_clean(text, strlen(text)))
		abort();
}

static void check_found(const struct containers *c)
{
	const struct container_facts *facts;
	size_t at = 0;

	while ((facts = containers_next(c, &at)) != NULL) {
		check_text(facts->name);
		check_text(facts->image);
		if (container_is_in_pod(facts) ? !facts->pod->is_claim : !*facts->name)
			abort();
		for (size_t i = 0; i < facts->labels.count; i++) {
			check_text(facts->labels.items[i].name);
			check_text(facts->labels.items[i].value);
		}
		if (containers_find(c, facts->id) != facts)
			abort();
	}
}

static int on_container(void *context, const void *bytes, size_t size)
{
	(void)docker_json_container(bytes, size, context);
	return 0;
}

static int on_event(void *context, const void *bytes, size_t size)
{
	bool changes;

	(void)context;
	(void)docker_json_event(bytes, size, &changes);
	return 0;
}

static int on_version(void *context, const void *bytes, size_t size)
{
	char name[CONTAINER_RUNTIME_BYTES];

	(void)context;
	if (!docker_json_version(bytes, size, name))
		check_text(name);
	return 0;
}

static uint64_t cut(const uint8_t *data, size_t size, int form, size_t piece)
{
	static json_pieces_fn *const fns[] = { on_container, on_event, on_version };
	struct json_pieces pieces;
	struct containers *c;
	uint64_t found;

	if (containers_create("docker", &c))
		abort();
	json_pieces_init(&pieces, form == LISTS ? JSON_PIECES_ARRAY : JSON_PIECES_VALUES, 1 << 16,
		fns[form], c);
	for (size_t at = 0; at < size; at += piece)
		(void)json_pieces_take(&pieces, data + at, MIN(piece, size - at));
	if (containers_finish(c, NULL, 1, 0))
		abort();
	check_found(c);
	found = pieces.values << 32 ^ pieces.too_large << 16 ^ containers_count(c);
	json_pieces_deinit(&pieces);
	containers_unref(c);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int form = size ? data[0] % FORMS : 0;

	if (!size)
		return 0;
	if (cut(data + 1, size - 1, form, 1 + data[0] / FORMS) !=
		cut(data + 1, size - 1, form, size))
		abort();
	return 0;
}
