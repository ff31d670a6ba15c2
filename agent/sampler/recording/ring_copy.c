/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/recording/ring_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int ring_copy_init(
	struct ring_copy *copy, uint64_t size_bytes, uint64_t behind_bytes, uint64_t room_bytes)
{
	autofree struct perf_event_mmap_page *control = calloc(1, sizeof(*control));
	uint8_t *data = calloc(1, size_bytes + behind_bytes);

	if (!control || !data) {
		free(data);
		return -ENOMEM;
	}
	copy->data = data;
	ring_over(&copy->ring, take(control), data, size_bytes);
	copy->ring.behind_bytes = behind_bytes;
	copy->ring.room_bytes = room_bytes;
	return 0;
}

void ring_copy_deinit(struct ring_copy *copy)
{
	free(copy->ring.control);
	free(copy->data);
	*copy = (struct ring_copy){ 0 };
}

uint64_t ring_copy_left(const struct ring_copy *copy)
{
	const struct ring *r = &copy->ring;

	return r->size_bytes - (r->control->data_head - r->released);
}

void ring_copy_append(struct ring_copy *copy, const uint8_t *bytes, uint64_t size)
{
	const struct ring *r = &copy->ring;
	uint64_t at = r->control->data_head & (r->size_bytes - 1), first;

	size = MIN(size, ring_copy_left(copy));
	first = MIN(size, r->size_bytes - at + r->behind_bytes);
	memcpy(copy->data + at, bytes, first);
	memcpy(copy->data, bytes + first, size - first);
	r->control->data_head += size;
}
