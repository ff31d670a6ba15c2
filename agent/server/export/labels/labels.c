/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/payload.h"
#include "base/cleanup.h"
#include "base/utf8.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Prometheus' data model: [a-zA-Z_][a-zA-Z0-9_]* */
static bool labels_is_name(const char *name)
{
	if (!is_letter(*name))
		return false;
	for (; *name; name++) {
		if (!is_letter(*name) && !(*name >= '0' && *name <= '9'))
			return false;
	}
	return true;
}

/* The index of NAME, or where to insert it. */
static size_t labels_find(const struct labels *labels, const char *name, bool *ret_there)
{
	size_t low = 0, high = labels->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(labels->items[middle].name, name);

		if (!order) {
			*ret_there = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_there = false;
	return low;
}

static void remove_at(struct labels *labels, size_t at)
{
	free(labels->items[at].name);
	free(labels->items[at].value);
	labels->count--;
	memmove(&labels->items[at], &labels->items[at + 1],
		(labels->count - at) * sizeof(labels->items[0]));
	labels->items[labels->count] = (struct label){ 0 };
}

static int insert_at(struct labels *labels, size_t at, const char *name, char *value)
{
	char *copy;

	if (labels->count == LABELS_LIMIT)
		return -E2BIG;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	memmove(&labels->items[at + 1], &labels->items[at],
		(labels->count - at) * sizeof(labels->items[0]));
	labels->items[at] = (struct label){ copy, value };
	labels->count++;
	return 0;
}

int labels_set(struct labels *labels, const char *name, const char *value)
{
	autofree char *copy = NULL;
	size_t at, length = strlen(value);
	bool there;
	int err;

	if (!labels_is_name(name))
		return -EINVAL;
	if (strlen(name) > LABEL_NAME_BYTES || length > LABEL_VALUE_BYTES)
		return -E2BIG;
	at = labels_find(labels, name, &there);
	if (!length) {
		if (there)
			remove_at(labels, at);
		return 0;
	}
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	utf8_repair(copy, length);
	if (there) {
		free(labels->items[at].value);
		labels->items[at].value = take(copy);
		return 0;
	}
	err = insert_at(labels, at, name, copy);
	if (!err)
		(void)take(copy);
	return err;
}

const char *labels_get(const struct labels *labels, const char *name)
{
	bool there;
	size_t at = labels_find(labels, name, &there);

	return there ? labels->items[at].value : NULL;
}

int labels_copy(const struct labels *labels, struct labels *ret_labels)
{
	struct labels copy = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < labels->count; i++)
		err = labels_set(&copy, labels->items[i].name, labels->items[i].value);
	if (err) {
		labels_deinit(&copy);
		return err;
	}
	*ret_labels = copy;
	return 0;
}

void labels_deinit(struct labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		free(labels->items[i].name);
		free(labels->items[i].value);
	}
	*labels = (struct labels){ 0 };
}

void payload_deinit(struct payload *payload)
{
	labels_deinit(&payload->labels);
	buffer_deinit(&payload->pprof);
	*payload = (struct payload){ 0 };
}
