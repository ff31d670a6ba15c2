/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/cri_decode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/utf8.h"
#include "proto/cri.pb-c.h"

/* https://protobuf.dev/programming-guides/encoding/ */
enum wire_type { WIRE_VARINT, WIRE_FIXED_64, WIRE_BYTES, WIRE_FIXED_32 = 5 };

enum {
	ITEMS_FIELD = 1,
	ITEM_BYTES = 2 << 20, /* a pod's annotations have 256 KiB at most */
	ITEM_ARENA_BYTES = 16 << 20,
};

/* ---- memory --------------------------------------------------------------------------------- */

static void *cri_decode_alloc(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void cri_decode_free(void *arena, void *pointer)
{
	(void)arena;
	(void)pointer;
}

/* ---- items ---------------------------------------------------------------------------------- */

typedef int cri_item_fn(ProtobufCAllocator *allocator, struct cursor item, struct containers *to);

/* Skips the rest of a field that is no item. */
static bool cri_decode_skip(struct cursor *c, unsigned int type)
{
	switch (type) {
	case WIRE_VARINT:
		(void)cursor_uleb128(c);
		return !c->bad;
	case WIRE_FIXED_64:
		return cursor_skip(c, 8);
	case WIRE_BYTES:
		return cursor_skip(c, cursor_uleb128(c));
	case WIRE_FIXED_32:
		return cursor_skip(c, 4);
	default:
		return false;
	}
}

static int cri_decode_items(
	struct cursor c, cri_item_fn *fn, struct containers *to, uint64_t *too_large)
{
	autocall(arena_deinit) struct arena arena;
	ProtobufCAllocator allocator = { cri_decode_alloc, cri_decode_free, &arena };

	arena_init(&arena, ITEM_ARENA_BYTES);
	while (cursor_left(&c)) {
		uint64_t tag = cursor_uleb128(&c), size;
		struct cursor item;
		int err;

		if (tag != (ITEMS_FIELD << 3 | WIRE_BYTES)) {
			if (!(tag >> 3) || !cri_decode_skip(&c, tag & 7))
				return -EBADMSG;
			continue;
		}
		size = cursor_uleb128(&c);
		item = cursor_slice(&c, cursor_offset(&c), size);
		if (!cursor_skip(&c, size) || item.bad)
			return -EBADMSG;
		arena_reset(&arena);
		arena.error = 0;
		err = size > ITEM_BYTES ? -E2BIG : fn(&allocator, item, to);
		if (err == -E2BIG)
			++*too_large;
		else if (err)
			return err;
	}
	return c.bad ? -EBADMSG : 0;
}

/* Why protobuf-c has returned nothing. */
static int cri_decode_failure(const ProtobufCAllocator *allocator)
{
	const struct arena *arena = allocator->allocator_data;

	return arena->error ? arena->error : -EBADMSG;
}

/* A NUL becomes another byte that no name may have. NULL: no memory. */
static const char *cri_decode_text(ProtobufCAllocator *allocator, const ProtobufCBinaryData *from)
{
	char *text = arena_alloc(allocator->allocator_data, from->len + 1);

	for (size_t i = 0; text && i < from->len; i++)
		text[i] = from->data[i] ? (char)from->data[i] : '\1';
	if (text)
		text[from->len] = 0;
	return text;
}

static const struct container_pair *cri_decode_pairs(
	ProtobufCAllocator *allocator, Cri__Pair *const *from, size_t count)
{
	struct container_pair *pairs =
		arena_alloc(allocator->allocator_data, MAX(count, 1) * sizeof(*pairs));

	for (size_t i = 0; pairs && i < count; i++) {
		pairs[i].name = cri_decode_text(allocator, &from[i]->key);
		pairs[i].value = cri_decode_text(allocator, &from[i]->value);
	}
	return pairs;
}

static int cri_decode_pod(ProtobufCAllocator *allocator, struct cursor item, struct containers *to)
{
	static const Cri__PodSandboxMetadata none = CRI__POD_SANDBOX_METADATA__INIT;
	const Cri__PodSandbox *sandbox =
		cri__pod_sandbox__unpack(allocator, cursor_left(&item), item.at);
	const Cri__PodSandboxMetadata *metadata =
		sandbox && sandbox->metadata ? sandbox->metadata : &none;
	struct arena *arena = allocator->allocator_data;
	struct containers_pod pod;

	if (!sandbox)
		return cri_decode_failure(allocator);
	pod = (struct containers_pod){
		.id = cri_decode_text(allocator, &sandbox->id),
		.name = cri_decode_text(allocator, &metadata->name),
		.namespace = cri_decode_text(allocator, &metadata->namespace_),
		.uid = cri_decode_text(allocator, &metadata->uid),
		.labels = cri_decode_pairs(allocator, sandbox->labels, sandbox->n_labels),
		.annotations =
			cri_decode_pairs(allocator, sandbox->annotations, sandbox->n_annotations),
		.label_count = sandbox->n_labels,
		.annotation_count = sandbox->n_annotations,
	};
	return arena->error ? arena->error : containers_add_pod(to, &pod);
}

static int cri_decode_container(
	ProtobufCAllocator *allocator, struct cursor item, struct containers *to)
{
	static const Cri__ContainerMetadata no_metadata = CRI__CONTAINER_METADATA__INIT;
	static const Cri__ImageSpec no_image = CRI__IMAGE_SPEC__INIT;
	const Cri__Container *container =
		cri__container__unpack(allocator, cursor_left(&item), item.at);
	struct arena *arena = allocator->allocator_data;
	const Cri__ContainerMetadata *metadata;
	const Cri__ImageSpec *image;
	struct containers_container to_add;

	if (!container)
		return cri_decode_failure(allocator);
	metadata = container->metadata ? container->metadata : &no_metadata;
	image = container->image ? container->image : &no_image;
	to_add = (struct containers_container){
		.id = cri_decode_text(allocator, &container->id),
		.pod_id = cri_decode_text(allocator, &container->pod_sandbox_id),
		.name = cri_decode_text(allocator, &metadata->name),
		.image = cri_decode_text(allocator, image->user_specified_image.len
							    ? &image->user_specified_image
							    : &image->image),
	};
	return arena->error ? arena->error : containers_add(to, &to_add);
}

/* ---- answers -------------------------------------------------------------------------------- */

int cri_decode_version(const void *bytes, size_t size, char name[CONTAINER_RUNTIME_BYTES])
{
	autocall(arena_deinit) struct arena arena;
	ProtobufCAllocator allocator = { cri_decode_alloc, cri_decode_free, &arena };
	const Cri__VersionResponse *version;
	const char *text;

	arena_init(&arena, ITEM_ARENA_BYTES);
	version = cri__version_response__unpack(&allocator, size, bytes ? bytes : "");
	if (!version)
		return arena.error == -ENOMEM ? -ENOMEM : -EBADMSG;
	text = cri_decode_text(&allocator, &version->runtime_name);
	if (!text)
		return arena.error;
	snprintf(name, CONTAINER_RUNTIME_BYTES, "%s", text);
	utf8_clean(name, strlen(name));
	return 0;
}

int cri_decode_pods(
	const void *bytes, size_t size, struct containers *containers, uint64_t *too_large)
{
	return cri_decode_items(cursor_over(bytes, size), cri_decode_pod, containers, too_large);
}

int cri_decode_containers(
	const void *bytes, size_t size, struct containers *containers, uint64_t *too_large)
{
	return cri_decode_items(
		cursor_over(bytes, size), cri_decode_container, containers, too_large);
}
