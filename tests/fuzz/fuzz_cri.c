/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any answer of a container runtime: the first byte says in which pieces the body comes. What is
 * found afterwards has valid names, and the same pod in both tables.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/containers.h"
#include "agent/server/metadata/cri_decode.h"
#include "agent/server/metadata/grpc_frames.h"
#include "base/cleanup.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
	if (strlen(name) > CONTAINER_NAME_LIMIT || !utf8_is_clean(name, strlen(name)))
		abort();
}

static void check_found(const struct containers *c, const char *id)
{
	const struct container_facts *facts = containers_find(c, id);

	if (!facts)
		return;
	check_name(facts->name);
	check_name(facts->pod->name);
	check_name(facts->pod->namespace);
	check_name(facts->pod->uid);
	for (size_t i = 0; i < facts->pod->labels.count; i++) {
		const struct container_pair *pair = &facts->pod->labels.items[i];

		if (!utf8_is_clean(pair->value, strlen(pair->value)))
			abort();
	}
}

/* Whatever in BODY looks like an ID. */
static void check_all(const struct containers *c, const struct buffer *body)
{
	char id[65] = "";

	for (size_t at = 0; at + 64 <= body->size; at++) {
		memcpy(id, body->bytes + at, 64);
		check_found(c, id);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[CONTAINER_RUNTIME_BYTES] = "fuzz";
	struct containers *c, *next;
	struct grpc_frames f;
	uint64_t too_large = 0;
	size_t piece = size ? 1 + data[0] : 1;

	grpc_frames_init(&f, false, 1 << 20);
	for (size_t at = 1; at < size; at += piece)
		(void)grpc_frames_take(&f, data + at, MIN(piece, size - at));
	(void)cri_decode_version(f.message.bytes, f.message.size, name);
	if (containers_create(name, &c) || containers_create(name, &next))
		abort();
	(void)cri_decode_containers(f.message.bytes, f.message.size, c, &too_large);
	(void)cri_decode_pods(f.message.bytes, f.message.size, c, &too_large);
	(void)containers_finish(c, NULL, 1, 0);
	check_all(c, &f.message);
	(void)containers_finish(next, c, 2, 1);
	check_all(next, &f.message);
	containers_unref(c);
	containers_unref(next);
	grpc_frames_deinit(&f);
	return 0;
}
