/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any answer of the API server: the first byte says whether it is a list or a watch, and in which
 * pieces it comes. What pods come of it have valid names, and what is cut out of a list is found
 * whatever the pieces are.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/kubernetes/api_pods.h"
#include "agent/server/metadata/json_pieces.h"
#include "agent/server/metadata/kubernetes/pod_json.h"
#include "base/cleanup.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pairs(const struct container_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		const struct container_pair *pair = &pairs->items[i];

		if (!utf8_is_clean(pair->name, strlen(pair->name)) ||
			!utf8_is_clean(pair->value, strlen(pair->value)) ||
			(i && strcmp(pair[-1].name, pair->name) >= 0))
			abort();
	}
}

static int take_pod(struct api_pods *pods, struct api_pod *pod)
{
	if (!container_is_name(pod->uid) || !container_is_name(pod->name) ||
		!container_is_name(pod->namespace))
		abort();
	check_pairs(&pod->labels);
	check_pairs(&pod->annotations);
	return api_pods_set(pods, pod);
}

static int on_item(void *context, const void *bytes, size_t size)
{
	struct api_pod *pod;
	uint64_t refused = 0;

	return pod_json_pod(bytes, size, &pod, &refused) ? 0 : take_pod(context, pod);
}

static int on_event(void *context, const void *bytes, size_t size)
{
	struct pod_json_event event;
	uint64_t refused = 0;

	if (pod_json_event(bytes, size, &event, &refused) || !event.pod)
		return 0;
	if (event.type == POD_JSON_IS)
		return take_pod(context, event.pod);
	api_pods_delete(context, event.pod, 1);
	api_pod_unref(event.pod);
	return 0;
}

static uint64_t cut(const uint8_t *data, size_t size, bool is_list, size_t piece, int *ret_err)
{
	struct json_pieces pieces;
	struct api_pods pods;
	struct pod_json_answer answer;
	uint64_t found;

	api_pods_init(&pods);
	json_pieces_init(&pieces, is_list ? JSON_PIECES_ITEMS : JSON_PIECES_VALUES, 1 << 16,
		is_list ? on_item : on_event, &pods);
	for (size_t at = 0; at < size; at += piece)
		(void)json_pieces_take(&pieces, data + at, MIN(piece, size - at));
	(void)pod_json_answer(pieces.rest.bytes, pieces.rest.size, &answer);
	(void)api_pods_forget(&pods, 2);
	*ret_err = pieces.error;
	found = pieces.values << 32 ^ pieces.too_large << 16 ^ api_pods_count(&pods);
	json_pieces_deinit(&pieces);
	api_pods_deinit(&pods);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool is_list = size && data[0] & 1;
	size_t piece = size ? 1 + (data[0] >> 1) : 1;
	int err, other_err;

	if (!size)
		return 0;
	if (cut(data + 1, size - 1, is_list, piece, &err) !=
			cut(data + 1, size - 1, is_list, size, &other_err) ||
		err != other_err)
		abort();
	return 0;
}
