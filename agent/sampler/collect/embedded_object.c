/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/embedded_object.h"

#include "base/buffer.h"
#include "base/gzip.h"

enum { MAX_OBJECT_BYTES = 4 << 20 };

void *embedded_object(const char *compressed, size_t size, size_t *ret_size)
{
	struct buffer object;

	buffer_init(&object, MAX_OBJECT_BYTES);
	if (gzip_inflate(compressed, size, &object)) {
		buffer_deinit(&object);
		return NULL;
	}
	*ret_size = object.size;
	return object.bytes;
}
