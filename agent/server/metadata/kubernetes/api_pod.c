/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/kubernetes/api_pod.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- its size ------------------------------------------------------------------------------- */

static size_t api_pod_text_bytes(const char *text)
{
	return strlen(text) + 1;
}

static size_t api_pod_pairs_bytes(const struct container_pairs *pairs)
{
	size_t bytes = pairs->count * sizeof(*pairs->items);

	for (size_t i = 0; i < pairs->count; i++)
		bytes += api_pod_text_bytes(pairs->items[i].name) +
			 api_pod_text_bytes(pairs->items[i].value);
	return bytes;
}

static size_t api_pod_bytes(const struct api_pod *pod)
{
	return sizeof(*pod) + api_pod_text_bytes(pod->uid) + api_pod_text_bytes(pod->name) +
	       api_pod_text_bytes(pod->namespace) + api_pod_text_bytes(pod->controller_kind) +
	       api_pod_text_bytes(pod->controller_name) + api_pod_pairs_bytes(&pod->labels) +
	       api_pod_pairs_bytes(&pod->annotations);
}

/* ---- copying -------------------------------------------------------------------------------- */

/* AT: the free room, which shrinks. Pairs come before all texts: they need to be aligned. */
static const char *api_pod_put_text(char **at, const char *text)
{
	size_t size = api_pod_text_bytes(text);
	char *copy = memcpy(*at, text, size);

	*at += size;
	return copy;
}

static struct container_pair *api_pod_put_pairs(char **at, const struct container_pairs *pairs)
{
	void *copy = *at;

	*at += pairs->count * sizeof(*pairs->items);
	return copy;
}

static struct container_pairs api_pod_fill_pairs(
	char **at, struct container_pair *to, const struct container_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		to[i].name = api_pod_put_text(at, pairs->items[i].name);
		to[i].value = api_pod_put_text(at, pairs->items[i].value);
	}
	return (struct container_pairs){ to, pairs->count };
}

int api_pod_copy(const struct api_pod *from, struct api_pod **ret_pod)
{
	size_t bytes = api_pod_bytes(from);
	struct api_pod *pod = malloc(bytes);
	struct container_pair *labels, *annotations;
	char *at;

	if (!pod)
		return -ENOMEM;
	at = (char *)(pod + 1);
	labels = api_pod_put_pairs(&at, &from->labels);
	annotations = api_pod_put_pairs(&at, &from->annotations);
	*pod = (struct api_pod){ .bytes = bytes };
	atomic_init(&pod->references, 1);
	pod->uid = api_pod_put_text(&at, from->uid);
	pod->name = api_pod_put_text(&at, from->name);
	pod->namespace = api_pod_put_text(&at, from->namespace);
	pod->controller_kind = api_pod_put_text(&at, from->controller_kind);
	pod->controller_name = api_pod_put_text(&at, from->controller_name);
	pod->labels = api_pod_fill_pairs(&at, labels, &from->labels);
	pod->annotations = api_pod_fill_pairs(&at, annotations, &from->annotations);
	*ret_pod = pod;
	return 0;
}

struct api_pod *api_pod_ref(struct api_pod *pod)
{
	atomic_fetch_add(&pod->references, 1);
	return pod;
}

void api_pod_unref(struct api_pod *pod)
{
	if (pod && atomic_fetch_sub(&pod->references, 1) == 1)
		free(pod);
}
